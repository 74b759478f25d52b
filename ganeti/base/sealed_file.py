"""A file that one program writes: what others change in it is noticed.

Beside FILE there are ``FILE.sha256`` with digests of what the program has written, one a line, and
``FILE.accepted``, a copy of it. The digest is on disk before the file is replaced, and that of the
old content until after it. So a crash at any point leaves a file whose digest is among them, and an
older content that somebody puts back is noticed.
The copy is for people, to see what was changed; it is not flushed and may be missing or older.

This is against mistakes and bad disks. Who may write the file may write the digests as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

from ganeti.base import files

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Seal(Enum):
    """Whether a content has the recorded digests."""

    #: the program has written it, or somebody has accepted it
    GOOD = "good"
    #: somebody else has written it
    BROKEN = "broken"
    #: there are no digests: it was written before there were any
    MISSING = "missing"


def companions(path: Path) -> tuple[Path, Path]:
    """The files with the digests and with the copy."""
    return path.with_name(f"{path.name}.sha256"), path.with_name(f"{path.name}.accepted")


def write(path: Path, data: bytes | str, *, mode: int, uid: int = -1, gid: int = -1) -> None:
    """Replace the file in one step, as :func:`ganeti.base.files.write_atomic` does.

    Raises:
        OSError: disk full, no permission; the old file is untouched.
    """
    raw = data.encode("utf-8") if isinstance(data, str) else data
    digests, copy = companions(path)
    known = _read_digests(path)
    with contextlib.suppress(FileNotFoundError):
        present = _digest(path.read_bytes())
        known = [present] if known is None or present in known else known
    _note(digests, [*(known or ()), _digest(raw)])
    files.write_atomic(path, raw, mode=mode, uid=uid, gid=gid)
    _note(digests, [_digest(raw)])
    with contextlib.suppress(OSError):  # only a help for people
        files.write_atomic(copy, raw, mode=0o600, fsync=False)


def accept(path: Path) -> None:
    """Accept the present content; durable at return.

    Raises:
        OSError: it cannot be read, or the digest cannot be written.
    """
    raw = path.read_bytes()
    digests, copy = companions(path)
    _note(digests, [_digest(raw)])
    with contextlib.suppress(OSError):
        files.write_atomic(copy, raw, mode=0o600, fsync=False)


def begin(path: Path) -> None:
    """Accept a content that was written before there were digests; else change nothing.

    Raises:
        OSError: as :func:`accept`.
    """
    if _read_digests(path) is None:
        accept(path)


def seal(path: Path, data: bytes) -> Seal:
    """Compare the content of the file with the recorded digests."""
    known = _read_digests(path)
    if known is None:
        return Seal.MISSING
    return Seal.GOOD if _digest(data) in known else Seal.BROKEN


def read_previous(path: Path) -> bytes | None:
    """The content that the program wrote last; None when it is not known."""
    try:
        raw = companions(path)[1].read_bytes()
    except OSError:
        return None
    known = _read_digests(path)
    return raw if known and _digest(raw) == known[-1] else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read_digests(path: Path) -> list[str] | None:
    """Digests, the newest last; None when there is no file with them."""
    try:
        text = companions(path)[0].read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    return _DIGEST.findall(text)


def _note(path: Path, digests: Iterable[str]) -> None:
    text = "".join(f"{digest}\n" for digest in dict.fromkeys(digests))
    files.write_atomic(path, text, mode=0o600)


def sweep(path: Path) -> None:
    """Remove what a killed :func:`write` left; nobody may be writing."""
    files.sweep(path.parent, (path.name, *(one.name for one in companions(path))))

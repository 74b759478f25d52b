"""The files of SSH on a node: who may log in as root, the keys of root and of the SSH server."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from ganeti import errors
from ganeti.base import files, process
from ganeti.paths import Paths

K = TypeVar("K", bound=str)

#: Seconds that ssh-keygen may take.
_PATIENCE = 120.0
KEY_TYPES = ("rsa", "dsa", "ecdsa", "ed25519")
#: Type of a key -> its length in bits if none is given, and the lengths that OpenSSH makes.
_LENGTHS: Mapping[str, tuple[int, range | tuple[int, ...]]] = {
    "rsa": (2048, range(2048, 16385)),
    "dsa": (1024, (1024,)),
    "ecdsa": (256, (256, 384, 521)),
}
#: Lines with a public key for OpenSSH; options before it are not ours to write.
_PUBLIC = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}(?: [^\n\r\0]*)?")
_PRIVATE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n.*\n-----END [A-Z ]*PRIVATE KEY-----\n?", re.S
)


class Places:
    """Paths of the files of SSH; below the root of a cluster that lives in a directory."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.user = paths.under("/root/.ssh")
        self.host = paths.under("/etc/ssh")
        self.authorized = self.user / "authorized_keys"
        self.cluster = paths.ssh_public_keys

    def key(self, kind: str, suffix: str = "") -> Path:
        """A private key of root; the public one is beside it."""
        return self.user / f"id_{check_type(kind)}{suffix}"

    def host_keys(self) -> list[str]:
        """Public keys of the SSH server, without their comments."""
        found = (read_lines(path) for path in sorted(self.host.glob("ssh_host_*_key.pub")))
        return [" ".join(lines[0].split()[:2]) for lines in found if lines]


def check_public(key: str) -> str:
    """A line with a public key.

    Raises:
        ParameterError: it is none.
    """
    if not _PUBLIC.fullmatch(key.strip()):
        raise errors.ParameterError(f"{key.strip()[:40]!r} is not a public key of SSH")
    return key.strip()


def check_private(key: str) -> str:
    if not _PRIVATE.fullmatch(key):
        raise errors.ParameterError("a private key is not in PEM form")
    return key


def check_type(name: str) -> str:
    if name not in KEY_TYPES:
        raise errors.ParameterError(f"{name[:20]!r} is not a type of key: {', '.join(KEY_TYPES)}")
    return name


def choose_length(kind: str, bits: int | None) -> int:
    """Length of keys of a type in bits: the wanted one, or the usual one. Pure.

    Raises:
        OpPrereqError: there are no keys of that type with that length.
    """
    usual, lengths = _LENGTHS[check_type(kind)]
    if bits is None:
        return usual
    if bits not in lengths:
        several = (
            f"{lengths[0]} to {lengths[-1]}"
            if isinstance(lengths, range)
            else ", ".join(map(str, lengths))
        )
        raise errors.make_invalid_error(f"SSH keys of type {kind} have {several} bits, not {bits}")
    return bits


def public_of(private: Path) -> Path:
    return private.with_name(f"{private.name}.pub")


def generate(private: Path, kind: str, bits: int, comment: str | None = None) -> None:
    """Make a pair of keys without a passphrase; what has its names is replaced.

    Raises:
        CommandError: ssh-keygen failed.
    """
    for old in (private, public_of(private)):
        old.unlink(missing_ok=True)
    files.ensure_dir(private.parent, 0o700)
    words = ["ssh-keygen", "-q", "-N", "", "-t", check_type(kind), "-f", str(private)]
    if kind in _LENGTHS:
        words += ["-b", str(bits)]
    if comment is not None:
        words += ["-C", comment]
    process.run_checked(words, timeout=_PATIENCE)


def install(new: Path, private: Path) -> None:
    """Put a new pair in the place of another one, which stays beside it as ``.old``."""
    if private.exists():
        for path in (private, public_of(private)):
            if path.exists():
                kept = path.with_name(f"{path.name}.old")
                kept.unlink(missing_ok=True)
                os.link(path, kept)
    # The private key last: where it is old, the public one is made from it again.
    os.replace(public_of(new), public_of(private))
    os.replace(new, private)
    files.fsync_dir(private.parent)


def derive_public(private: Path) -> str:
    """The public key of a private one, with its comment.

    Raises:
        OpExecError: it has a passphrase, or is not a key.
    """
    words = ["ssh-keygen", "-y", "-P", "", "-f", str(private)]
    result = process.run(words, timeout=_PATIENCE)
    if not result.ok:
        reason = (result.stderr.strip() or result.explain()).splitlines()[-1]
        raise errors.OpExecError(
            f"the key {private} cannot be used without being asked for its passphrase ({reason});"
            " a cluster that manages SSH needs a key of root without one"
        )
    return result.stdout.strip()


def changed_lines(
    old: Iterable[str], *, add: Iterable[str] = (), drop: Iterable[str] = ()
) -> list[str]:
    """Lines of ``authorized_keys`` without some keys and with others; each key once. Pure.

    Keys are the same when type and data are, whatever is said after them.
    """
    gone = {identify(key) for key in drop}
    lines = [line for line in old if identify(line) not in gone]
    known = {identify(line) for line in lines}
    for key in add:
        if identify(key) not in known:
            lines.append(key)
            known.add(identify(key))
    return lines


def identify(line: str) -> str:
    """Type and data of a key, wherever options end; the line itself for a comment."""
    found = re.search(r"((?:ssh|ecdsa|sk)-\S+ [A-Za-z0-9+/]+={0,3})", line)
    return found[1] if found and not line.lstrip().startswith("#") else line


def changed_keys(
    old: Mapping[str, list[str]], action: str, given: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Keys of nodes after one of the actions of the interface. Pure.

    Raises:
        ParameterError: there is no such action.
    """
    if action == "clear":
        return {}
    if action == "override":
        return {uuid: list(keys) for uuid, keys in given.items()}
    found = {uuid: list(keys) for uuid, keys in old.items()}
    if action == "remove":
        for uuid in given:
            found.pop(uuid, None)
    elif action == "replace_or_add":
        found |= {uuid: list(keys) for uuid, keys in given.items()}
    elif action == "add":
        for uuid, keys in given.items():
            have = found.setdefault(uuid, [])
            have += [key for key in keys if key not in have]
    else:
        raise errors.ParameterError(
            f"{action[:20]!r} is not one of add, replace_or_add, remove, override, clear"
        )
    return found


def read_keys(path: Path) -> dict[str, list[str]]:
    """``ganeti_pub_keys``: a line ``<node uuid> <public key>`` for each key."""
    found: dict[str, list[str]] = {}
    for line in read_lines(path):
        uuid, _, key = line.partition(" ")
        if key:
            found.setdefault(uuid, []).append(key)
    return found


def keys_text(keys: Mapping[K, list[str]]) -> str:
    return "".join(f"{uuid} {key}\n" for uuid, found in keys.items() for key in found)


def read_lines(path: Path) -> list[str]:
    return files.read_text(path).splitlines() if path.exists() else []


def write(path: Path, text: str, mode: int, *, dry_run: bool, say: Callable[[str], None]) -> None:
    """Replace a file if its content changes; a dry run only says so."""
    if path.exists() and files.read_text(path) == text:
        return
    say(f"{'would write' if dry_run else 'write'} {path}")
    if dry_run:
        return
    if not path.parent.exists():
        files.ensure_dir(path.parent, 0o700)
    files.write_atomic(path, text, mode=mode)

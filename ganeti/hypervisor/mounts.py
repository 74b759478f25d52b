"""The mounts, from the text of ``/proc/<pid>/mountinfo`` (proc(5)); reading is pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors

OWN = Path("/proc/self/mountinfo")

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line; ``id`` is unique in the whole system while the mount lasts."""

    id: int
    #: ``major:minor`` of the file system
    device: str
    #: which directory of the file system is mounted
    root: str
    point: str
    kind: str
    source: str
    #: options of the file system
    options: frozenset[str]


def parse(text: str) -> list[Mount]:
    """Mounts in the order they were made, later ones lie over earlier ones.

    Raises:
        HypervisorError: a line has another form.
    """
    return [_mount(line) for line in text.splitlines()]


def _mount(line: str) -> Mount:
    place, separator, what = line.partition(" - ")
    words, facts = place.split(" "), what.split(" ")
    if not separator or len(words) < 6 or len(facts) != 3 or not words[0].isdigit():
        raise errors.HypervisorError(f"a list of mounts has a line of an unknown form: {line!r}")
    return Mount(
        id=int(words[0]),
        device=words[2],
        root=_plain(words[3]),
        point=_plain(words[4]),
        kind=facts[0],
        source=_plain(facts[1]),
        options=frozenset(facts[2].split(",")),
    )


def _plain(text: str) -> str:
    """Spaces, line ends and backslashes are written in octal; other bytes are as they are."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def read(path: Path = OWN) -> list[Mount]:
    """Mounts that a process sees.

    Raises:
        HypervisorError: its list cannot be read.
    """
    try:
        return parse(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError as err:
        raise errors.HypervisorError(f"cannot read {path}: {err.strerror}") from err


def find_mount(point: Path, mounts: Iterable[Mount]) -> Mount | None:
    """The last mount on a directory, None when nothing is mounted there."""
    found = None
    for mount in mounts:
        if mount.point == str(point):
            found = mount
    return found


def tree(point: Path, mounts: Iterable[Mount]) -> list[Mount]:
    """Everything mounted at or below a directory, in the order of ``mounts``."""
    below = f"{point}/"
    return [mount for mount in mounts if mount.point == str(point) or mount.point.startswith(below)]

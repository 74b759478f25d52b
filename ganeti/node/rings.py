"""Files of fixed size that keep the last measurements of one thing: a ring of records each.

A record is the number of its interval and one 32-bit float for each series; it lies where the
number, modulo the count of records, says. So a new lap writes over the old one, and what was left
out, or is from an older lap or a clock that was wrong, is known by its number. Nothing has to be
cleared, and nothing is flushed: after a power cut the last half minute may be missing.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Measured values, in the order of the records.
SERIES = (
    "cpu",
    "memory",
    "disk_read",
    "disk_write",
    "disk_read_ops",
    "disk_write_ops",
    "net_receive",
    "net_send",
)
_HEAD = struct.Struct("<8sIII")
_RECORD = struct.Struct(f"<I{len(SERIES)}f")
_MAGIC = b"GNTRING1"

#: One value for each series, None where there is none.
Row = Sequence[float | None]


@dataclass(frozen=True)
class Shape:
    """How long an interval is, in seconds, and how many are kept."""

    suffix: str
    step: int
    count: int

    @property
    def size(self) -> int:
        """Bytes of a file."""
        return _HEAD.size + self.count * _RECORD.size

    def slot(self, moment: float) -> int:
        """Number of the interval of a moment (Unix time)."""
        return int(moment // self.step)


DAY = Shape(".day", 10, 8640)
MONTH = Shape(".month", 300, 8640)
SHAPES = (DAY, MONTH)


def path_of(directory: Path, name: str, shape: Shape) -> Path:
    """The file of a thing."""
    return directory / f"{name}{shape.suffix}"


def write(path: Path, shape: Shape, slot: int, row: Row) -> None:
    """Keep the values of an interval; makes the file (mode 0640) when there is none.

    A file of another form is begun again.

    Raises:
        OSError: the disk is full, or the file cannot be written.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    try:
        head = _HEAD.pack(_MAGIC, shape.step, shape.count, len(SERIES))
        if os.pread(fd, _HEAD.size, 0) != head:
            os.ftruncate(fd, 0)
            os.ftruncate(fd, shape.size)
            os.pwrite(fd, head, 0)
        values = [math.nan if value is None else value for value in row]
        place = _HEAD.size + slot % shape.count * _RECORD.size
        os.pwrite(fd, _RECORD.pack(slot, *values), place)
    finally:
        os.close(fd)


def read(path: Path, shape: Shape, first: int, last: int) -> list[Row | None]:
    """The values of the intervals from ``first`` to ``last``, both included; None: not known.

    At most as many as are kept, the newest ones. A file that is missing or of another form has
    none.
    """
    first = max(first, last - shape.count + 1)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return [None] * (last - first + 1)
    try:
        if os.pread(fd, _HEAD.size, 0) != _HEAD.pack(_MAGIC, shape.step, shape.count, len(SERIES)):
            return [None] * (last - first + 1)
        return _read_slots(fd, shape, first, last)
    finally:
        os.close(fd)


def _read_slots(fd: int, shape: Shape, first: int, last: int) -> list[Row | None]:
    found: list[Row | None] = []
    while first <= last:
        begin = first % shape.count
        length = min(last - first + 1, shape.count - begin)
        data = os.pread(fd, length * _RECORD.size, _HEAD.size + begin * _RECORD.size)
        data = data.ljust(length * _RECORD.size, b"\0")
        for offset, (slot, *values) in enumerate(_RECORD.iter_unpack(data)):
            found.append(_plain(values) if slot == first + offset else None)
        first += length
    return found


def _plain(values: Sequence[float]) -> Row:
    return [value if math.isfinite(value) else None for value in values]


def average(rows: Sequence[Row | None]) -> Row | None:
    """The average of each series over those intervals that have it; None when none has any."""
    known = [row for row in rows if row is not None]
    if not known:
        return None
    made: list[float | None] = []
    for column in zip(*known, strict=True):
        values = [value for value in column if value is not None]
        made.append(sum(values) / len(values) if values else None)
    return made

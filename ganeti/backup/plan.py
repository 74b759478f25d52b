"""How a backup is made, and what has to be read for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ganeti.backup.sums import CHUNK
from ganeti.model.backup import Mode
from ganeti.net.nbd import Extent


def choose_mode(*, has_parent: bool, has_bitmaps: bool) -> Mode:
    """How the next backup is made: with checksums of the last one, and what QEMU noted since."""
    if not has_parent:
        return Mode.FULL
    return Mode.DIRTY if has_bitmaps else Mode.COMPARE


@dataclass(frozen=True)
class Range:
    """Whole chunks (but for the end of the disk) that are read; zeros need no reading."""

    offset: int
    length: int
    zero: bool


def find_ranges(
    holes: Iterable[Extent], dirty: Iterable[Extent] | None, size: int, known: int
) -> Iterator[Range]:
    """The ranges to be read, in order, in pieces of whole chunks.

    ``holes`` cover the disk; ``dirty`` too, None for all of it. ``known`` are the bytes of the disk
    that the last backup had: what is behind them is always read.
    """
    chunks = -(-size // CHUNK)
    data = _mark(holes, chunks, flag=False)
    wanted = bytearray(b"\1" * chunks) if dirty is None else _mark(dirty, chunks, flag=True)
    behind = min(known // CHUNK, chunks)
    wanted[behind:] = b"\1" * (chunks - behind)
    start = wanted.find(1)
    while start >= 0:
        end = start + 1
        while end < chunks and wanted[end] and data[end] == data[start]:
            end += 1
        offset = start * CHUNK
        yield Range(offset, min(end * CHUNK, size) - offset, not data[start])
        start = wanted.find(1, end)


def _mark(extents: Iterable[Extent], chunks: int, *, flag: bool) -> bytearray:
    """A byte for each chunk: 1 where a part of it is in an extent with that flag."""
    found = bytearray(chunks)
    for extent in extents:
        if extent.flag == flag and extent.length:
            first = extent.offset // CHUNK
            last = min((extent.offset + extent.length - 1) // CHUNK, chunks - 1)
            found[first : last + 1] = b"\1" * (last + 1 - first)
    return found

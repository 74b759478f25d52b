"""Copying disks: changes into a backup, a backup to a disk, and the proof that it is right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ganeti import errors
from ganeti.backup.plan import Range
from ganeti.backup.repository import Sink, Tell
from ganeti.backup.sums import CHUNK, Sums, digest
from ganeti.net.nbd import Nbd

#: Bytes that are read at a time.
PIECE = 16 * CHUNK


@dataclass
class Counts:
    """Bytes that were read and that were stored."""

    read: int = 0
    stored: int = 0


def copy_changes(
    source: Nbd, ranges: Iterable[Range], target: Sink, old: Sums, new: Sums, tell: Tell
) -> Counts:
    """Store the chunks of the ranges whose digest is another one now; ``new`` becomes complete.

    ``old`` is what the target shows before, ``new`` a copy of it with the size of the source.

    Raises:
        BlockDeviceError: the source cannot be read, or the target not be written.
    """
    counts = Counts()
    for part in ranges:
        if part.zero:
            _store_zeros(part, target, old, new, counts)
            tell(part.length, 0)
            continue
        for offset, length in _pieces(part.offset, part.length):
            data = source.read(offset, length)
            counts.read += length
            _store_changed(offset, data, target, old, new, counts)
            tell(length, length)
    target.flush()
    return counts


def _pieces(offset: int, length: int) -> Iterator[tuple[int, int]]:
    end = offset + length
    while offset < end:
        size = min(PIECE, end - offset)
        yield offset, size
        offset += size


def _store_zeros(part: Range, target: Sink, old: Sums, new: Sums, counts: Counts) -> None:
    for offset in range(part.offset, part.offset + part.length, CHUNK):
        chunk = offset // CHUNK
        if not old.is_zero(chunk):
            target.zero(offset, min(CHUNK, part.offset + part.length - offset))
            counts.stored += CHUNK
        new.set(chunk, digest(b""))


def _store_changed(
    offset: int, data: bytes, target: Sink, old: Sums, new: Sums, counts: Counts
) -> None:
    """Store the chunks of a piece that differ; neighbours in one request."""
    begin: int | None = None
    for at in range(0, len(data) + CHUNK, CHUNK):
        differs = False
        if at < len(data):
            chunk = (offset + at) // CHUNK
            value = digest(data[at : at + CHUNK])
            differs = value != old.get(chunk)
            new.set(chunk, value)
        if differs and begin is None:
            begin = at
        if not differs and begin is not None:
            run = data[begin:at]
            target.write(offset + begin, run)
            counts.stored += len(run)
            begin = None


def check(source: Nbd, sums: Sums, what: str, tell: Tell) -> None:
    """Read all of a disk and compare it with its table; more behind its end is ignored.

    Raises:
        GenericError: it differs; the text says where.
    """
    if source.size < sums.size:
        raise errors.GenericError(f"{what} has {source.size} bytes, not {sums.size}")
    for extent in source.holes():
        for offset, length in _pieces(extent.offset, min(extent.length, sums.size - extent.offset)):
            if extent.flag and offset % CHUNK == 0:
                _check_zeros(offset, length, sums, what)
                tell(length, 0)
                continue
            _check_piece(source, offset, length, sums, what)
            tell(length, length)


def _check_zeros(offset: int, length: int, sums: Sums, what: str) -> None:
    # the last chunk of a hole may go on with data; it is read with that
    for chunk in range(offset // CHUNK, (offset + length) // CHUNK):
        if not sums.is_zero(chunk):
            raise _differs(what, chunk)


def _check_piece(source: Nbd, offset: int, length: int, sums: Sums, what: str) -> None:
    first = offset // CHUNK
    last = -(-(offset + length) // CHUNK)
    for chunk in range(first, last):
        at = chunk * CHUNK
        data = source.read(at, min(CHUNK, sums.size - at))
        if digest(data) != sums.get(chunk):
            raise _differs(what, chunk)


def _differs(what: str, chunk: int) -> errors.GenericError:
    at = chunk * CHUNK
    return errors.GenericError(
        f"{what} is damaged: bytes {at} to {at + CHUNK - 1} do not match their checksum"
    )


def restore(source: Nbd, target: Sink, sums: Sums, tell: Tell) -> int:
    """Write the content of a backup to a disk, check each chunk on the way; bytes written.

    Chunks of zeros are written as such: the disk may have had other content.

    Raises:
        GenericError: the backup is damaged.
        BlockDeviceError: an end failed.
    """
    written, zeros = 0, 0
    for offset, length in _pieces(0, sums.size):
        first, last = offset // CHUNK, -(-(offset + length) // CHUNK)
        if all(sums.is_zero(chunk) for chunk in range(first, last)):
            zeros += length
            tell(length, 0)
            continue
        if zeros:
            target.zero(offset - zeros, zeros)
            zeros = 0
        data = source.read(offset, length)
        for chunk in range(first, last):
            at = chunk * CHUNK - offset
            if digest(data[at : at + CHUNK]) != sums.get(chunk):
                raise _differs("the backup", chunk)
        target.write(offset, data)
        written += length
        tell(length, length)
    if zeros:
        target.zero(sums.size - zeros, zeros)
    target.flush()
    return written

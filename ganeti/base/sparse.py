"""Content of files and block devices in pieces, without what is zero."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

#: Bytes read at once.
CHUNK = 1024 * 1024
#: Smallest range that is compared as a whole.
_BLOCK = 64 * 1024
_ZEROS = bytes(_BLOCK)
#: Most bytes of zeros in one step: the kernel may have to write them to the disk.
_ZERO_STEP = 64 * 1024 * 1024
#: Most bytes of zeros in one piece.
_ZERO_PIECE = 256 * 1024 * 1024
#: Modes of fallocate(2).
_KEEP_SIZE, _PUNCH_HOLE, _ZERO_RANGE = 0x01, 0x02, 0x10
#: Errors of fallocate(2) when it cannot do that here, or not for this range.
_CANNOT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV)


class Piece(NamedTuple):
    """A part of the content: ``data``, or ``size`` bytes of zeros."""

    size: int
    data: bytes | memoryview | None


def pieces(fd: int, size: int) -> Iterator[Piece]:
    """The first ``size`` bytes of a file or block device in order.

    Data comes in pieces of up to 1 MiB, zeros of up to 256 MiB. Holes of files are not read
    (lseek(2), SEEK_DATA); other zeros are recognised in blocks of 64 KiB.

    Raises:
        OSError: reading failed, or there is less than ``size``.
    """
    if os.lseek(fd, 0, os.SEEK_END) < size:
        raise OSError(errno.EIO, f"it ends before {size} bytes")
    zeros = 0
    for piece in _find_pieces(fd, size):
        if piece.data is None:
            zeros += piece.size
            while zeros >= _ZERO_PIECE:
                yield Piece(_ZERO_PIECE, None)
                zeros -= _ZERO_PIECE
            continue
        if zeros:
            yield Piece(zeros, None)
            zeros = 0
        yield piece
    if zeros:
        yield Piece(zeros, None)


def _find_pieces(fd: int, size: int) -> Iterator[Piece]:
    """Pieces as they are found."""
    position = 0
    while position < size:
        start = min(_seek_data(fd, position), size)
        yield Piece(start - position, None)
        position = start if start == size else min(_seek_hole(fd, start), size)
        while start < position:
            data = os.pread(fd, min(CHUNK, position - start), start)
            if not data:
                raise OSError(errno.EIO, f"it ended at {start} bytes while it was read")
            yield from split(data)
            start += len(data)


def _seek_data(fd: int, position: int) -> int:
    try:
        return os.lseek(fd, position, os.SEEK_DATA)
    except OSError as err:
        if err.errno == errno.ENXIO:
            return os.lseek(fd, 0, os.SEEK_END)
        if err.errno == errno.EINVAL:  # block devices do not know
            return position
        raise


def _seek_hole(fd: int, position: int) -> int:
    try:
        return os.lseek(fd, position, os.SEEK_HOLE)
    except OSError as err:
        if err.errno == errno.EINVAL:
            return os.lseek(fd, 0, os.SEEK_END)
        raise


def split(data: bytes) -> Iterator[Piece]:
    """Runs of blocks of 64 KiB that are zero, and of those that are not; ``data`` has bytes."""
    begin, zero = 0, _is_zero(data, 0)
    for start in range(_BLOCK, len(data), _BLOCK):
        if _is_zero(data, start) is not zero:
            yield _run(data, begin, start, zero=zero)
            begin, zero = start, not zero
    yield _run(data, begin, len(data), zero=zero)


def _is_zero(data: bytes, start: int) -> bool:
    # A slice of bytes is compared by memcmp; a memoryview would be byte by byte.
    return not data[start] and data[start : start + _BLOCK] == _ZEROS[: len(data) - start]


def _run(data: bytes, begin: int, end: int, *, zero: bool) -> Piece:
    return Piece(end - begin, None if zero else memoryview(data)[begin:end])


def write(fd: int, position: int, data: bytes | memoryview) -> None:
    """Write all of it at a position."""
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, position)
        position, view = position + done, view[done:]


def write_changed(fd: int, position: int, piece: Piece) -> int:
    """Write a piece where something else is, in blocks of 64 KiB; the bytes that were written.

    ``fd`` must be open for reading and writing. OSError when that fails.
    """
    written = 0
    for start in range(0, piece.size, _BLOCK):
        size = min(_BLOCK, piece.size - start)
        data = _ZEROS[:size] if piece.data is None else bytes(piece.data[start : start + size])
        if os.pread(fd, size, position + start) != data:
            write(fd, position + start, data)
            written += size
    return written


def clear(fd: int, position: int, size: int) -> Iterator[int]:
    """Let a range read as zeros, whatever was there; yields the bytes of each step once done.

    A file loses its blocks there; a block device is asked to discard to zeros, else the kernel
    writes them. ``fd`` must be open for reading and writing, and the range lie inside of it.

    Raises:
        OSError: writing failed.
    """
    end = position + size
    while position < end:
        step = min(_ZERO_STEP, end - position)
        if not _deallocate(fd, position, step):
            _write_zeros(fd, position, step)
        yield step
        position += step


def _deallocate(fd: int, position: int, size: int) -> bool:
    """Whether the kernel could make the range zero by itself."""
    if _fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, position, size):
        return True
    # On a file this would take up room.
    is_block = stat.S_ISBLK(os.fstat(fd).st_mode)
    return is_block and _fallocate(fd, _ZERO_RANGE | _KEEP_SIZE, position, size)


def _write_zeros(fd: int, position: int, size: int) -> None:
    """Write zeros where something else is; holes stay holes."""
    for start in range(position, position + size, _BLOCK):
        zeros = _ZEROS[: position + size - start]
        if os.pread(fd, len(zeros), start) != zeros:
            write(fd, start, zeros)


def _fallocate(fd: int, mode: int, position: int, size: int) -> bool:
    """fallocate(2); False where this is not possible."""
    while True:
        if not _libc().fallocate(fd, mode, ctypes.c_int64(position), ctypes.c_int64(size)):
            return True
        code = ctypes.get_errno()
        if code in _CANNOT:
            return False
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)

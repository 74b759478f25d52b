"""The changes of a disk in a backup as a stream, in the form of ``rbd export-diff`` (version 1).

See doc/dev/rbd-diff.rst of Ceph. A stream has a head, records in the order of offsets, and an end
mark. A content is put together from the stream of a backup and those that it is built on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from ganeti import errors
from ganeti.backup.repository import Sink, Tell
from ganeti.backup.sums import CHUNK, Sums, digest

_MAGIC = b"rbd diff v1\n"
_SIZE, _WRITE, _ZERO, _END = b"s", b"w", b"z", b"e"
#: Most bytes of a record that are believed.
_MOST = 64 * 1024 * 1024


class Source(Protocol):
    """Reader of the bytes of a stream."""

    def read(self, size: int) -> bytes:
        """So many bytes, fewer only at the end."""


class Writer:
    """A sink that makes a stream; ``put`` takes its bytes, and may raise."""

    def __init__(self, size: int, put: Callable[[bytes], None]) -> None:
        self._put = put
        put(_MAGIC + _SIZE + struct.pack("<Q", size))

    def write(self, offset: int, data: bytes) -> None:
        self._put(_WRITE + struct.pack("<QQ", offset, len(data)))
        self._put(data)

    def zero(self, offset: int, length: int) -> None:
        self._put(_ZERO + struct.pack("<QQ", offset, length))

    def flush(self) -> None:
        """Nothing to do: what takes the bytes makes them durable at its end."""

    def end(self) -> None:
        """The stream is complete."""
        self._put(_END)


class Record(NamedTuple):
    offset: int
    #: empty for zeros
    data: bytes


def read_records(source: Source) -> Iterator[Record]:
    """The records of a stream; GenericError when it is cut off or something else."""
    if source.read(len(_MAGIC)) != _MAGIC:
        raise errors.GenericError("it is not what a backup wrote")
    while (tag := source.read(1)) != _END:
        if tag == _SIZE:
            _read_exactly(source, 8)
            continue
        if tag not in (_WRITE, _ZERO):
            raise errors.GenericError("it is cut off" if not tag else "it is damaged")
        offset, length = struct.unpack("<QQ", _read_exactly(source, 16))
        if tag == _WRITE and (length > _MOST or offset % CHUNK):
            raise errors.GenericError("it is damaged")
        yield Record(offset, _read_exactly(source, length) if tag == _WRITE else b"")


def _read_exactly(source: Source, size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise errors.GenericError("it is cut off")
    return data


class _Filling:
    """A disk that is put together: each chunk is written once, when its checksum is right."""

    def __init__(self, target: Sink | None, sums: Sums, tell: Tell) -> None:
        self._target, self._sums, self._tell = target, sums, tell
        self.missing = bytearray(not sums.is_zero(chunk) for chunk in range(sums.chunks))
        self.left = sum(self.missing)

    def write_zeros(self) -> None:
        """The disk may have had other content."""
        begin = self.missing.find(0)
        while begin >= 0:
            end = self.missing.find(1, begin)
            end = self._sums.chunks if end < 0 else end
            offset = begin * CHUNK
            length = min(end * CHUNK, self._sums.size) - offset
            if self._target is not None:
                self._target.zero(offset, length)
            self._tell(length, 0)
            begin = self.missing.find(0, end)

    def fill(self, record: Record) -> None:
        """Write the chunks of a record that belong to the content and are missing yet."""
        written = 0
        for at in range(0, len(record.data), CHUNK):
            chunk = (record.offset + at) // CHUNK
            data = record.data[at : at + CHUNK]
            if not self._misses(chunk) or digest(data) != self._sums.get(chunk):
                continue
            if self._target is not None:
                self._target.write(record.offset + at, data)
            self.missing[chunk] = 0
            self.left -= 1
            written += len(data)
        self._tell(written, written)

    def _misses(self, chunk: int) -> bool:
        return chunk < len(self.missing) and bool(self.missing[chunk])


def restore(
    names: Sequence[str],
    open_stream: Callable[[str], AbstractContextManager[Source]],
    target: Sink | None,
    sums: Sums,
    what: str,
    tell: Tell,
) -> None:
    """Put the content of a disk together from streams, the newest first; only check without target.

    Raises:
        GenericError: a stream is damaged, or no stream has a chunk with the right checksum.
    """
    filling = _Filling(target, sums, tell)
    filling.write_zeros()
    for name in names:
        if not filling.left:
            break
        with open_stream(name) as source:
            try:
                for record in read_records(source):
                    filling.fill(record)
                    if not filling.left:
                        break
            except errors.GenericError as err:
                raise errors.GenericError(f"{name}: {errors.text(err)}") from err
    if filling.left:
        at = filling.missing.find(1) * CHUNK
        raise errors.GenericError(
            f"{what} is damaged: bytes {at} to {at + CHUNK - 1} do not match their checksum"
        )
    if target is not None:
        target.flush()

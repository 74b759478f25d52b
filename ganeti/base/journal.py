"""A journal: one line for each change, durable before the change is reported.

A line is ``<crc32 of the rest, 8 hex digits> <JSON>``. A last line without its end was never
acknowledged and is dropped, and so is one with zero bytes: blocks that never reached the disk
before a power cut. Damage anywhere else is an error, as a change would be lost.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.base import files, jsonio
from ganeti.base.json_types import JsonObject

#: Keys of a record: serial (of the configuration after it), time, name, job, user, reason, the
#: change itself (put, delete, cluster), and what was there before (old). In this order.
Record = JsonObject


def encode(record: Record) -> bytes:
    body = jsonio.dumps_bytes(record)
    return b"%08x %s\n" % (zlib.crc32(body), body)


def read(path: Path) -> Iterator[Record]:
    """Records of a journal file in order; nothing if there is no file.

    Raises:
        ConfigurationError: a line other than the last is damaged; the text has its number.
    """
    for record, _size in _read(path):
        yield record


def _read(path: Path) -> Iterator[tuple[Record, int]]:
    """Records with the number of bytes they take in the file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    lines = data.split(b"\n")
    rest = lines.pop()
    for number, line in enumerate(lines, 1):
        record = decode(line)
        if record is None:
            if number == len(lines) and not rest and b"\0" in line:
                return
            raise errors.ConfigurationError(
                f"{path} is damaged at line {number}; nothing was changed. Restore the file from"
                " another master candidate, or move it away to go back to the last checkpoint"
            )
        yield record, len(line) + 1


def decode(line: bytes) -> Record | None:
    """The record of a line without its end; None when it is damaged."""
    checksum, _, body = line.partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(body):
            return None
        record = jsonio.loads(body)
    except (ValueError, errors.ParseError):
        return None
    return record if isinstance(record, dict) else None


class Journal:
    """Appends records to a file and flushes them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._size = 0

    def open(self) -> None:
        """Open for appending; cuts off a torn last line."""
        valid = sum(size for _record, size in _read(self.path))
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(fd, valid)
        os.lseek(fd, valid, os.SEEK_SET)
        files.fsync_dir(self.path.parent)
        self._fd, self._size = fd, valid

    def append(self, records: Sequence[Record]) -> None:
        """Write records and flush them to disk; on failure the file is as before.

        Raises:
            FileError: the disk is full or the file cannot be written.
        """
        self.append_lines(b"".join(encode(record) for record in records))

    def append_lines(self, data: bytes) -> None:
        """Like :meth:`append` for lines that are encoded already."""
        assert self._fd is not None
        try:
            with files.writing(self.path, len(data)):
                view = memoryview(data)
                while view:
                    view = view[os.write(self._fd, view) :]
                os.fsync(self._fd)
        except OSError as err:
            with contextlib.suppress(OSError):  # the torn line is found when it is read
                self.cut(self._size)
            raise errors.FileError(
                f"nothing was changed: {errors.text(files.failure(err))}"
            ) from err
        self._size += len(data)

    def cut(self, size: int) -> None:
        """Take back what was appended after the journal had ``size`` bytes; durable at return."""
        assert self._fd is not None
        os.ftruncate(self._fd, size)
        os.lseek(self._fd, size, os.SEEK_SET)
        os.fsync(self._fd)
        self._size = size

    @property
    def size(self) -> int:
        """Bytes written since the last checkpoint."""
        return self._size

    def restart(self) -> None:
        """Begin an empty journal; everything in it is part of a checkpoint now."""
        assert self._fd is not None
        os.ftruncate(self._fd, 0)
        os.lseek(self._fd, 0, os.SEEK_SET)
        os.fsync(self._fd)
        self._size = 0

    def begin(self, size: int) -> bytes:
        """The first bytes of the file."""
        with self.path.open("rb") as file:
            return file.read(size)

    def drop(self, size: int) -> None:
        """Forget the first bytes, which are part of a checkpoint now; what came later stays.

        Must not run at the same time as an append. Durable at return.

        Raises:
            OSError: the disk is full; the journal is as before.
        """
        if size == self._size:
            self.restart()
            return
        rest = self.path.read_bytes()[size : self._size]
        try:
            files.write_atomic(self.path, rest, mode=0o600)
        finally:  # even a failure may come after the old file was replaced
            self._follow(len(rest))

    def _follow(self, size: int) -> None:
        """If there is another file now, with ``size`` bytes, append to that one."""
        assert self._fd is not None
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        if os.path.samestat(os.fstat(fd), os.fstat(self._fd)):
            os.close(fd)
            return
        os.close(self._fd)
        self._fd, self._size = fd, size
        os.lseek(fd, size, os.SEEK_SET)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd, self._size = None, 0

"""Node calls that write into disks: zeros, an image, the content of another disk."""

from __future__ import annotations

import errno
import logging
import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ganeti import errors
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.rpc.objects import NodeDisk
from ganeti.storage import space

log = logging.getLogger(__name__)

MIB = 1024 * 1024
#: Bytes written at once.
_CHUNK = 4 * MIB


class DiskContent:
    """Writes into the disks of this node."""

    def __init__(self, context: NodeContext, disks: Disks) -> None:
        self._stopping = context.stopping
        self._disks = disks

    def wipe(self, disk: NodeDisk, offset: int, size: int) -> None:
        """Write zeros over a part (MiB) of a disk; BlockDeviceError. See :func:`wipe`."""
        found = self._disks.existing(disk)
        if not found.traits.mirrored:
            found.assemble()
        wipe(found.path, offset, size, self._stopping)

    def convert(self, source: NodeDisk, target: NodeDisk) -> None:
        """Copy a disk into another; BlockDeviceError. See :func:`copy`."""
        reading, writing = self._disks.existing(source), self._disks.existing(target)
        log.info("copying disk %s to %s", reading.path, writing.path)
        copy(reading.path, writing.path, source.size, self._stopping)


def wipe(path: str, offset: int, size: int, stopping: threading.Event) -> None:
    """Write zeros over ``size`` MiB of a disk, from ``offset`` MiB on; durable when it returns.

    Blocks as long as the disk needs; the stop of the daemon ends it with an error.

    Raises:
        BlockDeviceError: the part does not lie in the disk, or writing failed.
    """
    if offset < 0 or size < 0:
        raise errors.BlockDeviceError(f"cannot wipe {size} MiB at {offset} MiB of {path}")
    whole = space.device_size(path)
    if (offset + size) * MIB > whole:
        raise errors.BlockDeviceError(
            f"cannot wipe up to {offset + size} MiB of {path}: it has {whole // MIB} MiB"
        )
    # Anonymous memory is zero, and lies on a page as writing past the cache demands.
    with _output(path, past_cache=True) as target, mmap.mmap(-1, _CHUNK) as zeros:
        position, end = offset * MIB, (offset + size) * MIB
        while position < end:
            _go_on(stopping, path)
            with memoryview(zeros) as view, view[: end - position] as part:
                position += os.pwrite(target, part, position)
        os.fsync(target)


def copy(source: str, target: str, size: int, stopping: threading.Event) -> None:
    """Copy the first ``size`` MiB of a file or device into a disk; durable when it returns.

    A source that is shorter is copied whole. Blocks as long as the disks need.

    Raises:
        BlockDeviceError: the disk is smaller than what is to be copied, or copying failed.
    """
    amount = min(size * MIB, space.device_size(source))
    room = space.device_size(target)
    if amount > room:
        raise errors.BlockDeviceError(
            f"cannot copy {amount // MIB} MiB of {source} to {target}: it has {room // MIB} MiB"
        )
    with _input(source) as reading, _output(target) as writing, mmap.mmap(-1, _CHUNK) as buffer:
        position = 0
        while position < amount:
            _go_on(stopping, target)
            with memoryview(buffer) as view:
                with view[: amount - position] as part:
                    read = os.preadv(reading, [part], position)
                if not read:
                    raise errors.BlockDeviceError(
                        f"{source} ended at {position} bytes while it was copied"
                    )
                with view[:read] as data:
                    _write_all(writing, data, position)
            position += read
        os.fsync(writing)


def _write_all(target: int, data: memoryview, position: int) -> None:
    done = 0
    while done < len(data):
        with data[done:] as rest:
            done += os.pwrite(target, rest, position + done)


def _go_on(stopping: threading.Event, path: str) -> None:
    if stopping.is_set():
        raise errors.BlockDeviceError(f"writing to {path} ended early: the daemon stops")


@contextmanager
def _input(path: str) -> Iterator[int]:
    with _told("read", path):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)


@contextmanager
def _output(path: str, *, past_cache: bool = False) -> Iterator[int]:
    """A disk opened for writing; ``past_cache`` where its file system can do that."""
    with _told("write to", path):
        flags = os.O_WRONLY | os.O_CLOEXEC
        try:
            fd = os.open(path, flags | (os.O_DIRECT if past_cache else 0))
        except OSError as err:
            if err.errno != errno.EINVAL:
                raise
            fd = os.open(path, flags)
        try:
            yield fd
        finally:
            os.close(fd)


@contextmanager
def _told(verb: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot {verb} {path}: {err.strerror}") from err

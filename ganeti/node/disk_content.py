"""Node calls that write into disks: zeros, an image, the content of another disk."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ganeti import errors
from ganeti.base import sparse
from ganeti.node.context import NodeContext
from ganeti.node.copying import Copies, Progress
from ganeti.node.disks import Disks
from ganeti.rpc.calls.disk_content import DiskContentCalls
from ganeti.rpc.objects import NodeDisk
from ganeti.storage import measure
from ganeti.storage.interface import Device

log = logging.getLogger(__name__)

MIB = 1024 * 1024


class DiskContent(DiskContentCalls):
    """Writes into the disks of this node."""

    def __init__(self, context: NodeContext, disks: Disks, copies: Copies) -> None:
        self._stopping = context.stopping
        self._disks = disks
        self._copies = copies

    def blockdev_wipe(self, disk: NodeDisk, offset: int, size: int) -> None:
        """Make a part (MiB) of a disk zero; BlockDeviceError. See :func:`wipe`."""
        found = self._disks.find_existing(disk)
        if not found.traits.mirrored:
            found.assemble()
        wipe(found.path, offset, size, self._stopping)

    def disk_convert(self, source: NodeDisk, target: NodeDisk) -> str:
        """Begin to copy a disk into another; BlockDeviceError. See :func:`copy`."""
        reading, writing = self._disks.find_existing(source), self._disks.find_existing(target)
        log.info("copying disk %s to %s", reading.path, writing.path)
        return self._copies.begin(
            lambda progress: copy(reading.path, writing.path, source.size, progress)
        )

    def disk_revert(self, source: NodeDisk, target: NodeDisk) -> str:
        """Begin to copy what differs between two disks; BlockDeviceError. See :func:`copy`."""
        reading, writing = self._disks.find_existing(source), self._disks.find_existing(target)
        log.info("making disk %s equal to %s", writing.path, reading.path)
        return self._copies.begin(lambda progress: _revert(reading, writing, source.size, progress))


def _revert(reading: Device, writing: Device, size: int, progress: Progress) -> None:
    for device in (reading, writing):
        if not device.traits.mirrored:
            device.assemble()
    copy(reading.path, writing.path, size, progress, only_changed=True)


def wipe(path: str, offset: int, size: int, stopping: threading.Event) -> None:
    """Make ``size`` MiB of a disk zero, from ``offset`` MiB on; durable when it returns.

    Blocks as long as the disk needs; the stop of the daemon ends it with an error.

    Raises:
        BlockDeviceError: the part does not lie in the disk, or writing failed.
    """
    if offset < 0 or size < 0:
        raise errors.BlockDeviceError(f"cannot wipe {size} MiB at {offset} MiB of {path}")
    whole = measure.device_size(path)
    if (offset + size) * MIB > whole:
        raise errors.BlockDeviceError(
            f"cannot wipe up to {offset + size} MiB of {path}: it has {whole // MIB} MiB"
        )
    with _output(path) as target:
        for _step in sparse.clear(target, offset * MIB, size * MIB):
            if stopping.is_set():
                raise errors.BlockDeviceError(f"writing to {path} ended early: the daemon stops")
        os.fsync(target)


def copy(
    source: str, target: str, size: int, progress: Progress, *, only_changed: bool = False
) -> None:
    """Copy the first ``size`` MiB of a file or device into a disk; durable when it returns.

    A source that is shorter is copied whole. Where the source is zero the target is made zero.
    With ``only_changed`` the target is read first, and written only where it differs.

    Raises:
        BlockDeviceError: the disk is smaller than what is to be copied, or copying failed.
    """
    amount = min(size * MIB, measure.device_size(source))
    room = measure.device_size(target)
    if amount > room:
        raise errors.BlockDeviceError(
            f"cannot copy {amount // MIB} MiB of {source} to {target}: it has {room // MIB} MiB"
        )
    progress.size = amount
    with _open("read", source, os.O_RDONLY) as reading, _output(target) as writing:
        position = 0
        for piece in sparse.pieces(reading, amount):
            if only_changed:
                written = sparse.write_changed(writing, position, piece)
                progress.add(written)
                progress.add(piece.size - written, zeros=True)
            elif piece.data is None:
                for step in sparse.clear(writing, position, piece.size):
                    progress.add(step, zeros=True)
            else:
                sparse.write(writing, position, piece.data)
                progress.add(piece.size)
            position += piece.size
        os.fsync(writing)


def _output(path: str) -> AbstractContextManager[int]:
    return _open("write to", path, os.O_RDWR)


@contextmanager
def _open(verb: str, path: str, flags: int) -> Iterator[int]:
    try:
        fd = os.open(path, flags | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)
    except OSError as err:
        raise errors.BlockDeviceError(f"cannot {verb} {path}: {err.strerror}") from err

"""Node calls about the state of mirrored disks."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from ganeti import errors
from ganeti.node.disks import Disks
from ganeti.rpc.calls.disk_states import DiskStateCalls
from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.storage.interface import Resyncing

log = logging.getLogger(__name__)


class DiskStates(DiskStateCalls):
    """Looks at disks together with what they are built on."""

    def __init__(self, disks: Disks) -> None:
        self._disks = disks

    def blockdev_getmirrorstatus(self, disks: list[NodeDisk]) -> list[BlockDevStatus]:
        """State of each disk, no better than that of its children.

        Raises:
            BlockDeviceError: one is not on this node, or cannot be asked.
        """
        return [self._state(disk) for disk in disks]

    def blockdev_getmirrorstatus_multi(
        self, disks: list[NodeDisk]
    ) -> list[tuple[bool, BlockDevStatus | str]]:
        """State of each disk with true, or false and a text for one that cannot be asked."""
        return [self._try(disk) for disk in disks]

    def _try(self, disk: NodeDisk) -> tuple[bool, BlockDevStatus | str]:
        try:
            return True, self._state(disk)
        except (errors.BlockDeviceError, errors.FileStoragePathError) as err:
            log.warning("disk %s: %s", disk.uuid, errors.text(err))
            return False, errors.text(err)

    def _state(self, disk: NodeDisk) -> BlockDevStatus:
        own = self._disks.find_existing(disk).status()
        return combine(own, [self._state(child) for child in disk.children])

    def blockdev_pause_resume_sync(
        self, disks: list[NodeDisk], pause: bool
    ) -> list[tuple[bool, str | None]]:
        """Hold up or go on with synchronising; true, or false and a text, for each disk.

        Nothing to do for a disk that is not mirrored.
        """
        result: list[tuple[bool, str | None]] = []
        for disk in disks:
            try:
                found = self._disks.find_existing(disk)
                if isinstance(found, Resyncing):
                    found.pause_resync(pause)
                result.append((True, None))
            except (errors.BlockDeviceError, errors.FileStoragePathError) as err:
                result.append((False, errors.text(err)))
        return result


def combine(own: BlockDevStatus, children: Sequence[BlockDevStatus]) -> BlockDevStatus:
    """The state of a disk made worse by what it is built on. Pure."""
    result = own
    for child in children:
        percents = [p for p in (result.sync_percent, child.sync_percent) if p is not None]
        times = [t for t in (result.estimated_time, child.estimated_time) if t is not None]
        result = msgspec.structs.replace(
            result,
            sync_percent=min(percents, default=None),
            estimated_time=max(times, default=None),
            is_degraded=result.is_degraded or child.is_degraded,
            ldisk_status=max(result.ldisk_status, child.ldisk_status),
        )
    return result

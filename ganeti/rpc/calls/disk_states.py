"""Node calls about the state of mirrored disks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.rpc.timing import NORMAL, call


class DiskStateCalls(ABC):
    """Answered by :class:`ganeti.node.disk_states.DiskStates`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_getmirrorstatus(self, disks: list[NodeDisk]) -> list[BlockDevStatus]:
        """State of disks together with what they are built on."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_getmirrorstatus_multi(
        self, disks: list[NodeDisk]
    ) -> list[tuple[bool, BlockDevStatus | str]]:
        """State of disks, with a text in place of one that cannot be asked."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_pause_resume_sync(
        self, disks: list[NodeDisk], pause: bool
    ) -> list[tuple[bool, str | None]]:
        """Hold up or go on with synchronising mirrored disks; success and text for each."""

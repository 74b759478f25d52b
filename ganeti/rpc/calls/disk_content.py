"""Node calls that write into disks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import NodeDisk
from ganeti.rpc.timing import NORMAL, SLOW, call


class DiskContentCalls(ABC):
    """Answered by :class:`ganeti.node.disk_content.DiskContent`."""

    @abstractmethod
    @call(timeout=SLOW)
    def blockdev_wipe(self, disk: NodeDisk, offset: int, size: int) -> None:
        """Write zeros over ``size`` MiB of a disk from ``offset`` MiB on."""

    @abstractmethod
    @call(timeout=NORMAL)
    def disk_revert(self, source: NodeDisk, target: NodeDisk) -> str:
        """Begin to make the content of a disk equal to that of another, writing what differs.

        Both are assembled, unless they are mirrored, and stay so. Returns the name of the copy, as
        :meth:`disk_convert` does.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def disk_convert(self, source: NodeDisk, target: NodeDisk) -> str:
        """Begin to copy the content of a disk into another one that is not smaller.

        Returns the name of the copy for :meth:`ganeti.rpc.calls.copying.CopyCalls.copy_status`.
        """

"""Node calls about the link between the two sides of mirrored disks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import NodeDisk
from ganeti.rpc.timing import NORMAL, SLOW, URGENT, call


class MirrorCalls(ABC):
    """Answered by :class:`ganeti.node.mirrors.Mirrors`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_addchildren(self, disk: NodeDisk, children: list[NodeDisk]) -> None:
        """Give a mirrored disk without volumes new ones, which its other side then fills."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_removechildren(self, disk: NodeDisk, children: list[NodeDisk]) -> None:
        """Let a mirrored disk go on without its volumes."""

    @abstractmethod
    @call(timeout=NORMAL)
    def drbd_attach_net(self, disks: list[NodeDisk], two_primaries: bool) -> None:
        """Connect DRBD disks to the other node and wait until they are; call both nodes at once.

        With ``multimaster`` both nodes may be primary then, as a live migration needs.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def drbd_disconnect_net(self, disks: list[NodeDisk]) -> None:
        """Let DRBD disks work without the other node."""

    @abstractmethod
    @call(timeout=SLOW)
    def drbd_wait_sync(self, disks: list[NodeDisk]) -> tuple[bool, float]:
        """Whether all DRBD disks are in sync, and percent of the one furthest behind.

        Waits until they are connected, not until they are in sync: ask again.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def drbd_needs_activation(self, disks: list[NodeDisk]) -> list[str]:
        """Uuids of DRBD disks that are not active, without data, or not connected for good."""

    @abstractmethod
    @call(timeout=URGENT)
    def drbd_helper(self) -> str:
        """The user-mode helper of the node's DRBD module."""

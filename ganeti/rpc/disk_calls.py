"""Node calls about disks; part of :class:`~ganeti.rpc.calls.NodeCalls`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.rpc.objects import BlockDevStatus, CopyStatus, NodeDisk, NodeInstance
from ganeti.rpc.timing import FAST, NORMAL, SLOW, URGENT, call

Json = dict[str, Any]


class DiskCalls(ABC):
    """What the master may ask of a node's disks. Raises as :class:`~ganeti.rpc.calls.NodeCalls`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_create(
        self,
        bdev: NodeDisk,
        size: int,
        owner: str,
        on_primary: bool,
        info: str,
        exclusive_storage: bool,
    ) -> list[Any] | None:
        """Make a disk; refuses when it exists."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_remove(self, bdev: NodeDisk) -> None:
        """Destroy a disk; no error when it is gone."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_assemble(
        self, disk: NodeDisk, instance: NodeInstance, on_primary: bool, idx: int
    ) -> tuple[str, str, str | None]:
        """Make a disk usable: device path, link below ``instance-disks``, address or None."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_shutdown(self, disk: NodeDisk) -> None:
        """Undo :meth:`blockdev_assemble`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_find(self, disk: NodeDisk) -> BlockDevStatus | None:
        """State of a disk, None when it is not there."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_getdimensions(self, disks: list[NodeDisk]) -> list[tuple[int, int | None] | None]:
        """Size in bytes and spindles of disks, None for one that is not there."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_rename(self, devlist: list[tuple[NodeDisk, list[Any]]]) -> None:
        """Give disks new logical ids."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_grow(
        self, cf_bdev: NodeDisk, amount: int, dryrun: bool, backingstore: bool, es_flag: bool
    ) -> None:
        """Add ``amount`` MiB to a disk."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_open(self, instance_name: str, disks: list[NodeDisk], exclusive: bool) -> None:
        """Allow writing on this node, and make the links of the disks."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_close(self, instance_name: str, disks: list[NodeDisk]) -> None:
        """Forbid writing on this node, and remove the links of the disks."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_snapshot(
        self, cf_bdev: NodeDisk, snap_name: str | None, snap_size: int | None
    ) -> list[Any]:
        """Freeze the content of a disk; the logical id of the copy."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_setinfo(self, disk: NodeDisk, info: str) -> None:
        """Note a text beside the data of a disk, where it has a place for it."""

    @abstractmethod
    @call(timeout=SLOW)
    def blockdev_wipe(self, bdev: NodeDisk, offset: int, size: int) -> None:
        """Write zeros over ``size`` MiB of a disk from ``offset`` MiB on."""

    @abstractmethod
    @call(timeout=NORMAL)
    def disk_convert(self, source: NodeDisk, target: NodeDisk) -> str:
        """Begin to copy the content of a disk into another one that is not smaller.

        Gives the name of the copy for :meth:`copy_status`.
        """

    @abstractmethod
    @call(timeout=FAST)
    def disk_expect(self, disk: NodeDisk, address: str, compress: str) -> tuple[int, str]:
        """Wait at an address of this node for one sender of an assembled disk's content.

        Gives the port, and the token that the sender must know.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def disk_transfer(
        self, disk: NodeDisk, node: str, place: tuple[str, int], token: str, compress: str
    ) -> str:
        """Begin to send the content of an assembled disk to a node that waits at a place.

        Gives the name of the copy for :meth:`copy_status`.
        """

    @abstractmethod
    @call(timeout=URGENT)
    def copy_status(self, copy: str) -> CopyStatus:
        """How far a copy is; waits up to 2 s for its end, and refuses with why it failed.

        A copy about which nobody asks for five minutes ends.
        """

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_getmirrorstatus(self, disks: list[NodeDisk]) -> list[BlockDevStatus]:
        """State of disks together with what they are built on."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_getmirrorstatus_multi(
        self, node_disks: list[NodeDisk]
    ) -> list[tuple[bool, BlockDevStatus | str]]:
        """State of disks, with a text in place of one that cannot be asked."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_pause_resume_sync(
        self, disks: list[NodeDisk], pause: bool
    ) -> list[tuple[bool, str | None]]:
        """Hold up or go on with synchronising mirrored disks; success and text for each."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_addchildren(self, bdev: NodeDisk, ndevs: list[NodeDisk]) -> None:
        """Give a mirrored disk without volumes new ones, which its other side then fills."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_removechildren(self, bdev: NodeDisk, ndevs: list[NodeDisk]) -> None:
        """Let a mirrored disk go on without its volumes."""

    @abstractmethod
    @call(timeout=NORMAL)
    def drbd_attach_net(self, disks: list[NodeDisk], multimaster: bool) -> None:
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

    @abstractmethod
    @call(timeout=URGENT)
    def bdev_sizes(self, devices: list[str]) -> dict[str, int]:
        """MiB of block devices below ``/dev``; what is none is left out."""

"""Node calls about the life of a disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.rpc.objects import BlockDevStatus, NodeDisk, NodeInstance
from ganeti.rpc.timing import NORMAL, call


class DiskCalls(ABC):
    """Answered by :class:`ganeti.node.disks.Disks`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_create(
        self,
        disk: NodeDisk,
        size: int,
        owner: str,
        on_primary: bool,
        info: str,
        exclusive_storage: bool,
    ) -> list[Any] | None:
        """Make a disk; refuses when it exists."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_remove(self, disk: NodeDisk) -> None:
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
    def blockdev_rename(self, renames: list[tuple[NodeDisk, list[Any]]]) -> None:
        """Give disks new logical ids."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_grow(
        self,
        disk: NodeDisk,
        amount: int,
        dry_run: bool,
        backing_store: bool,
        exclusive_storage: bool,
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
        self, disk: NodeDisk, snap_name: str | None, snap_size: int | None
    ) -> list[Any]:
        """Freeze the content of a disk; the logical id of the copy."""

    @abstractmethod
    @call(timeout=NORMAL)
    def blockdev_setinfo(self, disk: NodeDisk, info: str) -> None:
        """Note a text beside the data of a disk, where it has a place for it."""

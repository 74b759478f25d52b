"""Node calls about storage units and directories for file disks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.rpc.objects import ExtStorageInfo
from ganeti.rpc.timing import FAST, NORMAL, URGENT, call


class StorageCalls(ABC):
    """Answered by :class:`ganeti.node.storage.Storage`."""

    @abstractmethod
    @call(timeout=URGENT)
    def vg_list(self) -> dict[str, int]:
        """Volume groups with their sizes."""

    @abstractmethod
    @call(timeout=URGENT)
    def lv_list(self, groups: list[str]) -> dict[str, tuple[str, bool, bool]]:
        """``group/volume`` of volume groups (none: all): size as text, inactive, in use."""

    @abstractmethod
    @call(timeout=FAST)
    def node_volumes(self) -> list[JsonObject]:
        """Logical volumes, ``{name, size, dev, vg}`` for each physical volume they lie on."""

    @abstractmethod
    @call(timeout=URGENT)
    def bdev_sizes(self, devices: list[str]) -> dict[str, int]:
        """MiB of block devices below ``/dev``; what is none is left out."""

    @abstractmethod
    @call(timeout=NORMAL)
    def storage_list(
        self, su_name: str, su_args: list[Any], name: str | None, fields: list[str]
    ) -> list[list[Any]]:
        """Storage units of the type ``su_name``, the values of the fields for each."""

    @abstractmethod
    @call(timeout=NORMAL)
    def storage_modify(
        self, su_name: str, su_args: list[Any], name: str, changes: JsonObject
    ) -> None:
        """Change a storage unit."""

    @abstractmethod
    @call(timeout=NORMAL)
    def storage_execute(self, su_name: str, su_args: list[Any], name: str, op: str) -> None:
        """Run an operation on a storage unit."""

    @abstractmethod
    @call(timeout=FAST)
    def extstorage_diagnose(self) -> list[ExtStorageInfo]:
        """All providers of external storage found here, valid or not."""

    @abstractmethod
    @call(timeout=FAST)
    def file_storage_dir_create(self, file_storage_dir: str) -> None:
        """Make a directory for file disks."""

    @abstractmethod
    @call(timeout=FAST)
    def file_storage_dir_remove(self, file_storage_dir: str) -> None:
        """Remove an empty directory for file disks; no error when it is gone."""

    @abstractmethod
    @call(timeout=FAST)
    def file_storage_dir_rename(self, old_file_storage_dir: str, new_file_storage_dir: str) -> None:
        """Rename a directory for file disks."""

"""Node calls about storage units: volume groups, physical and logical volumes, directories."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.node.context import NodeContext
from ganeti.node.disks import Disks
from ganeti.rpc.calls.storage import StorageCalls
from ganeti.rpc.objects import ExtStorageInfo
from ganeti.storage import external_provider, file_paths, measure, units
from ganeti.storage.lvm import report

log = logging.getLogger(__name__)

MIB = 1024 * 1024


class Storage(StorageCalls):
    """The storage of this node for disks."""

    def __init__(self, context: NodeContext, disks: Disks) -> None:
        self._context = context
        self._disks = disks

    def vg_list(self) -> dict[str, int]:
        """Volume groups with their sizes in MiB. BlockDeviceError."""
        return {group.vg_name: group.vg_size // MIB for group in report.groups()}

    def lv_list(self, groups: list[str]) -> dict[str, tuple[str, bool, bool]]:
        """``group/volume`` of some groups (none given: all): size as text, inactive, in use.

        Volumes without data (an error segment in place of a lost disk) are left out. Size is in
        MiB with two decimals. BlockDeviceError.
        """
        return {
            f"{volume.vg_name}/{volume.lv_name}": (
                f"{volume.lv_size / MIB:.2f}",
                not volume.is_active,
                volume.is_open,
            )
            for volume in report.volumes(groups)
            if not volume.is_virtual
        }

    def node_volumes(self) -> list[JsonObject]:
        """Every volume once for each physical volume that it lies on. BlockDeviceError."""
        return [
            {
                "name": volume.lv_name,
                "size": f"{volume.lv_size / MIB:.2f}",
                "dev": disk,
                "vg": volume.vg_name,
            }
            for volume in report.volumes()
            for disk in volume.disks
        ]

    def physicals(self, groups: Sequence[str]) -> list[JsonObject]:
        """Physical volumes of some groups; ``attributes`` of lost ones end in ``m``.

        Raises:
            BlockDeviceError: LVM cannot tell.
        """
        return [
            {
                "name": item.pv_name,
                "vg_name": item.vg_name,
                "size": item.pv_size // MIB,
                "free": item.pv_free // MIB,
                "attributes": item.pv_attr,
            }
            for item in report.physicals()
            if item.vg_name in groups
        ]

    def shared_physicals(self, groups: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Physical volumes with more than one volume on them. BlockDeviceError."""
        return [
            (use.name, list(use.volumes))
            for use in report.uses()
            if use.group in groups and len(use.volumes) > 1
        ]

    def extstorage_diagnose(self) -> list[ExtStorageInfo]:
        """Providers of external storage on this node, in the order of the search path."""
        return external_provider.diagnose(self._context.paths.extstorage_search_path)

    def bdev_sizes(self, devices: list[str]) -> dict[str, int]:
        """MiB of those that are block devices below ``/dev``; others are left out."""
        return {name: size // MIB for name in devices if (size := _size(name)) is not None}

    def storage_list(
        self, su_name: str, su_args: list[Any], name: str | None, fields: list[str]
    ) -> list[list[Any]]:
        """Fields of the storage units of one type; StorageError, BlockDeviceError."""
        return units.list_units(su_name, su_args, name, fields, self._disks.environment())

    def storage_modify(
        self, su_name: str, su_args: list[Any], name: str, changes: JsonObject
    ) -> None:
        """Change a storage unit; StorageError, BlockDeviceError."""
        units.modify(su_name, name, changes)
        log.info("changed storage unit %s %s: %s", su_name, name, changes)

    def storage_execute(self, su_name: str, su_args: list[Any], name: str, op: str) -> None:
        """Run an operation on a storage unit; StorageError, BlockDeviceError."""
        log.info("operation %s on storage unit %s %s", op, su_name, name)
        units.execute(su_name, name, op)

    def file_storage_dir_create(self, file_storage_dir: str) -> None:
        """Make a directory for file disks; FileStoragePathError, BlockDeviceError."""
        file_paths.create_directory(self._convert_path(file_storage_dir), self._disks.environment())

    def file_storage_dir_remove(self, file_storage_dir: str) -> None:
        """Remove an empty directory; FileStoragePathError, BlockDeviceError."""
        file_paths.remove_directory(self._convert_path(file_storage_dir), self._disks.environment())

    def file_storage_dir_rename(self, old_file_storage_dir: str, new_file_storage_dir: str) -> None:
        """Rename a directory; FileStoragePathError, BlockDeviceError."""
        file_paths.rename_directory(
            self._convert_path(old_file_storage_dir),
            self._convert_path(new_file_storage_dir),
            self._disks.environment(),
        )

    def _convert_path(self, path: str) -> str:
        return self._context.paths.local(path)


def _size(device: str) -> int | None:
    """Bytes of a block device; None for anything else."""
    real = os.path.realpath(device)
    if not device.startswith("/dev/") or not real.startswith("/dev/"):
        return None
    try:
        if not stat.S_ISBLK(os.stat(real).st_mode):
            return None
        return measure.device_size(real)
    except (OSError, errors.BlockDeviceError) as err:
        log.info("device %s: %s", device, err)
        return None

"""How much room disks take in the storage units of their nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ganeti.model.disk import Disk
from ganeti.storage.registry import traits_of


def needs(disks: Iterable[Disk]) -> dict[tuple[str, str], int]:
    """MiB that disks take of each storage unit (type, name) of one node.

    A disk without type or place takes none yet.
    """
    result: dict[tuple[str, str], int] = {}
    for disk in disks:
        if disk.children:
            parts = needs(disk.children)
        else:
            parts = _sum_own(disk)
        for key, size in parts.items():
            result[key] = result.get(key, 0) + size
    return result


def _sum_own(disk: Disk) -> dict[tuple[str, str], int]:
    if not disk.logical_id:
        return {}
    traits = traits_of(disk.dev_type)
    kind = traits.space_checked_as
    if kind is None:
        return {}
    name = str(disk.logical_id[0])
    if traits.file_based:
        name = str(Path(disk.logical_id[1]).parent)
    return {(kind, name): disk.size + traits.overhead}


def spindles(disks: Iterable[Disk]) -> dict[tuple[str, str], int]:
    """Whole physical disks that disks take of each volume group, as storage unit of one node.

    Counts where storage is exclusive; what a mirror keeps beside its data takes none.
    """
    result: dict[tuple[str, str], int] = {}
    for disk in disks:
        data = disk.children[0] if disk.children else disk
        if disk.spindles and traits_of(data.dev_type).is_volume and data.logical_id:
            key = ("lvm-pv", str(data.logical_id[0]))
            result[key] = result.get(key, 0) + disk.spindles
    return result

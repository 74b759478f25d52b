"""How much room disks take in the storage units of their nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ganeti.model.disk import Disk
from ganeti.storage.registry import TEMPLATES


def needs(disks: Iterable[Disk]) -> dict[tuple[str, str], int]:
    """MiB that disks take of each storage unit (type, name) of one node.

    A disk without type or place takes none yet.
    """
    result: dict[tuple[str, str], int] = {}
    for disk in disks:
        if disk.children:
            parts = needs(disk.children)
        else:
            parts = _own(disk)
        for key, size in parts.items():
            result[key] = result.get(key, 0) + size
    return result


def _own(disk: Disk) -> dict[tuple[str, str], int]:
    if disk.dev_type is None or not disk.logical_id:
        return {}
    traits = TEMPLATES.get(disk.dev_type).traits
    kind = traits.space_checked_as
    if kind is None:
        return {}
    name = str(disk.logical_id[0])
    if traits.file_based:
        name = str(Path(disk.logical_id[1]).parent)
    return {(kind, name): disk.size}

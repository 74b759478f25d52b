"""Capacity of each node that forthcoming instances and disks hold. Pure.

No node knows of them, so callers that ask a node what is free subtract this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.storage import room
from ganeti.storage.registry import TEMPLATES

#: Storage types whose units are directories of instances in one file system.
_DIRECTORIES = ("file", "sharedfile")


@dataclass(frozen=True)
class Held:
    """An amount and who holds it (handles of instances, or uuids of disks)."""

    amount: int = 0
    by: tuple[str, ...] = ()


def _sum(parts: Iterable[tuple[int, str]]) -> Held:
    found = [(amount, who) for amount, who in parts if amount]
    return Held(
        sum(amount for amount, _who in found), tuple(dict.fromkeys(who for _amount, who in found))
    )


def memory(config: Config, node: str, without: Collection[str] = ()) -> Held:
    """MiB on a node (uuid) for guests to come; ``without`` are uuids of instances left out."""
    return _sum(
        (int(config.beparams(item)["maxmem"]), item.handle)
        for item in instances(config, node)
        if item.uuid not in without
    )


def vcpus(config: Config, node: str) -> Held:
    """Virtual processors of guests to come on a node (uuid)."""
    return _sum(
        (int(config.beparams(item)["vcpus"]), item.handle) for item in instances(config, node)
    )


def spindles(config: Config, node: str) -> Held:
    """Spindles of disks to come on a node (uuid)."""
    return _sum((disk.spindles or 0, who) for disk, who in disks(config, node))


def space(config: Config, node: str, unit: tuple[str, str], without: Collection[str] = ()) -> Held:
    """MiB, or spindles, of a storage unit (type, name) of a node (uuid) for disks to come."""
    return _sum((_share(disk, unit), who) for disk, who in disks(config, node, without))


def all_space(config: Config, node: str) -> Held:
    """MiB on a node (uuid) for disks to come, in whatever unit."""
    return _sum((_size(disk), who) for disk, who in disks(config, node))


def _size(disk: Disk) -> int:
    """MiB that a disk takes on a node, with what it is built on."""
    return sum(map(_size, disk.children)) if disk.children else disk.size


def _share(disk: Disk, unit: tuple[str, str]) -> int:
    kind, name = unit
    if kind == "lvm-pv":
        return room.spindles([disk]).get(unit, 0)
    return sum(
        size
        for (other, where), size in room.needs([disk]).items()
        if other == kind and (where == name or kind in _DIRECTORIES)
    )


def instances(config: Config, node: str) -> list[Instance]:
    """Forthcoming instances that are to run on a node (uuid)."""
    return [item for item in config.forthcoming if item.primary_node == node]


def disks(config: Config, node: str, without: Collection[str] = ()) -> list[tuple[Disk, str]]:
    """Forthcoming disks that are to lie on a node, or on all, and whose they are."""
    if not config.forthcoming_disks:
        return []
    owners = {str(uuid): item for item in config.forthcoming for uuid in item.disks}
    found: list[tuple[Disk, str]] = []
    for disk in config.forthcoming_disks:
        owner = owners.get(disk.uuid)
        if owner is not None and owner.uuid in without:
            continue
        if node in disk.nodes or (not disk.nodes and _is_everywhere(disk)):
            found.append((disk, disk.uuid if owner is None else owner.handle))
    return found


def _is_everywhere(disk: Disk) -> bool:
    """Whether every node sees a disk; one that has no place yet is nowhere."""
    return bool(
        disk.dev_type is not None and disk.logical_id and TEMPLATES.get(disk.dev_type).traits.shared
    )

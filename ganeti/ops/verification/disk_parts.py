"""Places of the disks of a node group and of their parts."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.storage.registry import traits_of

#: A disk on a node, and whose it is; None for one of its own.
Place = tuple[Node, Instance | None, Disk]


def places_of(config: Config, nodes: list[Node]) -> list[Place]:
    """Disks that should exist, on each of the nodes that should have them.

    A disk in a file that all nodes reach is checked where it is used, or on the first node.
    """
    owners: dict[str, Instance] = {
        uuid: item for item in config.instances.values() for uuid in item.disks
    }
    found: list[Place] = []
    for disk in config.disks.values():
        owner = owners.get(disk.uuid)
        if disk.forthcoming or (owner is not None and owner.forthcoming):
            continue
        homes = set(disk.nodes)
        traits = traits_of(disk.dev_type)
        if traits.file_based and traits.shared and nodes:
            homes = {nodes[0].uuid if owner is None else owner.primary_node}
        found += [(node, owner, disk) for node in nodes if node.uuid in homes]
    return found


def subject_of(owner: Instance | None, disk: Disk) -> tuple[str, str, str]:
    """Kind and name of what a finding is about, and the disk's name within it."""
    if owner is None:
        return "disk", disk.uuid, disk.name or "it"
    return "instance", owner.name, disk.iv_name


def is_measured(place: Place) -> bool:
    """Whether to ask for its size: the list of volumes says more about volumes.

    A detached mirror is not active, so only its volumes can be checked.
    """
    _node, owner, disk = place
    traits = traits_of(disk.dev_type)
    return not traits.is_volume and (owner is not None or not traits.mirrored)


def table_of(value: object) -> JsonObject:
    """Answer of a check by name; a check that failed as a whole answers with a text."""
    if value is None or isinstance(value, dict):
        return value or {}
    return {"check": str(value)}

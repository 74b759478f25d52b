"""Which nodes an instance can move to, by what its disks can do. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.ids import GroupUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.storage.registry import TEMPLATES


class Reach(Enum):
    """Nodes on which the data of an instance can be used."""

    #: on every node (shared storage, or no disks at all)
    ANYWHERE = "any node"
    #: on the primary and the secondary node
    MIRROR = "its secondary node"
    #: only where it is
    FIXED = "no other node"


def reach(config: Config, instance: Instance) -> Reach:
    """Return the nodes on which an instance can run without its data being copied."""
    traits = [
        TEMPLATES.get(disk.dev_type).traits
        for disk in config.disks_of(instance)
        if disk.dev_type is not None
    ]
    if all(item.shared for item in traits):
        return Reach.ANYWHERE
    if all(item.shared or item.mirrored for item in traits):
        return Reach.MIRROR
    return Reach.FIXED


def list_other_nodes(config: Config, instance: Instance) -> list[Node]:
    """Nodes beside the primary one that can run it as its disks are now, offline ones too."""
    match reach(config, instance):
        case Reach.ANYWHERE:
            found = [node for node in config.nodes.values() if node.vm_capable]
        case Reach.MIRROR:
            found = [config.nodes[uuid] for uuid in config.secondary_nodes(instance)]
        case Reach.FIXED:
            found = []
    return sorted(
        (node for node in found if node.uuid != instance.primary_node), key=lambda n: n.name
    )


def target(
    config: Config, instance: Instance, wanted: Node | None, *, sends_disks: bool = False
) -> Node | None:
    """The node that an instance moves to; None when an allocator has to choose it.

    ``sends_disks``: whether disks that are on one node only can be sent to a node that is named.

    Raises:
        OpPrereqError: the disks do not allow it.
    """
    name, secondaries = instance.name, config.secondary_nodes(instance)
    if wanted is not None and wanted.uuid == instance.primary_node and not secondaries:
        raise errors.make_invalid_error(f"instance {name} is on node {wanted.name} already")
    match reach(config, instance):
        case Reach.FIXED if wanted is None or not sends_disks:
            raise errors.make_state_error(_explain_fixed(config, instance))
        case Reach.FIXED if not secondaries:
            return wanted
        case Reach.MIRROR | Reach.FIXED:
            secondary = config.nodes[secondaries[0]]
            if wanted is not None and wanted.uuid not in secondaries:
                raise errors.make_invalid_error(
                    f"instance {name} can only go to its secondary node {secondary.name}, which"
                    f" has a copy of its disks; to use {wanted.name}, change the secondary node"
                    f" first: gnt-instance replace-disks --new-secondary {wanted.name} {name}"
                )
            return secondary
        case Reach.ANYWHERE:
            return wanted


def choose_other_groups(
    config: Config, subject: str, own: Collection[GroupUuid], names: Sequence[str] | None
) -> list[GroupUuid]:
    """The node groups (uuids) that instances of the groups ``own`` may go to: named ones or all.

    ``subject`` begins the text of an error; it names the instance of these groups.

    Raises:
        OpPrereqError: there is none, or one of them is its own.
    """
    wanted = [config.group(name) for name in names or ()]
    inside = [group.name for group in wanted if group.uuid in own]
    if inside:
        raise errors.make_invalid_error(f"{subject} in group {', '.join(inside)} already")
    groups = [group.uuid for group in wanted] or sorted(set(config.groups) - set(own))
    if not groups:
        raise errors.make_state_error("there is no other node group; gnt-group add creates one")
    return groups


def _explain_fixed(config: Config, instance: Instance) -> str:
    """Explain which disks keep an instance on its node, and what can be done."""
    disks = config.disks_of(instance)
    traits = {
        disk.uuid: TEMPLATES.get(disk.dev_type).traits
        for disk in disks
        if disk.dev_type is not None
    }
    held = [
        disk
        for disk in disks
        if disk.uuid in traits and not (traits[disk.uuid].shared or traits[disk.uuid].mirrored)
    ]
    which = "the disks"
    if len(held) < len(disks):
        which = ", ".join(f"{disk.iv_name} ({disk.dev_type})" for disk in held)
    primary = config.nodes[instance.primary_node]
    way = "gnt-instance move copies them to another node, with --live while it runs"
    if primary.offline:
        way = (
            f"they are back when {primary.name} is. If it never comes back, gnt-instance"
            f" recreate-disks -n NODE {instance.name} makes empty ones for a backup"
        )
    elif any(item.mirrored for item in traits.values()):
        way = "gnt-instance modify -t drbd mirrors them too, or detach them (gnt-disk detach)"
    template = config.disk_template(instance)
    return (
        f"{which} of instance {instance.name} (template {template}) are on its primary node only;"
        f" {way}"
    )

"""How much room disks take, and whether the nodes have it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ganeti.base.text import plural
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.ids import InstanceUuid, NodeUuid
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.ops.steps import node_checks
from ganeti.ops.steps.storage.disks import nodes_of
from ganeti.storage import room

#: (storage type, name of the unit) -> MiB
Needs = Mapping[tuple[str, str], int]


def growth(disk: Disk, amount: int) -> Disk:
    """A disk that stands for what another one grows by. Pure."""
    children: tuple[Disk, ...] = ()
    if disk.children:
        children = (growth(disk.children[0], amount),)
    return base.replace(disk, size=amount, children=children)


def check(
    ctx: Context,
    disks: Sequence[Disk],
    primary: NodeUuid,
    what: str,
    *,
    nodes: Iterable[NodeUuid] | None = None,
    without: Collection[InstanceUuid] | None = (),
) -> None:
    """Refuse when a node has too little room for disks; OpPrereqError.

    ``nodes`` (uuids) limits the question to some of the nodes that the disks name; for
    ``without`` see :func:`ganeti.ops.steps.node_checks.resources`.
    """
    only = None if nodes is None else set(nodes)
    per_node: dict[str, tuple[Node, list[Disk]]] = {}
    for disk in disks:
        for node in nodes_of(ctx.config, disk, primary):
            if only is None or node.uuid in only:
                per_node.setdefault(node.uuid, (node, []))[1].append(disk)
    for node, parts in per_node.values():
        wanted = room.needs(parts)
        if wanted:
            node_checks.resources(
                ctx,
                node,
                f"{what} ({plural(len(parts), 'disk')})",
                space=wanted,
                spindles=room.spindles(parts),
                without=without,
            )

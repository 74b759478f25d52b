"""Making one disk larger: first all its nodes say that they can, then all do it.

What has grown does not shrink again. ``instance`` is the one that has the disk, or what stands
for one that is attached to none; the disk's lock and that of its nodes' storage are held.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.config import quota
from ganeti.config.changes import Draft
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks
from ganeti.ops.steps.storage import disks, space, wipe
from ganeti.rpc.calls import NodeCalls


def amount(disk: Disk, what: str, given: int, *, absolute: bool) -> int:
    """MiB to add; OpPrereqError for a template that cannot grow and for less than there is."""
    if not disks.traits(disk).growable:
        raise errors.make_invalid_error(f"disks of template {disk.dev_type} cannot grow")
    added = given - disk.size if absolute else given
    if added < 0:
        raise errors.make_state_error(
            f"{what} has {disk.size} MiB; disks cannot shrink to {given} MiB"
        )
    return added


def check(ctx: Context, instance: Instance, disk: Disk, what: str, added: int) -> list[Node]:
    """The nodes of a disk, the primary last, if they are online and have the room."""
    quota.check_growth(ctx.author.limits, ctx.config, added)
    nodes = disks.nodes_of(ctx.config, disk, instance.primary_node)
    checks.all_online(nodes, f"to grow {what}")
    space.check(ctx, [space.growth(disk, added)], instance.primary_node, f"a larger {what}")
    return nodes


def grow(ctx: Context, instance: Instance, disk: Disk, what: str, added: int) -> Disk:
    """Grow an active disk and record it; returns it as it is then.

    Raises:
        OpExecError: it has grown on some nodes only; what is recorded and seen is the old size.
    """
    nodes = disks.nodes_of(ctx.config, disk, instance.primary_node)
    for node in nodes:
        _grow_on_node(ctx, disk, node, added, dry_run=True, backing=True)
    grown_nodes: list[str] = []
    for node in nodes:
        try:
            _grow_on_node(ctx, disk, node, added, dry_run=False, backing=True)
        except errors.GanetiError as err:
            if not grown_nodes:
                raise
            raise errors.OpExecError(
                f"{what} has grown on {', '.join(grown_nodes)}, but not on {node.name}:"
                f" {errors.text(err)}. Nothing is lost, and the guest sees the old size;"
                " remove the cause and grow the disk again"
            ) from err
        grown_nodes.append(node.name)
    _grow_on_node(ctx, disk, nodes[-1], added, dry_run=False, backing=False)
    wipe.part(ctx, instance, disk, disk.size, added)
    larger = disks.larger_disk(disk, added)

    def edit(draft: Draft) -> None:
        draft.update(disk, size=larger.size, children=larger.children)

    ctx.store.change("instance-grow-disk", ctx.author, edit)
    return larger


def _grow_on_node(
    ctx: Context, disk: Disk, node: Node, added: int, *, dry_run: bool, backing: bool
) -> None:
    exclusive = bool(ctx.config.ndparams(node).get("exclusive_storage"))
    wire = annotate.disk(ctx.config, disk, node.group)
    ctx.rpc.call_one(node, NodeCalls.blockdev_grow, wire, added, dry_run, backing, exclusive)

"""Recording another primary node; the data must be there already."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, disk_reach
from ganeti.ops.steps.storage import disks
from ganeti.rpc.calls import NodeCalls


def check(ctx: Context, instance: Instance, node: Node, *, running: bool, force: bool) -> None:
    """Refuse a node that does not have the disks; ``force`` records it without looking.

    Raises:
        OpPrereqError: the instance runs, or the node has no copy of its disks.
    """
    if running:
        raise errors.make_state_error(
            f"instance {instance.name} is running; its primary node cannot be changed"
        )
    checks.check_usable(node, f"as the primary node of {instance.name}")
    allowed = {other.uuid for other in disk_reach.list_other_nodes(ctx.config, instance)}
    if node.uuid in {*allowed, instance.primary_node} or force:
        return
    if not _has_disks(ctx, instance, node):
        raise errors.make_state_error(
            f"node {node.name} has no copy of the disks of {instance.name}; gnt-instance move"
            " copies them (--force records the node for disks that were moved by hand)"
        )


def _has_disks(ctx: Context, instance: Instance, node: Node) -> bool:
    """Whether a node has data of every disk, as when files were copied there by hand."""
    config = ctx.config
    wire = [annotate.disk(config, disk, node.group) for disk in config.disks_of(instance)]
    return None not in ctx.rpc.call_one(node, NodeCalls.blockdev_getdimensions, wire)


def record(draft: Draft, instance: Instance, node: Node) -> None:
    """Disks that are on one node only are on the new primary node now."""
    for disk in draft.config.disks_of(instance):
        if disk.nodes and not disks.traits(disk).mirrored and node.uuid not in disk.nodes:
            draft.update(disk, nodes=(node.uuid,))

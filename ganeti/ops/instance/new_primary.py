"""Recording another primary node; the data must be there already."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import checks
from ganeti.ops.instance import disks, placement
from ganeti.ops.operation import Context


def check(ctx: Context, instance: Instance, node: Node, *, running: bool, force: bool) -> None:
    """Refuse a node that cannot use the disks; with ``force`` the administrator moved them.

    Raises:
        OpPrereqError: the instance runs, or the node has no copy of its disks.
    """
    if running:
        raise errors.OpPrereqError(
            f"instance {instance.name} is running; its primary node cannot be changed",
            errors.ErrorCode.STATE,
        )
    checks.usable_node(node, f"as the primary node of {instance.name}")
    allowed = {other.uuid for other in placement.others(ctx.config, instance)}
    if node.uuid not in {*allowed, instance.primary_node} and not force:
        raise errors.OpPrereqError(
            f"node {node.name} has no copy of the disks of {instance.name}; gnt-instance move"
            " copies them (--force records the node for disks that were moved by hand)",
            errors.ErrorCode.STATE,
        )


def record(draft: Draft, instance: Instance, node: Node) -> None:
    """Disks that are on one node only are on the new primary node now."""
    for disk in draft.config.disks_of(instance):
        if disk.nodes and not disks.traits(disk).mirrored and node.uuid not in disk.nodes:
            draft.update(disk, nodes=(node.uuid,))

"""Disks of an instance that is on its way: usable on both nodes for a moment, then on one."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.instance import relocation
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls


def prepare(ctx: Context, instance: Instance, target: Node) -> None:
    """Make the disks usable on the target beside the source.

    Raises: whatever the nodes say; :func:`leave` takes back what was done.
    """
    wire = annotate.instance(ctx.config, relocation.as_if_on(instance, target))
    for index, disk in enumerate(wire.disks_info):
        ctx.rpc.one(target, NodeCalls.blockdev_assemble, disk, wire, True, index)


def leave(ctx: Context, instance: Instance, *, winner: Node, loser: Node) -> None:
    """Take the disks from the node that the instance is not on; a failure is only reported."""
    if loser.offline:
        return
    config = ctx.config
    for item in config.disks_of(instance):
        try:
            ctx.rpc.one(
                loser, NodeCalls.blockdev_shutdown, annotate.disk(config, item, loser.group)
            )
        except errors.GanetiError as err:
            ctx.warn(
                f"{item.iv_name} could not be deactivated on node {loser.name}:"
                f" {errors.text(err)}"
            )

"""Disks of an instance that is on its way: usable on both nodes for a moment, then on one.

Shared disks are only activated on the target. Mirrored ones are reconnected so that both nodes
may write, which the hypervisors do one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.steps.relocation import destination
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeDisk

#: Seconds that mirrored disks get to be the same on both nodes before a migration begins.
SYNC_PATIENCE = 1800.0


def prepare(ctx: Context, instance: Instance, source: Node, target: Node) -> None:
    """Make the disks usable on the target beside the source.

    Raises: whatever the nodes say; :func:`leave` takes back what was done.
    """
    mirrored = _mirrored(ctx, instance)
    wire = annotate.instance(ctx.config, destination.place_on_node(instance, target))
    kept = {disk.uuid for disk in mirrored}
    for index, disk in enumerate(wire.disks_info):
        ctx.rpc.call_one(
            target, NodeCalls.blockdev_assemble, disk, wire, disk.uuid not in kept, index
        )
    if not mirrored:
        return
    ctx.log("* changing disks into dual-master mode")
    _connect(ctx, mirrored, [source, target], both_write=True)
    _wait_for_sync(ctx, mirrored, [source, target])
    ctx.rpc.call_one(
        target,
        NodeCalls.blockdev_open,
        instance.name,
        _wires(ctx, mirrored, target),
        False,
    )


def leave(ctx: Context, instance: Instance, *, winner: Node, loser: Node) -> None:
    """Take the disks from the node that the instance is not on; a failure is only reported."""
    config = ctx.config
    mirrored = _mirrored(ctx, instance)
    kept = {disk.uuid for disk in mirrored}
    if not loser.offline:
        for item in config.disks_of(instance):
            if item.uuid in kept:
                continue
            try:
                wire = annotate.disk(config, item, loser.group)
                ctx.rpc.call_one(loser, NodeCalls.blockdev_shutdown, wire)
            except errors.GanetiError as err:
                ctx.warn(
                    f"{item.iv_name} could not be deactivated on node {loser.name}:"
                    f" {errors.text(err)}"
                )
    if mirrored:
        _make_single_primary(ctx, instance, mirrored, winner, loser)


def _make_single_primary(
    ctx: Context, instance: Instance, mirrored: Sequence[Disk], winner: Node, loser: Node
) -> None:
    """Only the winner writes from now on."""
    try:
        if not loser.offline:
            ctx.rpc.call_one(
                loser, NodeCalls.blockdev_close, instance.name, _wires(ctx, mirrored, loser)
            )
            ctx.log("* changing disks into single-master mode")
            _connect(ctx, mirrored, [winner, loser], both_write=False)
    except errors.GanetiError as err:
        ctx.warn(
            f"disks of {instance.name} are not mirrored as they should be: {errors.text(err)};"
            f" gnt-instance activate-disks {instance.name} connects them again"
        )


def _connect(
    ctx: Context, disks: Sequence[Disk], nodes: Sequence[Node], *, both_write: bool
) -> None:
    """Reconnect the two sides; both are told at the same time, as each waits for the other."""
    wires = _wires(ctx, disks, nodes[0])
    for node, answer in ctx.rpc.call_many(nodes, NodeCalls.drbd_disconnect_net, wires).items():
        if answer.error is not None:
            raise errors.OpExecError(
                f"disks on {ctx.config.nodes[node].name} cannot be disconnected:"
                f" {errors.text(answer.error)}"
            )
    for answer in ctx.rpc.call_many(nodes, NodeCalls.drbd_attach_net, wires, both_write).values():
        answer.get()


def _wait_for_sync(ctx: Context, disks: Sequence[Disk], nodes: Sequence[Node]) -> None:
    """Wait until both sides are the same; the nodes wait some seconds in each call themselves.

    Raises:
        OpExecError: not within ``SYNC_PATIENCE`` seconds.
        JobCanceled: the user does not want to wait.
    """
    end = Deadline(SYNC_PATIENCE, ctx.clock)
    wires = _wires(ctx, disks, nodes[0])
    logged = -1.0
    while True:
        found = [
            a.get() for a in ctx.rpc.call_many(nodes, NodeCalls.drbd_wait_sync, wires).values()
        ]
        if all(done for done, _percent in found):
            return
        percent = min(percent for _done, percent in found)
        if end.has_passed:
            raise errors.OpExecError(
                f"the disks are not in sync after {SYNC_PATIENCE / 60:.0f} minutes"
                f" ({percent:.1f} %)"
            )
        if percent >= logged + 1:
            ctx.log(f"* disks are being synchronised: {percent:.1f} %")
            logged = percent
        if ctx.job.cancel_asked.wait(1.0):
            raise errors.JobCanceled("the migration was canceled")


def _mirrored(ctx: Context, instance: Instance) -> list[Disk]:
    return [disk for disk in ctx.config.disks_of(instance) if instance_disks.traits(disk).mirrored]


def _wires(ctx: Context, disks: Sequence[Disk], node: Node) -> list[NodeDisk]:
    return [annotate.disk(ctx.config, disk, node.group) for disk in disks]

"""Disks of one node that move with a running guest.

They are made on the target once both nodes know of the migration, so whoever settles it finds them.
Their content is sent before the memory. The node that does not get the guest loses its disks last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import ExitStack

from ganeti import errors
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import snapshots
from ganeti.ops.steps.relocation import destination
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.steps.storage import space
from ganeti.ops.steps.storage.disk_progress import Progress
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeInstance


@dataclasses.dataclass(frozen=True)
class Sending:
    """How disks are sent with a guest."""

    #: MiB/s for all of them together, 0: no limit
    bandwidth: int
    #: seconds without getting nearer to the end
    give_up_after: int


def find(config: Config, instance: Instance) -> list[Disk]:
    """The disks of an instance that are on its primary node only."""
    return [
        disk
        for disk in config.disks_of(instance)
        if disk.dev_type is not None
        and not (instance_disks.traits(disk).shared or instance_disks.traits(disk).mirrored)
    ]


def check(ctx: Context, instance: Instance, target: Node) -> None:
    """Refuse disks that cannot be sent to a node while the guest runs; OpPrereqError."""
    if not HYPERVISORS.get(instance.real_hypervisor).traits.sends_disks:
        raise errors.make_state_error(
            f"hypervisor {instance.hypervisor} does not send disks of a running instance;"
            f" gnt-instance move -n {target.name} {instance.name} stops it meanwhile"
        )
    snapshots.check_none(instance, "before the disks are moved")
    disks = find(ctx.config, instance)
    space.check(ctx, _on_node(disks, target), target.uuid, f"instance {instance.name}")
    missing = list_missing(ctx, instance, target)
    there = [disk.iv_name for disk in disks if disk.iv_name not in missing]
    if there:
        raise errors.make_state_error(
            f"node {target.name} already has data under the name of {', '.join(there)} of instance"
            f" {instance.name}; gnt-cluster verify shows how to remove it"
        )


def list_missing(ctx: Context, instance: Instance, node: Node) -> list[str]:
    """Names of the disks of which a node has no data."""
    disks = find(ctx.config, instance)
    wires = [annotate.disk(ctx.config, disk, node.group) for disk in disks]
    sizes = ctx.rpc.call_one(node, NodeCalls.blockdev_getdimensions, wires)
    return [disk.iv_name for disk, size in zip(disks, sizes) if size is None]


def _on_node(disks: Sequence[Disk], node: Node) -> list[Disk]:
    return [base.replace(disk, nodes=(NodeUuid(node.uuid),)) for disk in disks]


def make(ctx: Context, instance: Instance, target: Node) -> None:
    """Make empty disks on the target. From here on the settlement removes them.

    Raises: whatever the node says; then nothing is left of them.
    """
    new = _on_node(find(ctx.config, instance), target)
    ctx.log(f"* creating the disks on node {target.name}")
    with ExitStack() as undo:
        own = dataclasses.replace(ctx, undo=undo)
        instance_disks.create(own, destination.place_on_node(instance, target), new)
        undo.pop_all()
    # What is left to do with storage is to free some.
    ctx.release(LockLevel.NODE_RES)


def send(ctx: Context, here: NodeInstance, there: NodeInstance, sending: Sending) -> None:
    """Send the content of all disks to a target that waits for the guest, until they are ready.

    Raises:
        JobCanceled: the user canceled the job.
        OpExecError: a disk cannot be sent, or the guest writes too fast.
    """
    config = ctx.config
    instance = config.instances[here.uuid]
    source, target = config.nodes[here.primary_node], config.nodes[there.primary_node]
    disks = find(config, instance)
    uuids = [disk.uuid for disk in disks]
    where = ctx.rpc.call_one(
        target, NodeCalls.instance_receive_disks, there, uuids, target.secondary_ip
    )
    ctx.log(f"* sending the disks of the running instance to {target.name}")
    ctx.rpc.call_one(source, NodeCalls.instance_send_disks, here, uuids, where, sending.bandwidth)
    names = {disk.uuid: disk.iv_name for disk in disks}
    size = sum(disk.size for disk in disks)
    progress = Progress(names, size, sending.give_up_after, ctx.clock.monotonic())
    while True:
        found = ctx.rpc.call_one(source, NodeCalls.instance_disk_progress, here)
        lines = progress.make_lines(found, ctx.clock.monotonic())
        for line in lines:
            ctx.log(line)
        if progress.is_complete:
            return
        if ctx.job.cancel_asked.is_set():
            raise errors.JobCanceled("the migration was canceled")


def drop(ctx: Context, instance: Instance, *, winner: Node, loser: Node) -> None:
    """Remove the disks of the node that does not get the guest; failures are only reported.

    They are kept while the other node is offline, as they may be all that is left.
    """
    disks = find(ctx.config, instance)
    if not disks or loser.offline:
        return
    if winner.offline:
        ctx.warn(
            f"the disks of {instance.name} on node {loser.name} are kept, because"
            f" {winner.name} is offline"
        )
        return
    ctx.log(f"* removing the disks on node {loser.name}")
    for disk in _on_node(disks, loser):
        for failure in instance_disks.remove_from(ctx, disk, [loser]):
            ctx.warn(f"left over: {failure}")

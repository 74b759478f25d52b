"""Converting the disks of an instance while it runs.

New disks are made and get the content of the old ones. From then on a write of the guest ends when
both have it. So the configuration may change to the new disks, and whatever is lost at that moment,
what it names is complete. The guest uses the new ones as soon as it is told to. A master that finds
a guest whose disks are still copied brings it to the disks that the configuration names.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.model.disk import Disk
from ganeti.model.ids import DiskUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.steps.storage import conversion as conversion_steps
from ganeti.ops.steps.storage import copy_progress, disks, holds, sync
from ganeti.ops.steps.storage.conversion import Conversion, Way
from ganeti.ops.steps.storage.disk_progress import Progress
from ganeti.rpc.calls import NodeCalls

#: Seconds after which a guest that is paused for the switch runs on, whatever happens.
HOLD_LIMIT = 10.0


def make(
    ctx: Context, instance: Instance, conversion: Conversion, *, bandwidth: int, wait: bool
) -> None:
    """Make the new disks, and let all that the guest writes go to both; undone on failure.

    ``bandwidth``: MiB/s that are copied at most, 0: no limit.

    Raises:
        JobCanceled: the user canceled the job.
        OpExecError: a disk cannot be made or copied.
    """
    parts = conversion.select(Way.COPY)
    for part, disk in zip(parts, disks.assign_ports(ctx, [part.new for part in parts])):
        part.new = disk
    new = [part.new for part in parts]
    ctx.log(f"Creating disks of template {conversion.template}...")
    disks.create(ctx, instance, new)
    ctx.undo.callback(disks.shutdown, ctx, instance, new)
    ctx.undo.callback(_take_back, ctx, instance)
    _copy(ctx, instance, new, bandwidth)
    if sync.wait(ctx, instance, new, only_begin=not wait) is sync.Outcome.DEGRADED:
        raise errors.OpExecError(
            f"the new disks of instance {instance.name} are degraded; the conversion is undone"
        )
    conversion.active = True


def _copy(ctx: Context, instance: Instance, new: list[Disk], bandwidth: int) -> None:
    node = ctx.config.nodes[instance.primary_node]
    names = {disk.uuid: disk.iv_name for disk in new}
    size = sum(disk.size for disk in new)
    ctx.log(f"Copying {join_names(sorted(names.values()))} while the instance runs ({size} MiB)")
    here = annotate.instance(ctx.config, instance)
    wires = [annotate.disk(ctx.config, disk, node.group) for disk in new]
    ctx.rpc.call_one(node, NodeCalls.instance_convert_disks, here, wires, bandwidth)
    # No guest writes faster than its disks are copied: it waits for both.
    progress = Progress(names, size, math.inf, ctx.clock.monotonic())
    while not progress.is_complete:
        for line in _follow(ctx, instance, progress):
            ctx.log(line)
        if ctx.job.cancel_asked.is_set():
            raise errors.JobCanceled(f"the conversion of {instance.name} was canceled")


def _follow(ctx: Context, instance: Instance, progress: Progress) -> list[str]:
    """Lines about the copies; raises when one has failed."""
    node = ctx.config.nodes[instance.primary_node]
    here = annotate.instance(ctx.config, instance)
    found = copy_progress.ask_again(
        ctx, lambda: ctx.rpc.call_one(node, NodeCalls.instance_disk_progress, here)
    )
    return progress.make_lines(found, ctx.clock.monotonic())


def switch(
    ctx: Context, instance: Instance, conversion: Conversion, record: Callable[[], None]
) -> None:
    """Let ``record`` change the configuration while the guest is paused; then it has the new disks.

    Once the change is recorded, the steps before it are not undone any more.

    Raises:
        OpExecError: it goes on with the old disks, which are recorded again; or its node does not
            answer, and which disks it has is settled later.
    """
    name, node = instance.name, ctx.config.nodes[instance.primary_node]
    with holds.hold(ctx, instance, node, HOLD_LIMIT) as held:
        # Raises if a copy has failed; from here on the guest writes nothing.
        _follow(ctx, instance, Progress(_names(conversion), 1, math.inf, ctx.clock.monotonic()))
        record()
        ctx.undo.pop_all()
        try:
            copy_progress.ask_again(ctx, lambda: settle(ctx, instance))
        except errors.RpcError as err:
            raise errors.OpExecError(
                f"it is not known which disks instance {name} uses: {errors.text(err)}; when"
                f" {node.name} answers, gnt-instance migrate --cleanup {name} settles it"
            ) from err
        except errors.GanetiError as err:
            _go_back(ctx, instance, conversion, err)
    ctx.log(f"The guest uses its new disks; it was paused for {held.seconds:.2f} s")


def _names(conversion: Conversion) -> dict[DiskUuid, str]:
    return {part.new.uuid: part.new.iv_name for part in conversion.select(Way.COPY)}


def _go_back(
    ctx: Context, instance: Instance, conversion: Conversion, why: errors.GanetiError
) -> None:
    """Record the old disks again, as the guest has not taken the new ones; always raises."""

    def edit(draft: Draft) -> None:
        conversion_steps.restore(draft, conversion)

    ctx.store.change("instance-modify", ctx.author, edit)
    settle(ctx, instance)
    new = [part.new for part in conversion.select(Way.COPY)]
    disks.shutdown(ctx, instance, new)
    for failure in disks.remove(ctx, new, instance.primary_node):
        ctx.warn(f"left over: {failure}")
    raise errors.OpExecError(
        f"the disks of instance {instance.name} were not converted: {errors.text(why)}"
    ) from why


def finish(ctx: Context, instance: Instance, conversion: Conversion) -> None:
    """Destroy the old disks; failures are only reported."""
    disks.shutdown(ctx, instance, [part.old for part in conversion.select(Way.COPY)])
    conversion_steps.finish(ctx, instance, conversion)


def settle(ctx: Context, instance: Instance) -> None:
    """Let the guest go on with the disks that are recorded; then it is not converted any more.

    Raises: whatever the node says.
    """
    current = ctx.config.instances[instance.uuid]
    node = ctx.config.nodes[current.primary_node]
    wire = annotate.instance(ctx.config, current)
    ctx.rpc.call_one(node, NodeCalls.instance_settle_disks, wire)


def _take_back(ctx: Context, instance: Instance) -> None:
    try:
        settle(ctx, instance)
    except errors.GanetiError as err:
        ctx.warn(
            f"the copies of the disks of {instance.name} did not end: {errors.text(err)};"
            f" gnt-instance migrate --cleanup {instance.name} ends them"
        )


def list_open(ctx: Context, nodes: list[Node]) -> dict[str, Node]:
    """Names of instances whose disks are converted, with their nodes; of nodes that answer."""
    hypervisors = [str(name) for name in ctx.config.cluster.enabled_hypervisors]
    answers = ctx.rpc.call_many(nodes, NodeCalls.instances_converting, hypervisors)
    return {name: answer.node for answer in answers.values() for name in answer.value or ()}


def clean_up(ctx: Context, instance: Instance) -> None:
    """Settle what another job left on the primary node. Raises: whatever the node says."""
    primary = ctx.config.nodes[instance.primary_node]
    if instance.name in list_open(ctx, [primary]):
        ctx.log(f"* settling the conversion of the disks of {instance.name}")
        settle(ctx, instance)

"""Zeros over new space on disks, so that old data cannot be read.

Done when the cluster has ``prealloc_wipe_disks``, and only where new space may hold old data.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.base.units import format_size
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.steps.storage.copy_progress import MIB, Progress
from ganeti.rpc.calls import NodeCalls
from ganeti.storage.registry import TEMPLATES

#: MiB of one call.
CHUNK = 1024


def is_needed(ctx: Context, disk: Disk) -> bool:
    """Whether new space of a disk is wiped in this cluster."""
    if not ctx.config.cluster.prealloc_wipe_disks or disk.dev_type is None:
        return False
    return TEMPLATES.get(disk.dev_type).traits.holds_old_data


def wipe_whole(ctx: Context, instance: Instance, disk: Disk) -> None:
    """Wipe a new disk to its real end, which may lie after its recorded size. OpExecError."""
    if not is_needed(ctx, disk):
        return
    node = ctx.config.nodes[instance.primary_node]
    wire = annotate.disk(ctx.config, disk, node.group)
    [found] = ctx.rpc.call_one(node, NodeCalls.blockdev_getdimensions, [wire])
    part(ctx, instance, disk, 0, disk.size if found is None else found[0] // MIB)


def part(ctx: Context, instance: Instance, disk: Disk, offset: int, size: int) -> None:
    """Wipe ``size`` MiB of a disk from ``offset`` MiB on, through its device on the primary node.

    Blocks as long as the disk needs. The synchronisation of a mirror waits meanwhile.

    Raises:
        OpExecError: it failed; the disk must not be used.
    """
    if not is_needed(ctx, disk):
        return
    node = ctx.config.nodes[instance.primary_node]
    ctx.log(f"* wiping {format_size(size)} of {disk.iv_name}...")
    _pause(ctx, disk, node, pause=True)
    try:
        _write(ctx, disk, node, offset, size)
    except errors.GanetiError as err:
        raise errors.OpExecError(
            f"{disk.iv_name} of {instance.name} could not be wiped: {errors.text(err)}"
        ) from err
    finally:
        _pause(ctx, disk, node, pause=False)


def _write(ctx: Context, disk: Disk, node: Node, offset: int, size: int) -> None:
    wire = annotate.disk(ctx.config, disk, node.group)
    progress = Progress(disk.iv_name, ctx.clock.monotonic())
    done = 0
    while done < size:
        chunk = min(CHUNK, size - done)
        ctx.rpc.call_one(node, NodeCalls.blockdev_wipe, wire, offset + done, chunk)
        done += chunk
        line = progress.make_line(done * MIB, size * MIB, ctx.clock.monotonic())
        if line is not None:
            ctx.log(line)


def _pause(ctx: Context, disk: Disk, node: Node, *, pause: bool) -> None:
    """Wiping is faster alone, but a mirror that continues anyway does no harm."""
    if disk.dev_type is None or not TEMPLATES.get(disk.dev_type).traits.mirrored:
        return
    wire = annotate.disk(ctx.config, disk, node.group)
    try:
        [(done, text)] = ctx.rpc.call_one(node, NodeCalls.blockdev_pause_resume_sync, [wire], pause)
    except errors.GanetiError as err:
        done, text = False, errors.text(err)
    if not done:
        verb = "held up" if pause else "continued"
        ctx.warn(f"synchronisation of {disk.iv_name} could not be {verb}: {text}")

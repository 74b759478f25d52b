"""Copies of disks for a snapshot: made, copied back, removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ganeti import errors
from ganeti.config import snapshots as places
from ganeti.config.changes import Draft
from ganeti.model.disk import Disk
from ganeti.model.enums import Consistency
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.model.snapshot import Snapshot
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import snapshots
from ganeti.ops.steps.storage import copy_progress, disks, holds
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeDisk

#: Seconds after which a guest that is paused runs on, whatever happens.
HOLD_LIMIT = 30.0


def put(draft: Draft, instance: Instance, snapshot: Snapshot) -> None:
    """Record a snapshot, or a new version of it."""
    known = draft.config.instances[instance.uuid].snapshots
    kept = [snapshot if each.uuid == snapshot.uuid else each for each in known]
    if snapshot not in kept:
        kept.append(snapshot)
    draft.update(instance, snapshots=tuple(kept))


def forget(draft: Draft, instance: Instance, snapshot: Snapshot) -> None:
    """Remove a snapshot from the record."""
    known = draft.config.instances[instance.uuid].snapshots
    draft.update(instance, snapshots=tuple(each for each in known if each.uuid != snapshot.uuid))


@contextmanager
def hold(ctx: Context, instance: Instance, node: Node) -> Iterator[Consistency]:
    """Pause the guest; yields the state of its disks meanwhile.

    Raises:
        OpExecError: it was not paused until the end, so the copies do not fit together.
    """
    with holds.hold(ctx, instance, node, HOLD_LIMIT) as held:
        yield held.consistency
    if not held.stood:
        raise errors.OpExecError(
            f"instance {instance.name} was resumed before all its disks were copied, after"
            f" {held.seconds:.1f} s; the limit is {HOLD_LIMIT:g} s"
        )
    ctx.log(f"The guest was paused for {held.seconds:.2f} s")


def freeze(ctx: Context, instance: Instance, snapshot: Snapshot, room: int) -> None:
    """Copy all disks in a moment, with ``room`` MiB for later changes (0: enough for any).

    Raises:
        OpExecError: a disk cannot be copied without reading all of it, or there is no room.
    """
    for disk, copy in places.copies(ctx.config, snapshot):
        for node in disks.nodes_of(ctx.config, copy, instance.primary_node):
            try:
                _freeze_one(ctx, disk, copy, node, room)
            except errors.BlockDeviceError as err:
                hint = "; stop the instance first" if disks.traits(disk).file_based else ""
                raise errors.OpExecError(
                    f"{disk.iv_name} cannot be copied in a moment: {errors.text(err)}{hint}"
                ) from err


def copy_stopped(ctx: Context, instance: Instance, snapshot: Snapshot, room: int) -> None:
    """Copy all disks of a stopped instance: in a moment where that is possible, else whole."""
    with disks.activate_for_use(ctx, instance, ctx.config.disks_of(instance)):
        for disk, copy in places.copies(ctx.config, snapshot):
            for node in disks.nodes_of(ctx.config, disk, instance.primary_node):
                if snapshots.freezes(disk):
                    try:
                        _freeze_one(ctx, disk, copy, node, room)
                        continue
                    except errors.BlockDeviceError as err:
                        ctx.log(f"{disk.iv_name} is copied as a whole: {errors.text(err)}")
                disks.create_part(ctx, instance, copy, node, name=disk.iv_name)
                _copy(ctx, places.content(disk), copy, node, "of zeros skipped")
                disks.shutdown_on(ctx, copy, node)


def _freeze_one(ctx: Context, disk: Disk, copy: Disk, node: Node, room: int) -> None:
    volume = str(copy.logical_id[-1]).rpartition("/")[2]
    ctx.rpc.call_one(
        node, NodeCalls.blockdev_snapshot, _wire(ctx, disk, node), volume, room or None
    )


def copy_back(ctx: Context, instance: Instance, snapshot: Snapshot) -> None:
    """Make the disks of a stopped instance equal to their copies."""
    node = ctx.config.nodes[instance.primary_node]
    with disks.activate_for_use(ctx, instance, ctx.config.disks_of(instance)):
        for disk, copy in places.copies(ctx.config, snapshot):
            _copy(ctx, copy, disk, node, "had not changed")
            disks.shutdown_on(ctx, copy, node)


def _copy(ctx: Context, source: Disk, target: Disk, node: Node, skipped: str) -> None:
    copy = ctx.rpc.call_one(
        node, NodeCalls.disk_revert, _wire(ctx, source, node), _wire(ctx, target, node)
    )
    copy_progress.follow(ctx, node, copy, source.iv_name, skipped=skipped)


def remove(ctx: Context, instance: Instance, found: Sequence[Snapshot]) -> list[str]:
    """Remove the copies of snapshots; returns a text for each failure.

    Idempotent: what is missing already is not a failure. An offline node is one.
    """
    failures: list[str] = []
    for snapshot in found:
        for _disk, copy in places.copies(ctx.config, snapshot):
            for node in disks.nodes_of(ctx.config, copy, instance.primary_node):
                name = f"snapshot {snapshot.name} of {copy.iv_name}"
                failures += disks.remove_from(ctx, copy, [node], name=name)
    return failures


def _wire(ctx: Context, disk: Disk, node: Node) -> NodeDisk:
    return annotate.disk(ctx.config, disk, node.group)

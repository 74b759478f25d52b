"""Stop an instance, destroy its disks, and forget it. Cannot be undone."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.opcodes.base import OpCode
from ganeti.ops.operation import Context
from ganeti.ops.steps.running import power, run_rights
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.steps.storage import snapshots


def remove(
    ctx: Context,
    op: OpCode,
    instance: Instance,
    disks: Sequence[Disk],
    *,
    timeout: int,
    ignore_failures: bool,
) -> None:
    """Remove an instance with its disks.

    ``timeout`` are the seconds that the guest gets to stop; it runs on a node that is online.

    Raises:
        OpExecError: something failed, and failures are not ignored; the instance stays recorded.
    """

    def handle(what: str, err: errors.GanetiError) -> None:
        if not ignore_failures:
            raise errors.OpExecError(f"{what}: {errors.text(err)}") from err
        ctx.warn(f"{what}: {errors.text(err)}")

    node = ctx.config.nodes.get(instance.primary_node)
    online = node is not None and not node.offline
    if online and instance.hypervisor is not None:
        try:
            power.stop(ctx, instance, op, timeout)
        except errors.GanetiError as err:
            handle(f"Instance {instance.name} could not be stopped", err)
        instance_disks.shutdown(ctx, instance)
    failures = snapshots.remove(ctx, instance, instance.snapshots)
    failures += instance_disks.remove(ctx, disks, instance.primary_node)
    if failures:
        handle("Disks could not be removed", errors.OpExecError("; ".join(failures)))
    if node is not None and online:
        instance_disks.remove_directories(ctx, node, disks)

    def edit(draft: Draft) -> None:
        draft.remove_instance(instance)

    ctx.store.change("instance-remove", ctx.author, edit)
    run_rights.forget(ctx, instance)
    ctx.locks.remove(ctx.job.job_id, LockLevel.INSTANCE, instance.name)

"""Make a disk larger, with or without an instance."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.disk import Disk
from ganeti.model.ids import DiskUuid
from ganeti.model.instance import Instance
from ganeti.opcodes.disk import OpDiskGrow
from ganeti.opcodes.instance_disks import OpInstanceGrowDisk
from ganeti.ops.instance.grow_disk import InstanceGrowDisk
from ganeti.ops.operation import Context, Finding, FindingOperation, Hooks, PlannedOperation
from ganeti.ops.planning import disk_bearer
from ganeti.ops.steps.storage import disks, growth, sync
from ganeti.ops.targets import disk as disk_target


@dataclass(frozen=True)
class _Plan:
    """How a detached disk grows."""

    disk: Disk
    #: stand-in for its instance in node calls
    home: Instance
    #: what error texts call the disk
    title: str
    #: MiB; 0 when it is large enough already
    amount: int


class DiskGrow(
    FindingOperation[OpDiskGrow, InstanceGrowDisk | Disk, None],
    PlannedOperation[OpDiskGrow, _Plan | None, None],
):
    """An attached disk grows as by ``gnt-instance grow-disk``; its operation does all then."""

    def find(self) -> Finding[InstanceGrowDisk | Disk]:
        """The operation of an attached disk; a detached disk."""
        ctx, op = self.ctx, self.op
        uuid = ctx.config.disk(op.disk_name).uuid
        owner = ctx.config.owner(uuid)
        if owner is not None:
            attached = _make_instance_opcode(ctx, op, owner, uuid)
            yield from attached.locks()
            return attached
        disk = yield from disk_target.lock(ctx, uuid)
        nodes = sorted(node.uuid for node in disk_bearer.list_nodes(ctx.config, disk))
        yield Need(LockLevel.NODE, nodes, shared=True)
        yield Need(LockLevel.NODE_RES, nodes)
        return disk

    def decide(self) -> _Plan | None:
        ctx, op, found = self.ctx, self.op, self.found
        if isinstance(found, InstanceGrowDisk):
            self._check_still_there(found)
            found.check()
            return None
        owner = ctx.config.owner(found.uuid)
        if owner is not None:
            raise errors.make_state_error(
                f"disk '{op.disk_name}' was attached to instance {owner.name} while this job"
                " waited; try again"
            )
        title = f"disk {disk_bearer.title(found)}"
        home = disk_bearer.make_bearer(ctx.config, found)
        amount = growth.amount(found, title, op.amount, absolute=op.absolute)
        growth.check(ctx, home, found, title, amount)
        return _Plan(found, home, title, amount)

    def _check_still_there(self, attached: InstanceGrowDisk) -> None:
        config = self.ctx.config
        uuids = config.instances[attached.instance.uuid].disks
        index = attached.op.disk
        if index >= len(uuids) or uuids[index] != config.disk(self.op.disk_name).uuid:
            raise errors.make_state_error(
                f"disk '{self.op.disk_name}' was detached or moved to another place while this"
                " job waited; try again"
            )

    def hooks(self) -> Hooks | None:
        return self.found.hooks() if isinstance(self.found, InstanceGrowDisk) else None

    def run(self) -> None:
        if isinstance(self.found, InstanceGrowDisk):
            self.found.run()
        elif self.plan is not None:
            self._grow(self.plan)

    def _grow(self, plan: _Plan) -> None:
        ctx, disk = self.ctx, plan.disk
        if not plan.amount:
            ctx.log(f"{plan.title} has {disk.size} MiB already")
            return
        with disks.activate_for_use(ctx, plan.home, [disk]):
            ctx.log(f"Growing {plan.title} by {plan.amount} MiB")
            larger = growth.grow(ctx, plan.home, disk, plan.title, plan.amount)
            if sync.wait(ctx, plan.home, [larger]) is sync.Outcome.DEGRADED:
                ctx.warn("the disk is degraded after it has grown; see gnt-disk info")


def _make_instance_opcode(
    ctx: Context, op: OpDiskGrow, owner: Instance, uuid: DiskUuid
) -> InstanceGrowDisk:
    inner = OpInstanceGrowDisk(
        instance_name=owner.name,
        instance_uuid=owner.uuid,
        disk=owner.disks.index(uuid),
        amount=op.amount,
        absolute=op.absolute,
        wait_for_sync=op.wait_for_sync,
        ignore_ipolicy=op.ignore_ipolicy,
    )
    return InstanceGrowDisk(inner, ctx)

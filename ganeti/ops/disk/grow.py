"""Make a disk larger, with or without an instance."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel
from ganeti.opcodes.disk import OpDiskGrow
from ganeti.opcodes.instance_disks import OpInstanceGrowDisk
from ganeti.ops.instance.grow_disk import InstanceGrowDisk
from ganeti.ops.operation import Context, Hooks, Needs, PlannedOperation
from ganeti.ops.planning import disk_bearer
from ganeti.ops.steps.storage import disks, growth, sync
from ganeti.ops.targets import disk as disk_target


@dataclass(frozen=True)
class _Plan:
    """How a detached disk grows."""

    #: what stands for its instance in node calls
    home: Instance
    #: what error texts call the disk
    title: str
    #: MiB; 0 when it is large enough already
    amount: int


class DiskGrow(PlannedOperation[OpDiskGrow, _Plan | None, None]):
    """An attached disk grows as by ``gnt-instance grow-disk``; its operation does all then."""

    attached: InstanceGrowDisk | None = None
    #: the disk, if it is detached
    disk: Disk

    def locks(self) -> Needs:
        ctx, op = self.ctx, self.op
        uuid = ctx.config.disk(op.disk_name).uuid
        owner = ctx.config.owner(uuid)
        if owner is not None:
            self.attached = _for_instance(ctx, op, owner, uuid)
            yield from self.attached.locks()
            return
        self.disk = yield from disk_target.lock(ctx, uuid)
        nodes = sorted(node.uuid for node in disk_bearer.seats(ctx.config, self.disk))
        yield Need(LockLevel.NODE, nodes, shared=True)
        yield Need(LockLevel.NODE_RES, nodes)

    def decide(self) -> _Plan | None:
        ctx, op = self.ctx, self.op
        if self.attached is not None:
            self._check_still_there(self.attached)
            self.attached.check()
            return None
        owner = ctx.config.owner(self.disk.uuid)
        if owner is not None:
            raise errors.wrong_state(
                f"disk '{op.disk_name}' was attached to instance {owner.name} while this job"
                " waited; try again"
            )
        title = f"disk {disk_bearer.title(self.disk)}"
        home = disk_bearer.of(ctx.config, self.disk)
        amount = growth.amount(self.disk, title, op.amount, absolute=op.absolute)
        growth.check(ctx, home, self.disk, title, amount)
        return _Plan(home, title, amount)

    def _check_still_there(self, attached: InstanceGrowDisk) -> None:
        config = self.ctx.config
        uuids = config.instances[attached.instance.uuid].disks
        index = attached.op.disk
        if index >= len(uuids) or uuids[index] != config.disk(self.op.disk_name).uuid:
            raise errors.wrong_state(
                f"disk '{self.op.disk_name}' was detached or moved to another place while this"
                " job waited; try again"
            )

    def hooks(self) -> Hooks | None:
        return None if self.attached is None else self.attached.hooks()

    def run(self) -> None:
        if self.attached is not None:
            self.attached.run()
        elif self.plan is not None:
            self._grow(self.plan)

    def _grow(self, plan: _Plan) -> None:
        ctx, disk = self.ctx, self.disk
        if not plan.amount:
            ctx.log(f"{plan.title} has {disk.size} MiB already")
            return
        with disks.activated(ctx, plan.home, [disk]):
            ctx.log(f"Growing {plan.title} by {plan.amount} MiB")
            larger = growth.grow(ctx, plan.home, disk, plan.title, plan.amount)
            if sync.wait(ctx, plan.home, [larger]) is sync.Outcome.DEGRADED:
                ctx.warn("the disk is degraded after it has grown; see gnt-disk info")


def _for_instance(ctx: Context, op: OpDiskGrow, owner: Instance, uuid: str) -> InstanceGrowDisk:
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

"""Make a disk of an instance larger."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.disk import Disk
from ganeti.opcodes.instance_disks import OpInstanceGrowDisk
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.planning import checks, policy
from ganeti.ops.steps.running import hotplug
from ganeti.ops.steps.storage import disks, growth, sync
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    disk: Disk
    #: what error texts call the disk
    title: str
    #: MiB; 0 when it is large enough already
    amount: int


class InstanceGrowDisk(PlannedInstanceOperation[OpInstanceGrowDisk, _Plan, None]):
    """The guest, if it runs, sees the new size."""

    def locks(self) -> Needs:
        yield from self.lock_instance()
        config = self.ctx.config
        yield Need(LockLevel.DISK, [disks.find_by_index(config, self.instance, self.op.disk).uuid])
        yield from self.lock_nodes(locks.storage_nodes(config, self.instance), storage=True)

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        disk = disks.find_by_index(ctx.config, self.instance, op.disk)
        title = f"disk {op.disk} of {self.instance.name}"
        amount = growth.amount(disk, title, op.amount, absolute=op.absolute)
        self._check_policy(amount)
        growth.check(ctx, self.instance, disk, title, amount)
        return _Plan(disk, title, amount)

    def _check_policy(self, amount: int) -> None:
        config = self.ctx.config
        before = policy.shape(config, self.instance)
        sizes = list(before.disks)
        sizes[self.op.disk] += amount
        after = replace(before, disks=sizes)
        group = config.nodes[self.instance.primary_node].group
        checks.shape_allowed(self.ctx, group, after, before=before, ignore=self.op.ignore_ipolicy)

    def hooks(self) -> Hooks:
        op = self.op
        env = {"DISK": op.disk, "AMOUNT": op.amount, "ABSOLUTE": op.absolute}
        return self.instance_hooks("disk-grow", env)

    def run(self) -> None:
        ctx, instance, plan = self.ctx, self.instance, self.plan
        if not plan.amount:
            ctx.log(f"Disk {self.op.disk} has {plan.disk.size} MiB already")
            return
        with disks.activate_for_use(ctx, instance, [plan.disk]):
            ctx.log(
                f"Growing disk {self.op.disk} of instance '{instance.name}' by {plan.amount} MiB"
                f" to {plan.disk.size + plan.amount} MiB"
            )
            larger = growth.grow(ctx, instance, plan.disk, plan.title, plan.amount)
            ctx.release(LockLevel.NODE_RES)
            ctx.downgrade(LockLevel.DISK)
            ctx.downgrade(LockLevel.INSTANCE)
            hotplug.report_size(ctx, self.now, self.op.disk)
            if self.op.wait_for_sync:
                outcome = sync.wait(ctx, instance, [larger])
                if outcome is sync.Outcome.DEGRADED:
                    ctx.warn("disk syncing has not returned a good status; see gnt-instance info")

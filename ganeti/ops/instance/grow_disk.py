"""Make a disk of an instance larger."""

from __future__ import annotations

from dataclasses import replace

from ganeti.jobs.execution import Need
from ganeti.model.names import LockLevel
from ganeti.opcodes.instance_disks import OpInstanceGrowDisk
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.planning import checks, policy
from ganeti.ops.steps.running import hotplug
from ganeti.ops.steps.storage import disks, growth, sync


class InstanceGrowDisk(Operation[OpInstanceGrowDisk, None]):
    """The guest, if it runs, is told of the new size."""

    def locks(self) -> Needs:
        ctx = self.ctx
        found = yield from locks.real_instance(ctx, self.op.instance_name, self.op.instance_uuid)
        self.uuid = found.uuid
        yield Need(LockLevel.DISK, [disks.by_index(ctx.config, found, self.op.disk).uuid])
        nodes = locks.storage_nodes(ctx.config, found)
        yield Need(LockLevel.NODE, nodes, shared=True)
        yield Need(LockLevel.NODE_RES, nodes)

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        self.instance = ctx.config.instances[self.uuid]
        self.disk = disks.by_index(ctx.config, self.instance, op.disk)
        self.what = f"disk {op.disk} of {self.instance.name}"
        self.amount = growth.amount(self.disk, self.what, op.amount, absolute=op.absolute)
        self._check_policy()
        growth.check(ctx, self.instance, self.disk, self.what, self.amount)

    def _check_policy(self) -> None:
        config = self.ctx.config
        before = policy.shape(config, self.instance)
        sizes = list(before.disks)
        sizes[self.op.disk] += self.amount
        after = replace(before, disks=sizes)
        group = config.nodes[self.instance.primary_node].group
        checks.shape_allowed(self.ctx, group, after, before=before, ignore=self.op.ignore_ipolicy)

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        env = {
            **hook_env.instance_env(config, instance),
            "DISK": self.op.disk,
            "AMOUNT": self.op.amount,
            "ABSOLUTE": self.op.absolute,
        }
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        return Hooks("disk-grow", "INSTANCE", env, nodes, nodes)

    def run(self) -> None:
        ctx, instance = self.ctx, self.instance
        if not self.amount:
            ctx.log(f"Disk {self.op.disk} has {self.disk.size} MiB already")
            return
        with disks.activated(ctx, instance, [self.disk]):
            ctx.log(
                f"Growing disk {self.op.disk} of instance '{instance.name}' by {self.amount} MiB"
                f" to {self.disk.size + self.amount} MiB"
            )
            larger = growth.grow(ctx, instance, self.disk, self.what, self.amount)
            ctx.release(LockLevel.NODE_RES)
            ctx.downgrade(LockLevel.DISK)
            ctx.downgrade(LockLevel.INSTANCE)
            hotplug.resized(ctx, ctx.config.instances[self.uuid], self.op.disk)
            if self.op.wait_for_sync:
                outcome = sync.wait(ctx, instance, [larger])
                if outcome is sync.Outcome.DEGRADED:
                    ctx.warn("disk syncing has not returned a good status; see gnt-instance info")

"""Make the disks of a stopped instance usable."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.instance_disks import OpInstanceActivateDisks
from ganeti.ops import locks
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks, sync


class InstanceActivateDisks(Operation[OpInstanceActivateDisks, list[disks.Device]]):
    """Gives (node, disk, device) for each disk, as the primary node has them."""

    def locks(self) -> Needs:
        found = yield from locks.with_disks(
            self.ctx, self.op.instance_name, self.op.instance_uuid, storage=False
        )
        self.uuid = found.uuid

    def check(self) -> None:
        self.instance = self.ctx.config.instances[self.uuid]
        power.primary(self.ctx, self.instance)

    def run(self) -> list[disks.Device]:
        ctx, instance = self.ctx, self.instance
        if not instance.disks_active:
            ctx.undo.callback(disks.shutdown, ctx, instance)
        found = disks.assemble(
            ctx, instance, ignore_secondaries=True, ignore_size=self.op.ignore_size
        )
        if self.op.wait_for_sync:
            outcome = sync.wait(ctx, instance)
            if outcome is sync.Outcome.DEGRADED:
                raise errors.OpExecError(
                    f"some disks of instance {instance.name} are degraded; see gnt-instance info"
                )
        power.set_state(
            ctx,
            instance,
            instance.admin_state,
            disks_active=True,
            source=instance.admin_state_source,
        )
        return found

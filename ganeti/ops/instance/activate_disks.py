"""Make the disks of a stopped instance usable."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.instance_disks import OpInstanceActivateDisks
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks, sync
from ganeti.ops.targets.instance import InstanceOperation


class InstanceActivateDisks(InstanceOperation[OpInstanceActivateDisks, list[disks.Device]]):
    """Returns (node, disk, device) for each disk, as the primary node has them."""

    def check(self) -> None:
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

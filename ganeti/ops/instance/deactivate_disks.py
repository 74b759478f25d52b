"""Deactivate the disks of a stopped instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.instance_disks import OpInstanceDeactivateDisks
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks
from ganeti.ops.targets.instance import InstanceOperation


class InstanceDeactivateDisks(InstanceOperation[OpInstanceDeactivateDisks, None]):
    """Refused while the instance runs; with ``force`` no node is asked whether it does."""

    def check(self) -> None:
        ctx = self.ctx
        if self.op.force:
            return
        power.primary(ctx, self.instance)
        if power.query_running(ctx, self.instance) is not None:
            raise errors.make_state_error(
                f"instance {self.instance.name} is running; stop it before its disks are"
                " deactivated"
            )

    def run(self) -> None:
        ctx, instance = self.ctx, self.instance
        failures = disks.shutdown(ctx, instance)
        if failures and not self.op.force:
            raise errors.OpExecError("; ".join(failures))
        power.set_state(
            ctx,
            instance,
            instance.admin_state,
            disks_active=False,
            source=instance.admin_state_source,
        )

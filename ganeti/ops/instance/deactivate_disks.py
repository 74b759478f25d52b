"""Take the disks of a stopped instance out of use."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.instance_disks import OpInstanceDeactivateDisks
from ganeti.ops import locks
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks


class InstanceDeactivateDisks(Operation[OpInstanceDeactivateDisks, None]):
    """Refused while the instance runs; ``force`` does not look."""

    def locks(self) -> Needs:
        found = yield from locks.with_disks(
            self.ctx, self.op.instance_name, self.op.instance_uuid, storage=False
        )
        self.uuid = found.uuid

    def check(self) -> None:
        ctx = self.ctx
        self.instance = ctx.config.instances[self.uuid]
        if self.op.force:
            return
        power.primary(ctx, self.instance)
        if power.running(ctx, self.instance) is not None:
            raise errors.wrong_state(
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

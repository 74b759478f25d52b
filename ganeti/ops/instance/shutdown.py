"""Stop an instance."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.model.enums import AdminState, AdminStateSource
from ganeti.opcodes.instance import OpInstanceShutdown
from ganeti.ops.operation import Hooks
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    #: whether only the new state is recorded
    only_record: bool


class InstanceShutdown(PlannedInstanceOperation[OpInstanceShutdown, _Plan, None]):
    """Asks the guest to stop, waits, ends it, and deactivates the disks."""

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        if self.instance.admin_state is AdminState.OFFLINE and not op.force:
            raise errors.make_state_error(f"instance {self.instance.name} is marked offline")
        only_record = power.accepts_offline_node(
            ctx, self.instance, accept=bool(op.ignore_offline_nodes)
        )
        if not only_record:
            power.primary(ctx, self.instance)
        return _Plan(only_record)

    def hooks(self) -> Hooks:
        return self.instance_hooks("instance-stop", {"TIMEOUT": self.op.timeout})

    def run(self) -> None:
        ctx, instance = self.ctx, self.instance
        source = AdminStateSource(self.op.admin_state_source or AdminStateSource.ADMIN)
        if not self.op.no_remember:
            power.set_state(
                ctx,
                instance,
                AdminState.DOWN,
                disks_active=instance.disks_active,
                source=source,
            )
        if self.plan.only_record:
            return
        power.stop(ctx, instance, self.op, self.op.timeout)
        disks.shutdown(ctx, instance)
        state = AdminState.DOWN
        if self.op.no_remember:
            state, source = instance.admin_state, instance.admin_state_source
        power.set_state(ctx, instance, state, disks_active=False, source=source)

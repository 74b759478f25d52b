"""Reboot an instance."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.model.enums import AdminState, RebootType
from ganeti.model.node import Node
from ganeti.opcodes.instance import OpInstanceReboot
from ganeti.ops import annotate
from ganeti.ops.operation import Hooks
from ganeti.ops.steps.running import bridges, power
from ganeti.ops.steps.storage import disks
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.calls import NodeCalls


@dataclass(frozen=True)
class _Plan:
    node: Node
    #: whether the guest runs before the reboot
    runs: bool


class InstanceReboot(PlannedInstanceOperation[OpInstanceReboot, _Plan, None]):
    """``soft`` and ``hard`` leave the disks active, ``full`` deactivates and activates them."""

    def decide(self) -> _Plan:
        node = power.primary(self.ctx, self.instance)
        runs = power.query_running(self.ctx, self.instance) is not None
        bridges.check(self.ctx, self.instance, node)
        return _Plan(node, runs)

    def hooks(self) -> Hooks:
        return self.instance_hooks(
            "instance-reboot",
            {
                "IGNORE_SECONDARIES": self.op.ignore_secondaries,
                "REBOOT_TYPE": self.op.reboot_type,
                "SHUTDOWN_TIMEOUT": self.op.shutdown_timeout,
            },
        )

    def run(self) -> None:
        ctx, op, instance = self.ctx, self.op, self.instance
        kind = RebootType(op.reboot_type)
        if self.plan.runs and kind is not RebootType.FULL:
            wire = annotate.instance(ctx.config, instance)
            ctx.rpc.call_one(
                self.plan.node,
                NodeCalls.instance_reboot,
                wire,
                str(kind),
                op.shutdown_timeout,
                power.reason(op),
            )
        else:
            if self.plan.runs:
                power.stop(ctx, instance, op, op.shutdown_timeout)
                disks.shutdown(ctx, instance)
            else:
                ctx.log(f"Instance {instance.name} was not running and is started")
            power.start(ctx, instance, op)
        power.set_state(ctx, instance, AdminState.UP, disks_active=True)

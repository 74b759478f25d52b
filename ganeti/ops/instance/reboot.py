"""Reboot an instance."""

from __future__ import annotations

from ganeti.model.names import AdminState, RebootType
from ganeti.opcodes.instance import OpInstanceReboot
from ganeti.ops import annotate, locks
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.steps.running import bridges, power
from ganeti.ops.steps.storage import disks
from ganeti.rpc.calls import NodeCalls


class InstanceReboot(Operation[OpInstanceReboot, None]):
    """``soft`` and ``hard`` leave the disks active, ``full`` takes everything down and up."""

    def locks(self) -> Needs:
        found = yield from locks.with_disks(
            self.ctx, self.op.instance_name, self.op.instance_uuid, storage=False
        )
        self.uuid = found.uuid

    def check(self) -> None:
        self.instance = self.ctx.config.instances[self.uuid]
        self.node = power.primary(self.ctx, self.instance)
        self.runs = power.running(self.ctx, self.instance) is not None
        bridges.check(self.ctx, self.instance, self.node)

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        env = {
            **hook_env.instance_env(config, instance),
            "IGNORE_SECONDARIES": self.op.ignore_secondaries,
            "REBOOT_TYPE": self.op.reboot_type,
            "SHUTDOWN_TIMEOUT": self.op.shutdown_timeout,
        }
        return Hooks("instance-reboot", "INSTANCE", env, nodes, nodes)

    def run(self) -> None:
        ctx, op, instance = self.ctx, self.op, self.instance
        kind = RebootType(op.reboot_type)
        if self.runs and kind is not RebootType.FULL:
            wire = annotate.instance(ctx.config, instance)
            ctx.rpc.one(
                self.node,
                NodeCalls.instance_reboot,
                wire,
                str(kind),
                op.shutdown_timeout,
                power.reason(op),
            )
        else:
            if self.runs:
                power.stop(ctx, instance, op, op.shutdown_timeout)
                disks.shutdown(ctx, instance)
            else:
                ctx.log(f"Instance {instance.name} was not running and is started")
            power.start(ctx, instance, op)
        power.set_state(ctx, instance, AdminState.UP, disks_active=True)

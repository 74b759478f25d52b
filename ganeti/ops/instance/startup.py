"""Start an instance."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model import params
from ganeti.model.enums import AdminState
from ganeti.model.params import BackendParams
from ganeti.opcodes.instance import OpInstanceStartup
from ganeti.ops.operation import Hooks
from ganeti.ops.planning import checks, restores
from ganeti.ops.steps import backups, node_checks
from ganeti.ops.steps.running import bridges, power
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    """Plan of a start, with the parameters that hold for this start only."""

    hvparams: JsonObject
    beparams: JsonObject
    #: whether only the new state is recorded
    only_record: bool
    #: whether the guest runs already
    runs: bool


class InstanceStartup(PlannedInstanceOperation[OpInstanceStartup, _Plan, None]):
    """Starts on the primary node; ``hvparams`` and ``beparams`` hold for this start only."""

    def decide(self) -> _Plan:
        ctx, op, instance = self.ctx, self.op, self.instance
        if instance.admin_state is AdminState.OFFLINE:
            raise errors.make_state_error(
                f"instance {instance.name} is marked offline; see gnt-instance modify --online"
            )
        beparams = params.check(BackendParams, params.expand_backend(op.beparams), "backend")
        hypervisor = instance.real_hypervisor
        hvparams: JsonObject = {}
        if op.hvparams:
            hvparams = checks.check_hvparams(
                ctx, hypervisor, instance.os, instance.hvparams, op.hvparams
            )
        if power.accepts_offline_node(ctx, instance, accept=bool(op.ignore_offline_nodes)):
            return _Plan(hvparams, beparams, only_record=True, runs=False)
        node = power.primary(ctx, instance)
        runs = power.query_running(ctx, instance) is not None
        if not runs:
            bridges.check(ctx, instance, node)
            memory = {**ctx.config.beparams(instance), **beparams}["maxmem"]
            node_checks.resources(
                ctx, node, f"instance {instance.name}", memory=(hypervisor, memory)
            )
        return _Plan(hvparams, beparams, only_record=False, runs=runs)

    def hooks(self) -> Hooks:
        return self.instance_hooks("instance-start", {"FORCE": self.op.force})

    def run(self) -> None:
        ctx, before, plan = self.ctx, self.instance, self.plan
        if not self.op.no_remember:
            power.set_state(ctx, before, AdminState.UP, disks_active=True)
            ctx.undo.callback(
                power.set_state,
                ctx,
                before,
                before.admin_state,
                disks_active=before.disks_active,
                source=before.admin_state_source,
            )
        if plan.only_record:
            return
        if plan.runs:
            ctx.log(f"Instance {before.name} is running already")
            return
        power.start(
            ctx,
            self.now,
            self.op,
            hvparams=plan.hvparams,
            beparams=plan.beparams,
            paused=self.op.startup_paused,
            ignore_secondaries=self.op.force,
            accept_parts=self.op.force,
        )
        if restores.find(self.now) is not None:
            backups.note(ctx, self.now, restoring=None)

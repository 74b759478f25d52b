"""Start an instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.model import params
from ganeti.model.names import AdminState
from ganeti.model.params import BackendParams
from ganeti.opcodes.instance import OpInstanceStartup
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.planning import checks
from ganeti.ops.steps import node_checks
from ganeti.ops.steps.running import bridges, power


class InstanceStartup(Operation[OpInstanceStartup, None]):
    """Starts on the primary node; ``hvparams`` and ``beparams`` hold for this start only."""

    def locks(self) -> Needs:
        found = yield from locks.with_disks(
            self.ctx, self.op.instance_name, self.op.instance_uuid, storage=False
        )
        self.uuid = found.uuid

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        self.instance = ctx.config.instances[self.uuid]
        name = self.instance.name
        assert self.instance.hypervisor is not None
        if self.instance.admin_state is AdminState.OFFLINE:
            raise errors.wrong_state(
                f"instance {name} is marked offline; see gnt-instance modify --online"
            )
        self.beparams = params.check(BackendParams, params.expand_backend(op.beparams), "backend")
        self.hvparams = {}
        if op.hvparams:
            self.hvparams = checks.check_hvparams(
                ctx, self.instance.hypervisor, self.instance.os, self.instance.hvparams, op.hvparams
            )
        node = ctx.config.nodes[self.instance.primary_node]
        self.offline = node.offline and op.ignore_offline_nodes
        if self.offline:
            ctx.log(f"Primary node {node.name} is offline: only the wish is recorded")
            return
        power.primary(ctx, self.instance)
        self.runs = power.running(ctx, self.instance) is not None
        if not self.runs:
            bridges.check(ctx, self.instance, node)
            memory = {**ctx.config.beparams(self.instance), **self.beparams}["maxmem"]
            node_checks.resources(
                ctx, node, f"instance {name}", memory=(self.instance.hypervisor, memory)
            )

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        env = {**hook_env.instance_env(config, instance), "FORCE": self.op.force}
        return Hooks("instance-start", "INSTANCE", env, nodes, nodes)

    def run(self) -> None:
        ctx, before = self.ctx, self.instance
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
        if self.offline:
            return
        if self.runs:
            ctx.log(f"Instance {before.name} is running already")
            return
        power.start(
            ctx,
            ctx.config.instances[self.uuid],
            self.op,
            hvparams=self.hvparams,
            beparams=self.beparams,
            paused=self.op.startup_paused,
            ignore_secondaries=self.op.force,
        )

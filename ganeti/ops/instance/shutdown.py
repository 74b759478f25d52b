"""Stop an instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.names import AdminState, AdminStateSource
from ganeti.opcodes.instance import OpInstanceShutdown
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks


class InstanceShutdown(Operation[OpInstanceShutdown, None]):
    """Asks the guest, waits, ends it; then the disks are deactivated."""

    def locks(self) -> Needs:
        found = yield from locks.with_disks(
            self.ctx, self.op.instance_name, self.op.instance_uuid, storage=False
        )
        self.uuid = found.uuid

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        self.instance = ctx.config.instances[self.uuid]
        if self.instance.admin_state is AdminState.OFFLINE and not op.force:
            raise errors.wrong_state(f"instance {self.instance.name} is marked offline")
        node = ctx.config.nodes[self.instance.primary_node]
        self.offline = node.offline and op.ignore_offline_nodes
        if self.offline:
            ctx.log(f"Primary node {node.name} is offline: only the wish is recorded")
        else:
            power.primary(ctx, self.instance)

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        env = {**hook_env.instance_env(config, instance), "TIMEOUT": self.op.timeout}
        return Hooks("instance-stop", "INSTANCE", env, nodes, nodes)

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
        if self.offline:
            return
        power.stop(ctx, instance, self.op, self.op.timeout)
        disks.shutdown(ctx, instance)
        state = AdminState.DOWN
        if self.op.no_remember:
            state, source = instance.admin_state, instance.admin_state_source
        power.set_state(ctx, instance, state, disks_active=False, source=source)

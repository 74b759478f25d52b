"""Fail an instance over: stop it, make the other node its primary one, start it there.

Once the record names the other node there is no way back; a failure before that starts the
instance again where it was. Mirrored disks that have no copy on the wanted node: ``to_any_node``.
"""

from __future__ import annotations

from ganeti.model.names import LockLevel
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.steps.relocation import cleanup, takeover, to_any_node
from ganeti.ops.steps.relocation.destination import Destination


class InstanceFailover(Operation[OpInstanceFailover, None]):
    """Also for an instance that is down: then only the record changes."""

    def locks(self) -> Needs:
        found = yield from locks.real_instance(
            self.ctx, self.op.instance_name, self.op.instance_uuid
        )
        self.uuid, self.source_uuid = found.uuid, found.primary_node
        self.secondaries = self.ctx.config.secondary_nodes(found)
        self.far: to_any_node.ToAnyNode | None = None
        if self.op.cleanup:
            yield from cleanup.locks(self.ctx, found)
            return
        far = to_any_node.wanted(self.ctx.config, found, self.op)
        if far is not None:
            self.far = to_any_node.ToAnyNode(self.ctx, found, far, self.op)
            yield from self.far.locks()
            return
        self.destination = Destination(self.ctx, found, self.op)
        yield from self.destination.locks()

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        self.instance = ctx.config.instances[self.uuid]
        self.target = None
        if op.cleanup:
            return
        if self.far is not None:
            self.far.check()
            self.target = self.far.target
            return
        self.target = self.destination.node()
        self.takeover = takeover.Takeover(
            ctx,
            self.instance,
            self.target,
            op,
            shutdown_timeout=op.shutdown_timeout,
            ignore_consistency=op.ignore_consistency,
            ignore_ipolicy=op.ignore_ipolicy,
        )
        self.takeover.check()

    def hooks(self) -> Hooks:
        config = self.ctx.config
        env = hook_env.instance_env(config, config.instances[self.uuid])
        source = config.nodes[self.source_uuid]
        names = [config.nodes[uuid].name for uuid in self.secondaries]
        keeper = source if self.far is None else self.far.keeper
        target = [] if self.target is None else [self.target.uuid]
        env.update(
            IGNORE_CONSISTENCY=self.op.ignore_consistency,
            SHUTDOWN_TIMEOUT=self.op.shutdown_timeout,
            OLD_PRIMARY=source.name,
            NEW_PRIMARY=self.target.name if self.target else source.name,
            FAILOVER_CLEANUP=self.op.cleanup,
            OLD_SECONDARY=names[0] if names else "",
            NEW_SECONDARY=keeper.name if names else "",
        )
        nodes = [config.cluster.master_node, *self.secondaries, *target]
        return Hooks("instance-failover", "INSTANCE", env, nodes, [*nodes, self.source_uuid])

    def run(self) -> None:
        if self.target is None:
            cleanup.Cleanup(
                self.ctx, self.instance, self.op, force=self.op.ignore_consistency
            ).run()
            return
        if self.far is not None:
            self.far.run()
            return
        self.ctx.release(LockLevel.NODE, keep=[self.source_uuid, self.target.uuid])
        self.takeover.run()

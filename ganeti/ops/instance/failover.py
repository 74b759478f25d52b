"""Fail an instance over: stop it, make another node its primary one, start it there.

Once the record names the other node there is no way back; a failure before that starts the
instance again where it was. Mirrored disks that have no copy on the wanted node: ``third_node``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.locking.levels import LockLevel
from ganeti.model.ids import NodeUuid
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.ops import hooks as hook_env
from ganeti.ops.on_reservations.move import ReservationFailover
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.steps.relocation import cleanup, failover, third_node
from ganeti.ops.steps.relocation.destination import Destination
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    """Plan of the job; without a failover the instance is only looked for (``--cleanup``)."""

    failover: failover.Failover | third_node.ThirdNodeFailover | None
    #: uuids of the secondary nodes before it
    secondaries: list[NodeUuid]


#: How the node is found: one without a copy of the disks is named, else the destination.
_Way = third_node.Preparation | Destination


class InstanceFailover(
    FindingOperation[OpInstanceFailover, _Way | None, None],
    PlannedInstanceOperation[OpInstanceFailover, _Plan, None],
):
    """Also for an instance that is down: then only the record changes."""

    for_reservation = ReservationFailover

    def find(self) -> Finding[_Way | None]:
        """How the node is found, None for a clean-up."""
        yield from self.lock_instance()
        if self.op.cleanup:
            yield from cleanup.locks(self.ctx, self.instance, force=self.op.ignore_consistency)
            return None
        third = third_node.find_wanted_node(self.ctx.config, self.instance, self.op)
        way: _Way
        if third is not None:
            way = third_node.Preparation(self.ctx, self.instance, third, self.op)
        else:
            way = Destination(self.ctx, self.instance, self.op)
        yield from way.locks()
        return way

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        secondaries = ctx.config.secondary_nodes(self.instance)
        if self.found is None:
            return _Plan(None, secondaries)
        if isinstance(self.found, third_node.Preparation):
            return _Plan(self.found.check(), secondaries)
        found = failover.Failover(
            ctx,
            self.instance,
            self.found.node(),
            op,
            shutdown_timeout=op.shutdown_timeout,
            ignore_consistency=op.ignore_consistency,
            ignore_ipolicy=op.ignore_ipolicy,
        )
        found.check()
        return _Plan(found, secondaries)

    def hooks(self) -> Hooks:
        config, found = self.ctx.config, self.plan.failover
        source = keeper = config.nodes[self.instance.primary_node]
        if isinstance(found, third_node.ThirdNodeFailover):
            keeper = found.keeper
        target = source if found is None else found.target
        names = [config.nodes[uuid].name for uuid in self.plan.secondaries]
        env = hook_env.instance_env(config, self.now)
        env.update(
            IGNORE_CONSISTENCY=self.op.ignore_consistency,
            SHUTDOWN_TIMEOUT=self.op.shutdown_timeout,
            OLD_PRIMARY=source.name,
            NEW_PRIMARY=target.name,
            FAILOVER_CLEANUP=self.op.cleanup,
            OLD_SECONDARY=names[0] if names else "",
            NEW_SECONDARY=keeper.name if names else "",
        )
        nodes = [config.cluster.master_node, *self.plan.secondaries]
        if found is not None:
            nodes.append(target.uuid)
        return Hooks("instance-failover", "INSTANCE", env, nodes, [*nodes, source.uuid])

    def run(self) -> None:
        ctx, found = self.ctx, self.plan.failover
        if found is None:
            cleanup.Cleanup(ctx, self.instance, self.op, force=self.op.ignore_consistency).run()
            return
        if isinstance(found, failover.Failover):
            ctx.release(LockLevel.NODE, keep=[self.instance.primary_node, found.target.uuid])
        found.run()

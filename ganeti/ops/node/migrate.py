"""Submit jobs that migrate all instances of a primary node to other nodes."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.base.json_types import JsonObject
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.opcodes.node import OpNodeMigrate
from ganeti.ops.operation import Hooks, Needs, PlannedOperation
from ganeti.ops.planning import disk_reach
from ganeti.ops.steps.nodes import departures
from ganeti.ops.targets.node import NodeOperation


@dataclass(frozen=True)
class _Plan:
    #: by name
    instances: list[Instance]
    #: the node that was named, for instances that can move there
    target: Node | None


class NodeMigrate(
    NodeOperation[OpNodeMigrate, JsonObject],
    PlannedOperation[OpNodeMigrate, _Plan, JsonObject],
):
    """One job for each instance; those that do not run are failed over."""

    def locks(self) -> Needs:
        yield from self.lock_node(shared=True)

    def decide(self) -> _Plan:
        config, op = self.ctx.config, self.op
        target = None
        if op.target_node_uuid or op.target_node:
            target = config.node(op.target_node_uuid or op.target_node or "")
        found = config.primaries.get(self.node.uuid, [])
        instances = [item for item in found if not item.interrupted]
        return _Plan(sorted(instances, key=lambda one: one.handle), target)

    def hooks(self) -> Hooks:
        env = {
            "OP_TARGET": self.node.name,
            "NODE_NAME": self.node.name,
            "ALLOW_RUNTIME_CHANGES": self.op.allow_runtime_changes,
        }
        master = [self.ctx.config.cluster.master_node]
        return Hooks("node-migrate", "NODE", env, master, master)

    def run(self) -> JsonObject:
        op, config, target = self.op, self.ctx.config, self.plan.target
        jobs: list[list[OpCode]] = []
        for item in self.plan.instances:
            anywhere = bool(
                item.forthcoming or disk_reach.reach(config, item) is disk_reach.Reach.ANYWHERE
            )
            named = target is not None and anywhere
            jobs.append(
                [
                    OpInstanceMigrate(
                        instance_name=item.handle,
                        mode=op.mode,
                        live=op.live,
                        # A mirrored instance can go to its secondary node only.
                        target_node=target.name if named and target else None,
                        iallocator=op.iallocator if anywhere and not named else None,
                        allow_runtime_changes=op.allow_runtime_changes,
                        ignore_ipolicy=op.ignore_ipolicy,
                        allow_failover=True,
                    )
                ]
            )
        return departures.submit_all(self.ctx, op, jobs)

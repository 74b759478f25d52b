"""Find out where an instance is, and put that on record (``--cleanup``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel, RunState
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.ops import annotate
from ganeti.ops.operation import Context, Needs
from ganeti.ops.planning import placement
from ganeti.ops.steps.relocation import destination, migration_disks
from ganeti.ops.steps.relocation.settlement import Settlement
from ganeti.ops.steps.running import run_rights
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer
from ganeti.rpc.objects import RightState, RunRight


def locks(ctx: Context, instance: Instance) -> Needs:
    """Locks of all nodes that could run the instance."""
    nodes = [node.uuid for node in placement.others(ctx.config, instance)]
    yield Need(LockLevel.NODE, [instance.primary_node, *nodes], shared=True)


@dataclass(frozen=True)
class _Seen:
    """What one node says."""

    node: Node
    answers: bool
    runs: bool = False
    right: RunRight | None = None


class Cleanup:
    """One clean-up; ``force`` ends copies on other nodes than the primary one."""

    def __init__(self, ctx: Context, instance: Instance, op: OpCode, *, force: bool) -> None:
        self._ctx = ctx
        self._instance = instance
        self._op = op
        self._force = force
        self._primary = ctx.config.nodes[instance.primary_node]

    def run(self) -> None:
        """Do it.

        Raises:
            OpExecError: a node that may run it does not answer, or several run it.
        """
        seen = self._look()
        pair = self._pair(seen)
        if pair is not None:
            source, target = pair
            self._ctx.log(
                f"* settling the migration of {self._instance.name} from {source.name} to"
                f" {target.name}"
            )
            settlement = Settlement(self._ctx, self._instance, source, target, self._op)
            found = settlement.run()
            self._ctx.log(f"* instance {self._instance.name} {found.value}")
            settlement.restart(found)
            return
        self._single(seen)

    # looking -------------------------------------------------------------------------------

    def _look(self) -> list[_Seen]:
        ctx, config, instance = self._ctx, self._ctx.config, self._instance
        nodes = [self._primary, *placement.others(config, instance)]
        hypervisor = str(instance.real_hypervisor)
        params = config.cluster.hvparams.get(hypervisor, {})
        infos = ctx.rpc.many(nodes, NodeCalls.instance_info, instance.name, hypervisor, params)
        known = ctx.rpc.many(nodes, NodeCalls.run_rights, [instance.uuid])
        return [_seen(infos[node.uuid], known[node.uuid]) for node in nodes]

    def _pair(self, seen: list[_Seen]) -> tuple[Node, Node] | None:
        """Source and target of a migration that did not end."""
        by_name = {node.name: node for node in self._ctx.config.nodes.values()}
        for state in (RightState.LEAVING, RightState.ARRIVING):
            for item in seen:
                right = item.right
                if right is None or right.state is not state:
                    continue
                other = by_name.get(right.peer)
                if other is None:
                    self._ctx.warn(f"node {right.peer} is not a node of the cluster any more")
                    continue
                leaving = state is RightState.LEAVING
                return (item.node, other) if leaving else (other, item.node)
        return None

    # without an unfinished migration ---------------------------------------------------------

    def _single(self, seen: list[_Seen]) -> None:
        name = self._instance.name
        running = [item.node for item in seen if item.runs]
        if len(running) > 1:
            self._several(running)
        elif not running:
            self._ctx.log(f"* instance {name} runs on no node that answers; nothing is changed")
        elif running[0].uuid == self._primary.uuid:
            self._ctx.log(f"* instance {name} runs on its primary node {self._primary.name}")
        else:
            self._elsewhere(running[0], seen[0])

    def _elsewhere(self, node: Node, primary: _Seen) -> None:
        """It runs on another node than the primary one: the record follows."""
        ctx, instance = self._ctx, self._instance
        if not primary.answers and not primary.node.offline:
            raise errors.OpExecError(
                f"instance {instance.name} runs on {node.name}, but its primary node"
                f" {primary.node.name} does not say whether it runs there too; repeat this when it"
                " answers, or is marked offline"
            )
        if primary.answers:
            run_rights.revoke(ctx, primary.node, instance)
        run_rights.tell(ctx, node, instance, RightState.HERE)
        destination.record(ctx, "instance-migrate", instance, node)
        ctx.log(f"* instance {instance.name} runs on {node.name}: that is its primary node now")
        migration_disks.leave(ctx, instance, winner=node, loser=primary.node)

    def _several(self, running: list[Node]) -> None:
        instance = self._instance
        names = ", ".join(sorted(node.name for node in running))
        if not self._force:
            raise errors.OpExecError(
                f"instance {instance.name} runs on several nodes: {names}. Decide which copy is the"
                f" good one; gnt-instance failover --cleanup --ignore-consistency {instance.name}"
                f" ends all but the one on the primary node {self._primary.name}"
            )
        if self._primary not in running:
            raise errors.OpExecError(
                f"instance {instance.name} runs on {names}, but not on its primary node"
                f" {self._primary.name}; end the wrong one by hand on its node first"
            )
        for node in running:
            if node.uuid != self._primary.uuid:
                self._end(node)

    def _end(self, node: Node) -> None:
        """End the copy on a node at once: it must not write to the disks any more."""
        ctx, instance = self._ctx, self._instance
        ctx.log(f"* ending the copy of {instance.name} on {node.name}")
        wire = annotate.instance(ctx.config, destination.as_if_on(instance, node))
        reason = [list(entry) for entry in self._op.reason]
        ctx.rpc.one(node, NodeCalls.instance_shutdown, wire, 0, reason)
        run_rights.revoke(ctx, node, instance)
        migration_disks.leave(ctx, instance, winner=self._primary, loser=node)


def _seen(info: Answer[Any], known: Answer[list[RunRight]]) -> _Seen:
    runs = (info.value or {}).get("state") == RunState.RUNNING
    right = known.value[0] if known.value else None
    return _Seen(info.node, info.ok and known.ok, runs, right)

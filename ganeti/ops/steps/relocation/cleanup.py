"""Find out where an instance is, and put that on record (``--cleanup``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.enums import RunState
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.ops import annotate
from ganeti.ops.operation import Context, Needs
from ganeti.ops.planning import disk_reach
from ganeti.ops.steps.relocation import destination, local_disks, migration_disks
from ganeti.ops.steps.relocation.settlement import Settlement
from ganeti.ops.steps.running import live_conversion, run_rights
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer
from ganeti.rpc.objects import RightState, RunRight


def locks(ctx: Context, instance: Instance, *, force: bool) -> Needs:
    """Locks of all nodes that are asked."""
    nodes = [node.uuid for node in _list_others(ctx.config, instance, force=force)]
    yield Need(LockLevel.NODE, [instance.primary_node, *nodes], shared=True)


def _list_others(config: Config, instance: Instance, *, force: bool) -> list[Node]:
    """Nodes beside the primary one that are asked; with ``force`` also those that had it before.

    A copy can be left on a node that has no disk of the instance any more: the node was marked
    offline and was not off, and the disks were made elsewhere meanwhile. Disks of one node may have
    been on their way to any node.
    """
    others = disk_reach.list_other_nodes(config, instance)
    if force or disk_reach.reach(config, instance) is disk_reach.Reach.FIXED:
        known = {instance.primary_node, *(node.uuid for node in others)}
        others += [node for node in config.nodes.values() if node.uuid not in known]
    return others


@dataclass(frozen=True)
class _Seen:
    """The answer of one node."""

    node: Node
    answers: bool
    runs: bool = False
    right: RunRight | None = None


@dataclass(frozen=True)
class _Open:
    """A migration that did not end, as one of its nodes has it on record."""

    right: RunRight
    #: the node with the record
    node: Node
    source: Node
    target: Node


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
        seen = self._query_nodes()
        live_conversion.clean_up(self._ctx, self._instance)
        unsettled = self._find_unsettled(seen)
        # One that the primary node has no part in ended without a node that was away then.
        late = [item for item in unsettled if self._primary not in (item.source, item.target)]
        for item in late:
            self._forget(item, runs=any(one.runs for one in seen if one.node is item.node))
        current = [item for item in unsettled if item not in late]
        if current:
            source, target = current[0].source, current[0].target
            self._ctx.log(
                f"* settling the migration of {self._instance.name} from {source.name} to"
                f" {target.name}"
            )
            settlement = Settlement(
                self._ctx,
                self._instance,
                source,
                target,
                self._op,
                gives_up_target=self._force,
            )
            found = settlement.run()
            self._ctx.log(f"* instance {self._instance.name} {found.value}")
            settlement.restart(found)
            return
        self._resolve_running(seen)

    # looking -------------------------------------------------------------------------------

    def _query_nodes(self) -> list[_Seen]:
        ctx, config, instance = self._ctx, self._ctx.config, self._instance
        nodes = [self._primary, *_list_others(config, instance, force=self._force)]
        hypervisor = str(instance.real_hypervisor)
        params = config.cluster.hvparams.get(hypervisor, {})
        infos = ctx.rpc.call_many(nodes, NodeCalls.instance_info, instance.name, hypervisor, params)
        known = ctx.rpc.call_many(nodes, NodeCalls.run_rights, [instance.uuid])
        return [_make_seen(infos[node.uuid], known[node.uuid]) for node in nodes]

    def _find_unsettled(self, seen: list[_Seen]) -> list[_Open]:
        """Migrations that did not end, the newest record first."""
        by_name = {node.name: node for node in self._ctx.config.nodes.values()}
        found = []
        for item in seen:
            right = item.right
            if right is None or right.state not in (RightState.LEAVING, RightState.ARRIVING):
                continue
            other = by_name.get(right.peer)
            if other is None:
                self._ctx.warn(f"node {right.peer} is not a node of the cluster any more")
                continue
            leaving = right.state is RightState.LEAVING
            source, target = (item.node, other) if leaving else (other, item.node)
            found.append(_Open(right, item.node, source, target))
        return sorted(found, key=lambda item: item.right.epoch, reverse=True)

    def _forget(self, item: _Open, *, runs: bool) -> None:
        """Let a node that was away hear that the instance went on without it."""
        ctx, instance, node = self._ctx, self._instance, item.node
        if runs:  # reported below as one of several copies
            return
        ctx.log(
            f"* ending the migration from {item.source.name} to {item.target.name} on {node.name}"
        )
        wire = annotate.instance(ctx.config, destination.place_on_node(instance, node))
        try:
            if node is item.source:
                ctx.rpc.call_one(node, NodeCalls.instance_finalize_migration_src, wire, True, True)
            else:
                ctx.rpc.call_one(node, NodeCalls.instance_finalize_migration_dst, wire, {}, False)
            local_disks.drop(ctx, instance, winner=self._primary, loser=node)
            run_rights.revoke(ctx, node, instance)
        except errors.GanetiError as err:
            ctx.warn(f"remains on node {node.name}: {errors.text(err)}")
            return
        migration_disks.leave(ctx, instance, winner=self._primary, loser=node)

    # without an unfinished migration ---------------------------------------------------------

    def _resolve_running(self, seen: list[_Seen]) -> None:
        name = self._instance.name
        running = [item.node for item in seen if item.runs]
        if len(running) > 1:
            self._resolve_double_run(running)
        elif not running and self._release_arrived(seen[0]):
            self._ctx.log(
                f"* instance {name} had arrived on {self._primary.name}; it runs there now"
            )
        elif not running:
            self._ctx.log(f"* instance {name} runs on no node that answers; nothing is changed")
        elif running[0].uuid == self._primary.uuid:
            self._ctx.log(f"* instance {name} runs on its primary node {self._primary.name}")
        else:
            self._record_move(running[0], seen[0])

    def _release_arrived(self, primary: _Seen) -> bool:
        """Let a guest run that waits on the primary node, which was told that it may.

        The source that sent it is away with its own record of the migration.
        """
        if primary.right is None or primary.right.state is not RightState.HERE:
            return False
        wire = annotate.instance(self._ctx.config, self._instance)
        try:
            self._ctx.rpc.call_one(
                primary.node, NodeCalls.instance_finalize_migration_dst, wire, {}, True
            )
        except errors.GanetiError:
            return False  # none waits there
        return True

    def _record_move(self, node: Node, primary: _Seen) -> None:
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
        run_rights.record(ctx, node, instance, RightState.HERE)
        destination.record(ctx, "instance-migrate", instance, node)
        ctx.log(f"* instance {instance.name} runs on {node.name}: that is its primary node now")
        migration_disks.leave(ctx, instance, winner=node, loser=primary.node)

    def _resolve_double_run(self, running: list[Node]) -> None:
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
        wire = annotate.instance(ctx.config, destination.place_on_node(instance, node))
        reason = [list(entry) for entry in self._op.reason]
        ctx.rpc.call_one(node, NodeCalls.instance_shutdown, wire, 0, reason)
        run_rights.revoke(ctx, node, instance)
        migration_disks.leave(ctx, instance, winner=self._primary, loser=node)


def _make_seen(info: Answer[Any], known: Answer[list[RunRight]]) -> _Seen:
    runs = (info.value or {}).get("state") == RunState.RUNNING
    right = known.value[0] if known.value else None
    return _Seen(info.node, info.ok and known.ok, runs, right)

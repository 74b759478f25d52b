"""Move instances off nodes for maintenance, or bring them back."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.node import OpNodeSetParams
from ganeti.opcodes.placement import OpNodeMaintenance
from ganeti.ops.allocator import board
from ganeti.ops.operation import Finding, FindingOperation, PlannedOperation
from ganeti.ops.planning import maintenance
from ganeti.ops.steps.relocation import planned_moves
from ganeti.ops.steps.relocation.planned_moves import Manner
from ganeti.placement import round_trip
from ganeti.placement.round_trip import Trip


@dataclass(frozen=True)
class _Plan:
    trip: Trip
    #: nodes that the moves count on
    present: tuple[str, ...]


class NodeMaintenance(
    FindingOperation[OpNodeMaintenance, list[Node], JsonObject],
    PlannedOperation[OpNodeMaintenance, _Plan, JsonObject],
):
    """The nodes are locked while it plans; then jobs drain them and move one instance each."""

    def find(self) -> Finding[list[Node]]:
        config = self.ctx.config
        if not self.op.node_names:
            raise errors.make_invalid_error("name the nodes")
        wanted = sorted({config.node(name).uuid for name in self.op.node_names})
        yield Need(LockLevel.NODE, wanted)
        config = self.ctx.config
        nodes = [config.nodes[uuid] for uuid in wanted if uuid in config.nodes]
        return sorted(nodes, key=lambda node: node.name)

    @property
    def _names(self) -> frozenset[str]:
        return frozenset(node.name for node in self.found)

    # check -------------------------------------------------------------------------------

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        for node in self.found:
            self._check_node(node)
        stays: dict[str, str] = {}
        targets: dict[str, list[str]] = {}
        changed = self.found
        if not op.on:
            targets, stays = maintenance.homes(ctx.config, self.found)
            changed = [node for node in self.found if not _was_drained(node)]
        config = maintenance.set_drained(ctx.config, changed, ctx.clock.now(), drained=op.on)
        view = board.view_cluster(ctx, config=config)
        if op.on:
            trip = round_trip.leave(view.cluster, self._names, disks_too=op.disks_too)
        else:
            trip = round_trip.plan_return(view.cluster, targets, self._names)
            trip = Trip(trip.entries, (*stays.items(), *trip.stay))
        used = {name for entry in trip.entries for name in entry.after} - self._names
        return _Plan(trip, tuple(sorted(used)))

    def _check_node(self, node: Node) -> None:
        config = self.ctx.config
        if not self.op.on:
            if node.maintenance is None:
                raise errors.make_state_error(f"node {node.name} is not in maintenance")
            return
        if node.uuid == config.cluster.master_node:
            raise errors.make_state_error(
                f"node {node.name} is the master; make another node the master first"
                " (gnt-cluster master-failover, on that node)"
            )
        if node.offline:
            raise errors.make_state_error(
                f"node {node.name} is offline, so nothing runs there that could migrate;"
                " gnt-node failover and gnt-node evacuate bring its instances to other nodes"
            )

    # run ---------------------------------------------------------------------------------

    def preview(self) -> JsonObject:
        return self._result([], [])

    def run(self) -> JsonObject:
        ctx, op, trip = self.ctx, self.op, self.plan.trip
        ctx.store.change("maintenance", ctx.author, self._edit)
        first = self._drains()
        manner = Manner(op.allow_failover, op.max_parallel, self.plan.present)
        ids = planned_moves.submit(ctx, op, [(trip.entries, manner)], first)
        drains, moves = ids[: len(first)], ids[len(first) :]
        names = join_names(sorted(self._names))
        way = "leave" if op.on else "come back to"
        ctx.log(f"Instances that {way} {names}: {len(moves)}")
        return self._result(drains, moves)

    def _edit(self, draft: Draft) -> None:
        for found in self.found:
            node = draft.config.nodes[found.uuid]
            record = None
            if self.op.on:
                record = maintenance.make_record(draft.config, node, self.plan.trip.entries)
            draft.update(node, maintenance=record)

    def _drains(self) -> list[list[OpCode]]:
        """Jobs that change the role of the nodes, with all that belongs to it."""
        on = self.op.on
        return [
            [OpNodeSetParams(node_name=node.name, drained=on, auto_promote=on)]
            for node in self.found
            if node.drained != on and not (not on and _was_drained(node))
        ]

    def _result(self, drains: list[int], moves: list[int]) -> JsonObject:
        entries = self.plan.trip.entries
        ids: list[int | None] = [*moves] if moves else [None] * len(entries)
        return {
            "jobs": [[True, job_id] for job_id in (*drains, *moves)],
            "nodes": sorted(self._names),
            "on": self.op.on,
            "moves": [planned_moves.describe(*pair) for pair in zip(entries, ids)],
            "stay": [{"instance": name, "reason": reason} for name, reason in self.plan.trip.stay],
        }


def _was_drained(node: Node) -> bool:
    """Whether it was drained before maintenance began."""
    return bool((node.maintenance or {}).get("drained"))

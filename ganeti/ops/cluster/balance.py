"""Submit jobs that move instances to where they balance the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.model.config import Config
from ganeti.opcodes.placement import OpClusterBalance
from ganeti.ops.allocator import board
from ganeti.ops.allocator.board import View
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import supposed
from ganeti.ops.steps.relocation import planned_moves
from ganeti.ops.steps.relocation.planned_moves import Manner
from ganeti.placement import agenda
from ganeti.placement.agenda import Agenda, Budget
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Group
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Limits


@dataclass(frozen=True)
class _Plan:
    #: each with the nodes that take part
    agendas: list[tuple[Agenda, tuple[str, ...]]]
    #: members of the answer beside the plan
    about: JsonObject


class ClusterBalance(PlannedOperation[OpClusterBalance, _Plan, JsonObject]):
    """Takes no locks: each move is a job that checks itself again and locks what it needs."""

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        if op.group_name is not None:
            ctx.config.group(op.group_name)
        if op.what_if and not op.dry_run:
            raise errors.make_invalid_error(
                "a plan for what is only supposed cannot run: add --dry-run"
            )
        view = board.view_cluster(ctx)
        made = supposed.suppose(view.cluster, op.what_if)
        groups = supposed.groups(view.config, made.cluster, op.group_name)
        if not op.what_if:
            _check_answers(view, groups)
        limits = Limits(disk_moves=op.disk_moves, frozen=_find_busy(view.config))
        budget = Budget(op.max_moves, op.max_data)
        agendas = []
        for group in groups:
            planned, nodes = _plan_group(made.cluster, group, limits, budget)
            agendas.append((planned, nodes))
            budget = budget.subtract(planned)
        return _Plan(agendas, supposed.describe_assumptions(op.what_if, made, view.silent))

    def preview(self) -> JsonObject:
        return self._result([])

    def run(self) -> JsonObject:
        ctx, op = self.ctx, self.op
        plans = [
            (planned.entries, Manner(op.allow_failover, op.max_parallel, nodes, strict=True))
            for planned, nodes in self.plan.agendas
        ]
        ids = planned_moves.submit(ctx, op, plans)
        for planned, _nodes in self.plan.agendas:
            ctx.log(agenda.summary(planned))
        if ids:
            ctx.log(f"To stop between two moves: gnt-job cancel {' '.join(map(str, ids))}")
        return self._result(ids)

    def _result(self, ids: list[int]) -> JsonObject:
        left = list(ids)
        groups = []
        for planned, _nodes in self.plan.agendas:
            numbers = [left.pop(0) if left else None for _entry in planned.entries]
            moves = [
                planned_moves.describe(entry, job_id, explain=self.op.explain)
                for entry, job_id in zip(planned.entries, numbers)
            ]
            groups.append(
                {
                    "group": planned.group,
                    "score": planned.score,
                    "score_after": planned.final,
                    "best_possible": planned.optimum,
                    "limited": planned.cut,
                    "moves": moves,
                }
            )
        return {
            **self.plan.about,
            "jobs": [[True, job_id] for job_id in ids],
            "groups": groups,
        }


def _check_answers(view: View, groups: list[Group]) -> None:
    """Nothing is moved while a node is in an unknown state; OpPrereqError."""
    wanted = {group.uuid for group in groups}
    members = {n.name for n in view.config.nodes.values() if n.group in wanted}
    silent = sorted(members.intersection(view.silent))
    if silent:
        raise errors.make_environment_error(
            f"{join_names(silent)} does not answer, so nobody knows what is there: repair it, or"
            " set it offline (gnt-node modify --offline=yes)"
        )


def _find_busy(config: Config) -> frozenset[str]:
    """Instances that are being made or removed: they stay out of the plan."""
    return frozenset(item.handle for item in config.forthcoming if item.interrupted)


def _plan_group(
    cluster: Cluster, group: Group, limits: Limits, budget: Budget
) -> tuple[Agenda, tuple[str, ...]]:
    layout = Layout.from_board(Board(cluster, group))
    nodes = layout.board.nodes
    present = tuple(node.name for i, node in enumerate(nodes) if layout.board.online[i])
    if len(present) < 2:
        return Agenda(group.name, 0.0, 0.0, ()), present
    return agenda.plan(layout, group.name, limits, budget), present

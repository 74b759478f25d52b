"""Tell whether the cluster survives the loss of a node, and whether balancing would help."""

from __future__ import annotations

import dataclasses

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.placement import OpClusterCheck
from ganeti.ops.allocator import board
from ganeti.ops.operation import Operation
from ganeti.ops.planning import supposed
from ganeti.placement import agenda, health
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Group
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Limits


class ClusterCheck(Operation[OpClusterCheck, JsonObject]):
    """Takes no locks; nothing is moved, whatever it finds."""

    def check(self) -> None:
        if self.op.group_name is not None:
            self.ctx.config.group(self.op.group_name)

    def run(self) -> JsonObject:
        op = self.op
        view = board.view_cluster(self.ctx)
        made = supposed.suppose(view.cluster, op.what_if)
        groups = [
            _examine(made.cluster, group)
            for group in supposed.groups(view.config, made.cluster, op.group_name)
        ]
        ok = not made.lost and all(group["ok"] for group in groups)
        return {
            **supposed.describe_assumptions(op.what_if, made, view.silent),
            "ok": ok,
            "groups": groups,
        }


def _examine(cluster: Cluster, group: Group) -> JsonObject:
    layout = Layout.from_board(Board(cluster, group))
    found = health.examine(layout)
    ill = any(found.counts)
    moves, helps = 0, False
    if ill:
        last = layout
        for step in agenda.steps(layout, Limits()):
            last, moves = step.after, moves + 1
        helps = sum(health.examine(last).counts) < sum(found.counts)
    return {
        "group": group.name,
        "nodes": len(layout.board.nodes),
        "instances": int(layout.board.uses.real.sum()),
        "ok": not ill,
        **dataclasses.asdict(found),
        "findings": health.findings(layout),
        #: whether balancing leaves less of it
        "balancing_helps": helps,
        "moves": moves,
    }

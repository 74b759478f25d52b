"""Choose another secondary node for an instance that stays where it runs."""

from __future__ import annotations

import dataclasses

import numpy as np

from ganeti.placement import hints, refusal
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Instance, Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits
from ganeti.placement.moves import Judge
from ganeti.placement.refusal import GroupRefusal, Refusal


def choose_secondary(
    cluster: Cluster, item: Instance, leaving: frozenset[str]
) -> tuple[str, Refusal | None]:
    """The best new secondary (or, on shared storage, primary) node; or "" and why there is none."""
    place = next((n for n in cluster.nodes if n.name == item.primary), None)
    group = next((g for g in cluster.groups if place and g.uuid == place.group), None)
    if place is None or group is None:
        return "", _refuse(item, "", "it has no node")
    if item.mirror is Mirror.NONE and item.template != "plain":
        reason = f"disk template {item.template} has no secondary node"
        return "", _refuse(item, group.name, reason)
    if item.mirror is not Mirror.EVERY_NODE:
        changed = dataclasses.replace(item, template="drbd")
        others = tuple(changed if one.name == item.name else one for one in cluster.instances)
        cluster = dataclasses.replace(cluster, instances=others)
    layout = Layout.from_board(Board(cluster, group))
    index = layout.board.instance_index[item.name]
    found = _find_best(layout, index, leaving)
    if found:
        return found, None
    mirror = item.mirror is not Mirror.EVERY_NODE
    nodes = refusal.explain_targets(layout, index, leaving, mirror=mirror)
    given = hints.find_around(layout, index, lambda after: bool(_find_best(after, index, leaving)))
    return "", _refuse(item, group.name, f"no node can take {item.name}", nodes, given)


def _find_best(layout: Layout, index: int, leaving: frozenset[str]) -> str:
    """Name of the node with the best score; "" when none can take the instance."""
    board = layout.board
    shared = board.instances[index].mirror is Mirror.EVERY_NODE
    judge = Judge(layout, Limits(closed=leaving))
    kind = Kind.TO_ANY if shared else Kind.REPLACE_SECONDARY
    scores = judge.scores(kind, np.array([index], dtype=np.int64))[0]
    if not scores.size or not np.isfinite(scores).any():
        return ""
    return board.nodes[int(judge.targets[int(np.argmin(scores))])].name


def _refuse(
    item: Instance,
    group: str,
    reason: str,
    nodes: tuple[refusal.NodeRefusal, ...] = (),
    given: list[refusal.Hint] | None = None,
) -> Refusal:
    return Refusal(item.name, (GroupRefusal(group, reason, nodes=nodes),), tuple(given or ()))

"""Choose another secondary node for an instance that stays where it runs."""

from __future__ import annotations

import dataclasses

import numpy as np

from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Instance, Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits
from ganeti.placement.moves import Judge


def new_secondary(cluster: Cluster, item: Instance, leaving: frozenset[str]) -> tuple[str, str]:
    """The best new secondary (or, on shared storage, primary) node; or "" and the reason."""
    place = next((n for n in cluster.nodes if n.name == item.primary), None)
    group = next((g for g in cluster.groups if place and g.uuid == place.group), None)
    if place is None or group is None:
        return "", f"{item.name} has no node"
    if item.mirror is Mirror.NONE and item.template != "plain":
        return "", f"{item.name} cannot have a secondary node (disk template {item.template})"
    if item.mirror is not Mirror.EVERY_NODE:
        changed = dataclasses.replace(item, template="drbd")
        others = tuple(changed if one.name == item.name else one for one in cluster.instances)
        cluster = dataclasses.replace(cluster, instances=others)
    layout = Layout.first(Board(cluster, group))
    board = layout.board
    index = board.instance_index[item.name]
    kind = Kind.TO_ANY if item.mirror is Mirror.EVERY_NODE else Kind.REPLACE_SECONDARY
    judge = Judge(layout, Limits(closed=leaving))
    scores = judge.scores(kind, np.array([index], dtype=np.int64))[0]
    if not scores.size or not np.isfinite(scores).any():
        return "", f"no node of group {group.name} can take {item.name}"
    target = int(judge.targets[int(np.argmin(scores))])
    return board.nodes[target].name, ""

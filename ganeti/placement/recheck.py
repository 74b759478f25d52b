"""Whether one planned move still suits a layout that has changed since."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits, places_after
from ganeti.placement.moves import Judge
from ganeti.placement.refusal import find_missing
from ganeti.placement.use import NOWHERE

#: A move may cost so much of the score: what nodes tell of free memory changes a little, and moves
#: of other nodes may still be under way.
_TOLERANCE = 0.01


def explain_refusal(
    layout: Layout, name: str, after: Sequence[str], *, must_gain: bool = False
) -> str:
    """Why an instance must not move to these nodes now (primary first); "" when it may.

    What it would break is judged as for any move: memory for the failure of a node (N+1),
    exclusion tags, ratios, room.
    """
    board = layout.board
    index = board.instance_index.get(name)
    if index is None:
        return "it has no node in this group"
    closed = [node for node in after if node not in board.node_index]
    closed += [node for node in after if node not in closed and not _online(layout, node)]
    own = [place for place in layout.place(index) if place]
    new = [node for node in closed if node not in own]
    if new:
        return f"{' and '.join(new)} cannot be used: offline, drained or without an answer"
    goal = [board.node_index[node] for node in after]
    found = way(layout, index, goal)
    if found is None:
        return _describe_missing(layout, index, goal)
    kind, target = found
    judge = Judge(layout, Limits())
    if not any(kind is one and index in rows for one, rows in judge.movable()):
        return "its disks or its other node do not allow this move now"
    scores = judge.scores(kind, np.array([index], dtype=np.int64))[0]
    at = 0 if kind is Kind.TO_SECONDARY else np.flatnonzero(judge.targets == target)
    value = float(np.min(scores[at], initial=np.inf))
    if value == np.inf:
        return _describe_missing(layout, index, goal) or (
            f"{after[0]} cannot take it without breaking N+1, exclusion tags or ratios"
        )
    if must_gain and value > judge.score + _TOLERANCE:
        return "it would make the balance worse now"
    return ""


def _online(layout: Layout, node: str) -> bool:
    return bool(layout.board.online[layout.board.node_index[node]])


def way(layout: Layout, index: int, goal: Sequence[int]) -> tuple[Kind, int] | None:
    """The kind of move that leads there, with its target; None when it takes two new nodes."""
    primary, secondary = goal[0], goal[1] if len(goal) > 1 else NOWHERE
    own = {int(layout.primary[index]), int(layout.secondary[index])}
    fresh = [node for node in (primary, secondary) if node != NOWHERE and node not in own]
    target = fresh[0] if len(fresh) == 1 else NOWHERE
    mirrored = int(layout.secondary[index]) != NOWHERE
    for kind in Kind:
        if (kind is Kind.TO_ANY) == mirrored or (kind is Kind.TO_SECONDARY) == bool(fresh):
            continue
        if places_after(layout, kind, index, target) == (primary, secondary):
            return kind, target
    return None


def _describe_missing(layout: Layout, index: int, goal: Sequence[int]) -> str:
    """The amounts that the new primary node does not have."""
    board = layout.board
    item = board.instances[index]
    emptied_layout = layout.move(index, NOWHERE, NOWHERE)
    missing = find_missing(emptied_layout, item, goal[0])
    if not missing:
        return ""
    return f"{board.nodes[goal[0]].name} needs another {' and '.join(m.text for m in missing)}"

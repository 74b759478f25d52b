"""How well a layout is balanced: the weighted sum of twenty metrics, 0 is best."""

from __future__ import annotations

import numpy as np

from ganeti.placement.layout import Layout
from ganeti.placement.use import NOWHERE, Floats

#: Weights of the metrics, in the order in which programs print them.
WEIGHTS = {
    "free_mem_cv": 0.5,
    "free_disk_cv": 0.5,
    "n1_cnt": 1.0,
    "reserved_mem_cv": 1.0,
    "offline_all_cnt": 4.0,
    "offline_pri_cnt": 16.0,
    "vcpu_ratio_cv": 0.5,
    "cpu_load_cv": 1.0,
    "mem_load_cv": 1.0,
    "disk_load_cv": 1.0,
    "net_load_cv": 1.0,
    "pri_tags_score": 2.0,
    "spindles_cv": 0.5,
    "free_mem_cv_forth": 0.5,
    "free_disk_cv_forth": 0.5,
    "vcpu_ratio_cv_forth": 0.5,
    "spindles_cv_forth": 0.5,
    "location_score": 1.0,
    "location_exclusion_score": 1.0,
    "reserved_mem_rtotal": 0.25,
}


def _spread(values: Floats) -> float:
    return float(values.std()) if len(values) else 0.0


def metrics(layout: Layout) -> dict[str, float]:
    """All metrics by name, in the order of :data:`WEIGHTS`."""
    board = layout.board
    on = board.online
    found = {}
    for spread in board.spreads:
        value = spread.start
        for use, factor in spread.terms:
            value = value + factor * layout.used[use]
        found[spread.name] = _spread(value[on])
    kept = (layout.reserved * board.per_memory)[on]
    seats = layout.seats.sum(axis=0)
    found["reserved_mem_cv"] = _spread(kept)
    found["reserved_mem_rtotal"] = float(kept.sum())
    found["n1_cnt"] = float(seats[on & layout.fails].sum())
    found |= _counts(layout)
    return {name: found[name] for name in WEIGHTS}


def _counts(layout: Layout) -> dict[str, float]:
    on = layout.board.online
    seats = layout.seats
    return {
        "offline_all_cnt": float(seats[:, ~on].sum()),
        "offline_pri_cnt": float(seats[0][~on].sum()),
        "pri_tags_score": float(np.maximum(layout.apart_count[:, on] - 1, 0).sum()),
        "location_score": _location(layout),
        "location_exclusion_score": float(np.maximum(layout.apart_at - 1, 0).sum()),
    }


def sum_counted(layout: Layout) -> float:
    """The part of the score that counts: offline nodes, tags, locations."""
    return sum(WEIGHTS[name] * value for name, value in _counts(layout).items())


def _location(layout: Layout) -> float:
    board = layout.board
    known = (layout.primary != NOWHERE) & board.uses.real
    known &= board.online[layout.primary]
    total = 0.0
    both = known & (layout.secondary != NOWHERE)
    if len(board.at):
        total += float(board.common[layout.primary[both], layout.secondary[both]].sum())
    if board.unmet is not None:
        rows = np.flatnonzero(known)
        total += float(board.unmet[rows, layout.primary[rows]].sum())
    return total


def score(layout: Layout) -> float:
    """The weighted sum of the metrics."""
    return sum(WEIGHTS[name] * value for name, value in metrics(layout).items())


def compute_bound(layout: Layout) -> float:
    """The share of the score that no move can take away: memory kept for a failed node.

    Spread evenly, the mirrored memory D of M needs D/M without and D/(M - largest node) with
    one node less; the difference has to be kept free.
    """
    board = layout.board
    total = float(board.memory.sum())
    rest = total - float(board.memory.max(initial=0.0))
    if len(board.nodes) < 2 or rest <= 0:
        return 0.0
    mirrored = float(layout.peers.sum())
    return WEIGHTS["reserved_mem_rtotal"] * (mirrored / rest - mirrored / total)

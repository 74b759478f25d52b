"""Balancing: one move after the other, each the best one possible, until no move gains enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits, Move, places_after
from ganeti.placement.moves import Judge
from ganeti.placement.score import compute_bound, score
from ganeti.placement.use import NOWHERE

#: Scores that close are compared again, computed from scratch.
CLOSE = 2e-7
#: How many of them.
MOST_CLOSE = 64


@dataclass(frozen=True, slots=True)
class Goal:
    """When to stop: ``min_gain`` counts only once the score is below ``min_gain_limit``."""

    max_length: int = -1
    min_score: float = 1e-9
    min_gain: float = 0.01
    min_gain_limit: float = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One move of a plan: the layouts and the scores before and after it."""

    move: Move
    before: Layout
    after: Layout
    score_before: float

    @property
    def gain(self) -> float:
        return self.score_before - self.move.score


def steps(layout: Layout, limits: Limits, goal: Goal) -> Iterator[Step]:
    """The plan, step by step; every layout in between keeps the rules that held before."""
    now = score(layout)
    done = 0
    while goal.max_length < 0 or done < goal.max_length:
        if now <= goal.min_score + compute_bound(layout):
            return
        move = find_best(layout, limits)
        if move is None or move.score >= now:
            return
        if now <= goal.min_gain_limit and now - move.score < goal.min_gain:
            return
        after = layout.move(move.instance, move.primary, move.secondary)
        yield Step(move, layout, after, now)
        layout, now, done = after, move.score, done + 1


def find_best(layout: Layout, limits: Limits) -> Move | None:
    """The allowed move with the best score, with that score; None when there is none.

    Of equal moves, the one of the first instance by name wins.
    """
    judge = Judge(layout, limits)
    found: list[tuple[float, int, int, int, Kind]] = []
    lowest = np.inf
    for order, (kind, rows) in enumerate(judge.movable()):
        scores = judge.scores(kind, rows)
        if not scores.size:
            continue
        lowest = min(lowest, float(scores.min()))
        if lowest == np.inf:
            continue
        for i, j in np.argwhere(scores <= lowest + CLOSE):
            target = NOWHERE if kind is Kind.TO_SECONDARY else int(judge.targets[j])
            found.append((float(scores[i, j]), int(rows[i]), target, order, kind))
    if lowest == np.inf:
        return None
    near = sorted(c for c in found if c[0] <= lowest + CLOSE)[:MOST_CLOSE]
    near.sort(key=lambda c: c[1:4])
    chosen: Move | None = None
    for _, instance, target, _, kind in near:
        primary, secondary = places_after(layout, kind, instance, target)
        exact = score(layout.move(instance, primary, secondary))
        if chosen is None or exact < chosen.score - 1e-12:
            chosen = Move(instance, kind, target, primary, secondary, exact)
    return chosen

"""Balancing: one move after the other, each the best of all, until nothing helps enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ganeti.placement import moves
from ganeti.placement.layout import Layout
from ganeti.placement.moves import Limits, Move
from ganeti.placement.score import best_possible, score


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
        if now <= goal.min_score + best_possible(layout):
            return
        move = moves.best(layout, limits)
        if move is None or move.score >= now:
            return
        if now <= goal.min_gain_limit and now - move.score < goal.min_gain:
            return
        after = layout.moved(move.instance, move.primary, move.secondary)
        yield Step(move, layout, after, now)
        layout, now, done = after, move.score, done + 1

"""Finds the smallest change that makes room for an instance without a place.

Three kinds of change are tried: release one reservation, move one instance, make the new instance
smaller. Each hint is one change that is enough by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ganeti.placement import move_kinds
from ganeti.placement.capacity import Filler, Rules
from ganeti.placement.facts import Instance
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits
from ganeti.placement.moves import Judge
from ganeti.placement.refusal import Change, Hint
from ganeti.placement.use import NOWHERE, Bools

Within = Callable[[Layout], Bools | None]
#: Whether an instance has a place in a layout.
Fits = Callable[[Layout], bool]

#: Most reservations, and most instances to move, that are tried.
_TRIES = 60
#: Dimensions that may become smaller, with the step in which sizes are tried (MiB, or a number).
_STEPS = {"memory": 64, "disk": 256, "vcpus": 1}


def find(item: Instance, layouts: Sequence[Layout], within: Within, rules: Rules) -> list[Hint]:
    """Hints for ``item``, at most one of each kind; ``layouts`` are the groups it may go to."""

    def fits(layout: Layout) -> bool:
        return _fits(item, layout, within, rules)

    searches: tuple[Callable[[Layout], Hint | None], ...] = (
        lambda layout: _reservation(layout, fits),
        lambda layout: _move(layout, fits),
        lambda layout: _find_smaller(item, layout, within, rules),
    )
    found = (next(filter(None, map(search, layouts)), None) for search in searches)
    return [hint for hint in found if hint is not None]


def find_around(layout: Layout, index: int, fits: Fits) -> list[Hint]:
    """Hints for an instance of the layout that is to get another node, and stays as it is."""
    found = (_reservation(layout, fits, index), _move(layout, fits, index))
    return [hint for hint in found if hint is not None]


def _fits(item: Instance, layout: Layout, within: Within, rules: Rules) -> bool:
    own = dataclasses.replace(rules, survive=rules.survive and int(layout.board.online.sum()) > 1)
    filler = Filler(layout, own, within(layout))
    return filler.try_one(item)[0] is not None


def _size(item: Instance) -> tuple[int, int, int, str]:
    return item.memory, item.disk, item.vcpus, item.name


def _reservation(layout: Layout, fits: Fits, but: int = NOWHERE) -> Hint | None:
    """The smallest reservation whose release makes the instance fit."""
    board = layout.board
    kept = [i for i, one in enumerate(board.instances) if one.forthcoming]
    kept = [i for i in kept if layout.primary[i] != NOWHERE and i != but]
    for i in sorted(kept, key=lambda i: _size(board.instances[i]))[:_TRIES]:
        if fits(layout.move(i, NOWHERE, NOWHERE)):
            return Hint(Change.REMOVE_RESERVATION, board.instances[i].name)
    return None


def _move(layout: Layout, fits: Fits, but: int = NOWHERE) -> Hint | None:
    """The smallest instance whose move makes room; reservations first, as nothing is copied."""
    board = layout.board
    judge = Judge(layout, Limits())
    for i in _movable(layout):
        if i == but:
            continue
        for kind, target in _ways(judge, i):
            primary, secondary = move_kinds.places_after(layout, kind, i, target)
            if fits(layout.move(i, primary, secondary)):
                goal = board.nodes[target if kind is not Kind.TO_SECONDARY else primary].name
                return Hint(Change.MOVE, board.instances[i].name, goal)
    return None


def _movable(layout: Layout) -> list[int]:
    board = layout.board
    known = [i for i in range(len(board.instances)) if layout.primary[i] != NOWHERE]
    known.sort(key=lambda i: (not board.instances[i].forthcoming, _size(board.instances[i])))
    return known[:_TRIES]


def _ways(judge: Judge, index: int) -> Iterator[tuple[Kind, int]]:
    """The best move of each kind for an instance."""
    rows = np.array([index], dtype=np.int64)
    for kind, able in judge.movable():
        if index not in able:
            continue
        scores = judge.scores(kind, rows)[0]
        if scores.size and np.isfinite(scores).any():
            best = int(np.argmin(scores))
            yield kind, NOWHERE if kind is Kind.TO_SECONDARY else int(judge.targets[best])


def _find_smaller(item: Instance, layout: Layout, within: Within, rules: Rules) -> Hint | None:
    """The first dimension that helps, and the largest size in it with which the instance fits."""
    policy = layout.board.policies[0] if layout.board.policies else None
    for name, step in _STEPS.items():
        whole = int(getattr(item, name))
        least = step
        if policy is not None and policy.bounds:
            key = "cpus" if name == "vcpus" else name
            least = max(step, min(int(getattr(low, key)) for low, _ in policy.bounds))
        low, high = -(-least // step), (whole - 1) // step
        if high < low:
            continue

        def resize(count: int, name: str = name, step: int = step) -> Instance:
            return dataclasses.replace(item, **{name: count * step})  # type: ignore[arg-type]

        if not _fits(resize(low), layout, within, rules):
            continue
        while low < high:
            middle = (low + high + 1) // 2
            if _fits(resize(middle), layout, within, rules):
                low = middle
            else:
                high = middle - 1
        return Hint(Change.SHRINK, item.name, dimension=name, amount=low * step)
    return None

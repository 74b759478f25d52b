"""A plan that balances a group, as people and operations need it: for each move why, what it
gains, how much data it copies, and which earlier moves it has to wait for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ganeti.base.text import plural
from ganeti.placement import balance, relocate
from ganeti.placement.balance import Goal
from ganeti.placement.facts import Instance
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits
from ganeti.placement.score import WEIGHTS, compute_bound, metrics, score

#: Meaning of a smaller value of a metric, for people; metrics that are alike share a text.
_MEANINGS = {
    "free_mem_cv": "free memory more even",
    "free_disk_cv": "free disk more even",
    "n1_cnt": "fewer instances on nodes that could not take over",
    "reserved_mem_cv": "memory kept for failures more even",
    "offline_all_cnt": "fewer instances on offline nodes",
    "offline_pri_cnt": "fewer instances on offline nodes",
    "vcpu_ratio_cv": "virtual processors more even",
    "cpu_load_cv": "load more even",
    "mem_load_cv": "load more even",
    "disk_load_cv": "load more even",
    "net_load_cv": "load more even",
    "pri_tags_score": "fewer instances together that should be apart",
    "spindles_cv": "spindles more even",
    "free_mem_cv_forth": "free memory more even",
    "free_disk_cv_forth": "free disk more even",
    "vcpu_ratio_cv_forth": "virtual processors more even",
    "spindles_cv_forth": "spindles more even",
    "location_score": "better locations",
    "location_exclusion_score": "fewer instances at one location that should be apart",
    "reserved_mem_rtotal": "less memory kept for failures",
}
#: So many reasons are given for a move.
_MOST_REASONS = 3
#: A share of the gain that is worth a reason.
_WORTH = 0.1


@dataclass(frozen=True, slots=True)
class Entry:
    """One move; nodes are names, the primary one first."""

    instance: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    steps: tuple[relocate.Step, ...]
    #: whether the guest runs, so that it migrates
    runs: bool
    gain: float = 0.0
    score: float = 0.0
    reasons: tuple[str, ...] = ()
    #: MiB of disk and of memory that are copied
    copied: int = 0
    #: positions of the earlier moves that share a node with it
    waits_for: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a plan may do; None is any amount."""

    moves: int | None = None
    #: MiB that are copied
    data: int | None = None

    def subtract(self, planned: Agenda) -> Budget:
        """Return the budget that is left after a plan."""
        copied = sum(entry.copied for entry in planned.entries)
        return Budget(
            None if self.moves is None else self.moves - len(planned.entries),
            None if self.data is None else self.data - copied,
        )


@dataclass(frozen=True, slots=True)
class Agenda:
    """The steps in a group, in this order."""

    group: str
    score: float
    #: share of the score that no move can take away
    optimum: float
    entries: tuple[Entry, ...]
    #: whether the budget ended it, not the lack of moves that help
    cut: bool = False

    @property
    def final(self) -> float:
        return self.entries[-1].score if self.entries else self.score


def steps(layout: Layout, limits: Limits) -> Iterator[balance.Step]:
    """The moves of a whole plan."""
    return balance.steps(layout, limits, Goal())


def plan(layout: Layout, group: str, limits: Limits, budget: Budget) -> Agenda:
    """The best moves, one after the other, within the budget.

    An instance whose move would copy more than is left of the budget stays, and the others go on.
    """
    now = score(layout)
    entries: list[Entry] = []
    spent, cut = 0, False
    going = True
    while going:
        going = False
        for step in steps(layout, limits):
            if budget.moves is not None and len(entries) >= budget.moves:
                cut = True
                break
            copied = count_copied(step)
            if budget.data is not None and spent + copied > budget.data:
                item = layout.board.instances[step.move.instance]
                limits = dataclasses.replace(limits, frozen=limits.frozen | {item.name})
                layout, cut, going = step.before, True, True
                break
            spent += copied
            entries.append(_entry(step, copied))
    return Agenda(group, now, compute_bound(layout), order_entries(entries), cut)


def _entry(step: balance.Step, copied: int) -> Entry:
    move, before = step.move, step.before
    item = before.board.instances[move.instance]
    return Entry(
        instance=item.name,
        before=_places(before, move.instance),
        after=_places(step.after, move.instance),
        steps=relocate.steps_of(before, item, move.kind, move.target),
        runs=item.runs,
        gain=step.gain,
        score=move.score,
        reasons=reasons(before, step.after),
        copied=copied,
    )


def _places(layout: Layout, instance: int) -> tuple[str, ...]:
    return tuple(name for name in layout.place(instance) if name)


def order_entries(
    entries: Sequence[Entry], aside: frozenset[str] = frozenset()
) -> tuple[Entry, ...]:
    """Each entry with those it has to wait for: the last ones before it on each of its nodes.

    Nodes ``aside`` are shared by all and do not count.

    Moves without a common node change nothing for each other, so rules that held after each move
    of the plan hold whichever of them ends first.
    """
    last: dict[str, int] = {}
    found: list[Entry] = []
    for number, entry in enumerate(entries):
        nodes = {*entry.before, *entry.after} - aside
        waits = sorted({last[node] for node in nodes if node in last})
        last.update(dict.fromkeys(nodes, number))
        found.append(dataclasses.replace(entry, waits_for=tuple(waits)))
    return tuple(found)


def count_copied(step: balance.Step) -> int:
    """MiB that a move copies: disks to a new node, and the memory of a guest that runs."""
    item = step.before.board.instances[step.move.instance]
    return size_of(item, step.move.kind)


def size_of(item: Instance, kind: Kind) -> int:
    """MiB that a kind of move of an instance copies; a reservation copies nothing."""
    if item.forthcoming:
        return 0
    replaced = kind not in (Kind.TO_SECONDARY, Kind.TO_ANY)
    migrations = {Kind.REPLACE_SECONDARY: 0, Kind.REPLACE_PRIMARY: 2}.get(kind, 1)
    return replaced * item.disk + migrations * item.memory * item.runs


def reasons(before: Layout, after: Layout) -> tuple[str, ...]:
    """Return the improvements by a move, the weightiest first."""
    old, new = metrics(before), metrics(after)
    gains: dict[str, float] = {}
    for name, weight in WEIGHTS.items():
        text = _MEANINGS[name]
        gains[text] = gains.get(text, 0.0) + weight * (old[name] - new[name])
    best = sorted((text for text in gains if gains[text] > 0), key=lambda text: -gains[text])
    if not best:
        return ()
    least = gains[best[0]] * _WORTH
    return tuple(text for text in best[:_MOST_REASONS] if gains[text] >= least)


def summary(agenda: Agenda) -> str:
    """One line about a plan."""
    if not agenda.entries:
        return f"Group {agenda.group}: nothing to do, score {agenda.score:.4f}"
    return (
        f"Group {agenda.group}: {plural(len(agenda.entries), 'move')},"
        f" score {agenda.score:.4f} to {agenda.final:.4f}"
    )

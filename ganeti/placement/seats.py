"""Places for one instance that has none yet, and the score of the cluster with each.

Primary nodes are rows and secondary nodes columns of one matrix; an instance that needs one node
has one column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ganeti.placement.facts import Instance, Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.score import WEIGHTS, sum_counted
from ganeti.placement.use import NOWHERE, Bools, Floats, Ints, Use


class Failure(StrEnum):
    """A reason why a place is not possible, with its words; listed in this order."""

    words: str

    def __new__(cls, name: str, words: str = "") -> Self:
        item = str.__new__(cls, name)
        item._value_ = name
        item.words = words
        return item

    CPU = "FailCPU", "virtual processors"
    MEMORY = "FailMem", "memory"
    DISK = "FailDisk", "disk"
    N1 = "FailN1", "memory kept for the failure of a node"
    TAGS = "FailTags", "exclusion tags"
    MIGRATION = "FailMig", "migration tags"
    DISK_COUNT = "FailDiskCount", "number of disks"
    SPINDLES = "FailSpindles", "spindles"
    INTERNAL = "FailInternal", "number of nodes"


#: Failures by their number in arrays; 0 is none.
FAILURES: tuple[Failure | None, ...] = (None, *Failure)
_NUMBER = {failure: number for number, failure in enumerate(FAILURES)}
Numbers = NDArray[np.int8]


class Seats:
    """All places of one instance in a layout in which it has none.

    ``index`` is its index on the board. ``soft``: keep N+1, tags and ratios. ``avoid`` is a node
    that nothing goes to; ``within`` are the nodes that are allowed, default all online ones.
    """

    def __init__(
        self,
        layout: Layout,
        item: Instance,
        index: int,
        *,
        soft: bool = True,
        avoid: int = NOWHERE,
        within: Bools | None = None,
        vcpu_ratio: float | None = None,
        disk_ratio: float = 0.0,
        primary: int | None = None,
    ) -> None:
        board = layout.board
        self.layout, self.board, self.item, self.index = layout, board, item, index
        self.soft = soft
        allowed = board.online.copy()
        if within is not None:
            allowed &= within
        if avoid != NOWHERE:
            allowed[avoid] = False
        self.pairs = item.mirror is Mirror.SECONDARY
        #: the nodes of rows and of columns
        self.nodes: Ints = np.flatnonzero(allowed)
        self.rows: Ints = self.nodes if primary is None else np.array([primary], dtype=np.int64)
        self.p = self.rows[:, None]
        self.s = self.nodes[None, :] if self.pairs else np.array([[NOWHERE]])
        self.one = board.uses.primary[:, index]
        self.two = board.uses.secondary[:, index]
        self.cpu_limit = board.cpu_limit
        if vcpu_ratio is not None:
            self.cpu_limit = np.array([n.cpus for n in board.nodes], dtype=float) * vcpu_ratio
        self.disk_ratio = disk_ratio
        self.kept = float(board.uses.reserve[index])
        #: per node, why it cannot be primary or secondary, as a number of :data:`FAILURES`
        self.primary_failures = self._part_failures(primary=True)
        self.secondary_failures = self._part_failures(primary=False) if self.pairs else None

    # what is missing at a place

    def _part_failures(self, *, primary: bool) -> Numbers:
        """For each node of the board what is missing there for one part of the instance."""
        board, layout = self.board, self.layout
        found: Numbers = np.zeros(len(board.nodes), dtype=np.int8)

        def mark(which: Bools, failure: Failure) -> None:
            found[which & (found == 0)] = _NUMBER[failure]

        disk = self.one[Use.DISK_ALL]
        if primary:
            memory = self.one[Use.MEMORY_ALL]
            if not self.item.forthcoming:
                mark(layout.memory_left - memory <= 0, Failure.MEMORY)
            mark(layout.memory_left_all - memory <= 0, Failure.MEMORY)
        if disk:
            left = board.disk_room - layout.used[Use.DISK_ALL] - disk
            mark((left <= 0) | (left < self.disk_ratio * board.disk), Failure.DISK)
            own = self.one[Use.OWN_SPINDLES_ALL]
            room = board.own_spindle_room - layout.used[Use.OWN_SPINDLES_ALL]
            mark(board.exclusive & (room - own < 0), Failure.SPINDLES)
            turning = layout.used[Use.SPINDLES_ALL] + self.one[Use.SPINDLES_ALL]
            if self.soft:
                mark(~board.exclusive & (turning > board.spindle_limit), Failure.DISK)
        if primary and self.soft:
            after = layout.memory_left - self.one[Use.MEMORY]
            mark((after < layout.reserved) & ~layout.fails, Failure.MEMORY)
            cpus = layout.used[Use.CPU_ALL] + board.node_cpus + self.one[Use.CPU_ALL]
            mark(cpus > self.cpu_limit, Failure.CPU)
            for tag in board.apart[self.index].tolist():
                if tag != NOWHERE:
                    mark(layout.apart_count[tag] > 0, Failure.TAGS)
        return found

    @cached_property
    def failures(self) -> Numbers:
        """Failure of each place, as a number of :data:`FAILURES`: primary x secondary."""
        first: Numbers = self.primary_failures[self.p]
        if self.secondary_failures is None:
            return first
        found: Numbers = np.where(first != 0, first, self.secondary_failures[self.s])
        if self.soft:
            peers, layout = self.layout.peers, self.layout
            kept = np.maximum(layout.reserved[self.s], peers[self.s, self.p] + self.kept)
            breaks = (layout.memory_left[self.s] < kept) & ~layout.fails[self.s]
            found[(found == 0) & breaks] = _NUMBER[Failure.MEMORY]
        return found

    def counts(self) -> Counter[str]:
        """How many places lack what."""
        found = self.failures
        if self.pairs:
            group = self.board.group_of
            found = found[(self.p != self.s) & (group[self.p] == group[self.s])]
        numbers = np.bincount(found.ravel(), minlength=len(FAILURES)).tolist()
        return Counter({str(f): n for f, n in zip(FAILURES, numbers) if f is not None and n})

    def allowed(self) -> Bools:
        """The places that lack nothing."""
        fits: Bools = self.failures == 0
        if self.pairs:
            fits = fits & (self.p != self.s)
            fits = fits & (self.board.group_of[self.p] == self.board.group_of[self.s])
        return fits

    # how good a place is

    def scores(self) -> Floats:
        """The score for each place, allowed or not."""
        layout, board = self.layout, self.board
        on = board.online
        count = max(1, int(on.sum()))
        weights, rows = [], []
        for weight, start, terms in board.merged_spreads:
            weights.append(weight)
            value, first, second = start, np.zeros(len(start)), np.zeros(len(start))
            for use, factor in terms:
                value = value + factor * layout.used[use]
                first = first + factor * self.one[use]
                second = second + factor * self.two[use]
            rows.append((value, first, second))
        if not rows:
            return self._measure_reserved_part(count) + self._count_part()
        #: metric x (now, change of the primary, change of the secondary) x node
        table = np.array(rows)
        counts = on.astype(float)
        off = (table[:, 0] - (table[:, 0] @ counts / count)[:, None]) * counts
        change = table[:, 1:]
        more = change * (2 * off[:, None] + change)
        squares = (off * off).sum(axis=1)[:, None, None] + more[:, 0][:, self.p]
        moved = change[:, 0][:, self.p]
        if self.pairs:
            squares = squares + more[:, 1][:, self.s]
            moved = moved + change[:, 1][:, self.s]
        squares = squares - moved * moved / count
        spreads = np.sqrt(np.maximum(squares, 0.0) / count)
        total: Floats = (np.array(weights) @ spreads.reshape(len(weights), -1)).reshape(
            spreads.shape[1:]
        )
        return total + self._measure_reserved_part(count) + self._count_part()

    def _measure_reserved_part(self, count: int) -> Floats:
        layout, board = self.layout, self.board
        on = board.online
        kept = np.where(on, layout.reserved * board.per_memory, 0.0)
        off = np.where(on, kept - kept[on].mean(), 0.0)
        squares: Floats = np.full((1, 1), float(off @ off))
        total: Floats = np.full((1, 1), float(kept.sum()))
        seats = layout.seats.sum(axis=0)
        real = float(not self.item.forthcoming)
        before = np.where(on, layout.fails * seats, 0.0)
        left = layout.memory_left - self.one[Use.MEMORY]
        fails = left < layout.reserved
        failing = float(before.sum()) + (fails * (seats + real) - before)[self.p]
        if self.pairs:
            own = layout.peers[self.s, self.p] + self.kept
            value = np.maximum(layout.reserved[self.s], own)
            delta = (value - layout.reserved[self.s]) * board.per_memory[self.s]
            squares = squares + delta * (2 * off[self.s] + delta) - delta * delta / count
            total = total + delta
            late = layout.memory_left[self.s] < value
            failing = failing + late * (seats[self.s] + real) - before[self.s]
        spread: Floats = np.sqrt(np.maximum(squares, 0.0) / count)
        result: Floats = (
            WEIGHTS["reserved_mem_cv"] * spread
            + WEIGHTS["reserved_mem_rtotal"] * total
            + WEIGHTS["n1_cnt"] * failing
        )
        return result

    def _count_part(self) -> Floats:
        """Measure the part of tags and locations in the score, with the instance at each place."""
        layout, board = self.layout, self.board
        on = board.online.astype(float)
        total: Floats = np.full((1, 1), sum_counted(layout))
        apart = np.zeros(len(board.nodes))
        far = np.zeros(len(board.nodes))
        for tag in board.apart[self.index].tolist():
            if tag != NOWHERE:
                apart += (layout.apart_count[tag] > 0) * on
                if len(board.at):
                    far += (layout.apart_at[tag] > 0).astype(float) @ board.at * on
        total = total + WEIGHTS["pri_tags_score"] * apart[self.p]
        if self.item.forthcoming:
            return total
        total = total + far[self.p]
        if board.unmet is not None:
            total = total + (board.unmet[self.index] * on)[self.p]
        if self.pairs and len(board.at):
            total = total + board.common[self.p, self.s] * on[self.p]
        return total

    def find_best(self) -> tuple[int, int, float] | None:
        """Primary, secondary and score of the best place; of equal ones the last by name."""
        if not len(self.rows) or not len(self.nodes):
            return None
        scores = np.where(self.allowed(), self.scores(), np.inf)
        found = next(ranking(scores), None)
        if found is None:
            return None
        i, j = found
        return int(self.rows[i]), int(self.s[0, j]), float(scores[i, j])

    def find_best_single(self) -> int | None:
        """The best primary node."""
        found = self.find_best()
        return None if found is None else found[0]


def ranking(scores: Floats) -> Iterator[tuple[int, int]]:
    """Places with a finite score, best first; of equal ones (1e-9) the last first."""
    width = scores.shape[1]
    values = scores.ravel()
    allowed = np.flatnonzero(np.isfinite(values))
    order = np.lexsort((-allowed, np.round(values[allowed], 9)))
    for place in allowed[order]:
        i, j = divmod(int(place), width)
        yield i, j

"""Moves of one instance: which are allowed, and what the score is after each.

All instances and all targets of one kind of move are judged at once, as matrices of instance x
target, from what changes on the three nodes that a move touches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ganeti.placement.facts import Mirror
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import AFTER, Kind, Limits
from ganeti.placement.score import WEIGHTS, score
from ganeti.placement.use import NOWHERE, Bools, Floats, Ints, Use


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """A spread over online nodes: weight, deviations from the mean, their squares, factors."""

    weight: float
    off: Floats
    squares: float
    #: (change on a node for one unit, use on the primary, use on the secondary)
    terms: tuple[tuple[Floats, Floats, Floats], ...]


def _merge(layout: Layout) -> list[_Spread]:
    """The linear metrics of a layout; those that are always equal are one with both weights."""
    board = layout.board
    result = []
    for weight, start, terms in board.merged_spreads:
        value = start
        for use, factor in terms:
            value = value + factor * layout.used[use]
        off = np.where(board.online, value - value[board.online].mean(), 0.0)
        parts = tuple((f, board.uses.primary[u], board.uses.secondary[u]) for u, f in terms)
        result.append(_Spread(weight, off, float(off @ off), parts))
    return result


def _column(values: Floats | Bools | Ints) -> Floats:
    return values.astype(float)[:, None]


class Judge:
    """Judges the moves of one layout."""

    def __init__(self, layout: Layout, limits: Limits) -> None:
        self.layout = layout
        self.limits = limits
        board = self.board = layout.board
        self.on = board.online.astype(float)
        self.count = max(1, int(board.online.sum()))
        closed = np.array([n.name in limits.closed for n in board.nodes], dtype=bool)
        self.targets: Ints = np.flatnonzero(board.online & ~closed)
        self.spreads = _merge(layout)
        kept = layout.reserved * board.per_memory * self.on
        mean = kept[board.online].mean() if board.online.any() else 0.0
        self.kept_off = np.where(board.online, kept - mean, 0.0)
        self.kept_squares = float(self.kept_off @ self.kept_off)
        peers = layout.peers
        nodes = len(board.nodes)
        self.highest = peers.argmax(axis=1)
        rest = peers.copy()
        rest[np.arange(nodes), self.highest] = 0.0
        self.second_highest = rest.max(axis=1)
        self.apart_many = layout.apart_count > 1
        self.apart_any = layout.apart_count > 0
        self.seats = layout.seats.sum(axis=0).astype(float)
        self.cpu_limit = board.cpu_limit
        if limits.vcpu_ratio is not None:
            cpus = np.array([n.cpus for n in board.nodes], dtype=float)
            self.cpu_limit = cpus * limits.vcpu_ratio
        base = score(layout)
        self.score = base
        spread_part = sum(
            s.weight * np.sqrt(max(0.0, s.squares) / self.count) for s in self.spreads
        )
        self.rest = base - spread_part - np.sqrt(self.kept_squares / self.count)

    def movable(self) -> Iterator[tuple[Kind, Ints]]:
        """Kinds of moves with the instances they are tried for."""
        board, layout, limits = self.board, self.layout, self.limits
        wanted = np.array(
            [
                item.name not in limits.frozen
                and (limits.instances is None or item.name in limits.instances)
                for item in board.instances
            ],
            dtype=bool,
        )
        first, second = layout.primary, layout.secondary
        wanted &= first != NOWHERE
        if limits.evacuate:
            lost = ~board.online[first] | ((second != NOWHERE) & ~board.online[second])
            wanted &= lost
        mirror = np.array([item.mirror for item in board.instances])
        pairs = np.flatnonzero(wanted & (second != NOWHERE) & (mirror == Mirror.SECONDARY))
        shared = np.flatnonzero(wanted & (mirror == Mirror.EVERY_NODE))
        usable = pairs[board.online[second[pairs]]]
        if limits.instance_moves:
            yield Kind.TO_SECONDARY, usable
        if limits.disk_moves:
            yield Kind.REPLACE_SECONDARY, pairs
            if limits.instance_moves:
                if not limits.restricted_migration:
                    yield Kind.REPLACE_TO_SECONDARY, pairs
                    yield Kind.REPLACE_PRIMARY, usable
                yield Kind.TO_SECONDARY_REPLACE, usable
        if limits.instance_moves:
            yield Kind.TO_ANY, shared

    def scores(self, kind: Kind, rows: Ints) -> Floats:
        """Scores after the moves, instance x target; infinite where a move is not allowed."""
        return _Batch(self, kind, rows).scores()


class _Batch:
    """All moves of one kind: ``rows`` are instances, columns the targets."""

    def __init__(self, judge: Judge, kind: Kind, rows: Ints) -> None:
        self.judge, self.kind, self.rows = judge, kind, rows
        layout, board = judge.layout, judge.board
        self.layout, self.board = layout, board
        self.p = layout.primary[rows][:, None]
        self.s = layout.secondary[rows][:, None]
        none = kind is Kind.TO_SECONDARY
        self.t: Ints = np.array([[0]]) if none else judge.targets[None, :]
        nowhere: Ints = np.array([[NOWHERE]])
        where = {"p": self.p, "s": self.s, "t": self.t, "-": nowhere}
        after = AFTER[kind]
        self.new_primary, self.new_secondary = where[after[0]], where[after[1]]
        #: an instance has to leave a node that is offline, whatever the soft rules say
        soft = judge.limits.ignore_soft
        lost = ~board.online & (not judge.limits.strict)
        self.forced = lost[self.p] | soft
        self.forced_second = (self.s != NOWHERE) & lost[self.s] | soft
        self.real = _column(board.uses.real[rows])
        #: share of primary and secondary use that a node gets: old primary, old secondary, target
        self.gains = {
            "p": (float(after[0] == "p") - 1.0, float(after[1] == "p")),
            "s": (float(after[0] == "s"), float(after[1] == "s") - 1.0),
            "t": (float(after[0] == "t"), float(after[1] == "t")),
        }
        self.touched = [
            (name, where[name])
            for name, (first, second) in self.gains.items()
            if (first or second) and not (name == "s" and kind is Kind.TO_ANY)
        ]

    def scores(self) -> Floats:
        shape = (len(self.rows), self.t.shape[1])
        if not shape[0] or not shape[1]:
            return np.full(shape, np.inf)
        judge = self.judge
        total: Floats = np.full((1, 1), judge.rest)
        for spread in judge.spreads:
            total = total + self._spread(spread) * spread.weight
        total = total + self._measure_reserved_part()
        total = total + self._count_part()
        return np.broadcast_to(np.where(self._allowed(), total, np.inf), shape)

    def _change(self, name: str, first: Floats, second: Floats) -> Floats:
        """Change of one kind of use on the nodes of this role, as a column."""
        one, two = self.gains[name]
        change = np.zeros((len(self.rows), 1))
        if one:
            change += one * first[self.rows][:, None]
        if two:
            change += two * second[self.rows][:, None]
        return change

    def _spread(self, spread: _Spread) -> Floats:
        judge = self.judge
        squares: Floats = np.full((1, 1), spread.squares)
        total: Floats = np.zeros((1, 1))
        for name, node in self.touched:
            delta: Floats = np.zeros((1, 1))
            for factor, first, second in spread.terms:
                one, two = self.gains[name]
                if (one and first.any()) or (two and second.any()):
                    delta = delta + factor[node] * self._change(name, first, second)
            squares = squares + delta * (2 * spread.off[node] + delta)
            total = total + delta
        squares = squares - total * total / judge.count
        result: Floats = np.sqrt(np.maximum(squares, 0.0) / judge.count)
        return result

    def _measure_left(self, name: str, node: Ints) -> Floats:
        """Memory left on a touched node after the move."""
        use = Use.MEMORY
        board = self.board
        change = self._change(name, board.uses.primary[use], board.uses.secondary[use])
        left: Floats = self.layout.memory_left[node] - change
        return left

    def _measure_reserved(self) -> dict[str, Floats]:
        """Memory that touched nodes keep after the move, by role."""
        judge, peers, old = self.judge, self.layout.peers, self.layout.reserved
        kept = self.board.uses.reserve[self.rows][:, None]
        if self.kind is Kind.TO_ANY:
            return {}
        p, s = self.p, self.s
        others = np.where(judge.highest[s] == p, judge.second_highest[s], old[s])
        less = np.maximum(others, peers[s, p] - kept)
        if self.kind is Kind.REPLACE_PRIMARY:
            return {"s": np.maximum(less, peers[s, self.t] + kept)}
        row, column = self.new_secondary, self.new_primary
        more = np.maximum(old[row], peers[row, column] + kept)
        return {"s": less, AFTER[self.kind][1]: more}

    def _measure_reserved_part(self) -> Floats:
        """Spread of what is kept, its sum, and the nodes that cannot take over."""
        judge, layout, board = self.judge, self.layout, self.board
        reserved = self._measure_reserved()
        where = {"p": self.p, "s": self.s, "t": self.t}
        squares: Floats = np.full((1, 1), judge.kept_squares)
        total: Floats = np.zeros((1, 1))
        for name, value in reserved.items():
            node = where[name]
            delta = (value - layout.reserved[node]) * board.per_memory[node] * judge.on[node]
            squares = squares + delta * (2 * judge.kept_off[node] + delta)
            total = total + delta
        spread = np.sqrt(np.maximum(squares - total * total / judge.count, 0.0) / judge.count)
        failing: Floats = np.zeros((1, 1))
        self.breaks: Bools = np.zeros((1, 1), dtype=bool)
        sums = dict(self.touched)
        sums.update({name: where[name] for name in reserved})
        for name, node in sums.items():
            value = reserved.get(name, layout.reserved[node])
            fails = self._measure_left(name, node) < value
            forced = self.forced if name == AFTER[self.kind][0] else self.forced_second
            newly = fails & ~layout.fails[node] & board.online[node]
            self.breaks = self.breaks | (newly & ~forced)
            one, two = self.gains[name]
            seats = judge.seats[node] + (one + two) * self.real
            before = layout.fails[node] * judge.seats[node]
            failing = failing + (fails * seats - before) * judge.on[node]
        return (
            WEIGHTS["reserved_mem_cv"] * spread
            + WEIGHTS["reserved_mem_rtotal"] * total
            + WEIGHTS["n1_cnt"] * failing
        )

    def _count_part(self) -> Floats:
        """Change of what is counted: offline nodes, exclusion tags, locations."""
        judge, board = self.judge, self.board
        off = 1.0 - judge.on
        total: Floats = np.zeros((1, 1))
        if off.any():
            primary = off[self.new_primary] - off[self.p]
            secondary: Floats = np.zeros((1, 1))
            if self.kind is not Kind.TO_ANY:
                secondary = off[self.new_secondary] - off[self.s]
            weight = WEIGHTS["offline_pri_cnt"] + WEIGHTS["offline_all_cnt"]
            total = total + self.real * (weight * primary + WEIGHTS["offline_all_cnt"] * secondary)
        self.conflict: Bools = np.zeros((1, 1), dtype=bool)
        moves = AFTER[self.kind][0] != "p"
        q = self.new_primary
        if moves and board.apart.shape[1]:
            apart: Floats = np.zeros((1, 1))
            for slot in range(board.apart.shape[1]):
                tag = board.apart[self.rows, slot][:, None]
                known = tag != NOWHERE
                meets = known & judge.apart_any[tag, q]
                self.conflict = self.conflict | meets
                leaves = known & judge.apart_many[tag, self.p]
                apart = apart + meets * judge.on[q] - leaves * judge.on[self.p]
            total = total + WEIGHTS["pri_tags_score"] * apart
        return total + self._location_part()

    def _location_part(self) -> Floats:
        judge, board = self.judge, self.board
        total: Floats = np.zeros((1, 1))
        on, p, q = judge.on, self.p, self.new_primary
        if board.unmet is not None:
            rows = self.rows[:, None]
            total = total + board.unmet[rows, q] * on[q] - board.unmet[rows, p] * on[p]
        if not len(board.at):
            return total * self.real
        if self.kind is not Kind.TO_ANY:
            after = board.common[q, self.new_secondary] * on[q]
            total = total + after - board.common[p, self.s] * on[p]
        if AFTER[self.kind][0] != "p":
            at = board.at.astype(float).T * on[:, None]
            here = at[self.p[:, 0]]
            for slot in range(board.apart.shape[1]):
                tag = board.apart[self.rows, slot]
                known = (tag != NOWHERE)[:, None]
                many = (self.layout.apart_at[tag] > 1) & known
                some = (self.layout.apart_at[tag] > 0) & known
                if q.shape[0] == 1:
                    there = at[q[0]]
                    lost = (many * here) @ (1 - there).T
                    won = (some * (1 - here)) @ there.T
                else:
                    there = at[q[:, 0]]
                    lost = (many * here * (1 - there)).sum(axis=1)[:, None]
                    won = (some * (1 - here) * there).sum(axis=1)[:, None]
                total = total + won - lost
        return total * self.real

    def _allowed(self) -> Bools:
        """Which moves are allowed; needs ``breaks`` and ``conflict`` of the parts above."""
        board = self.board
        p, s, t, q = self.p, self.s, self.t, self.new_primary
        allowed: Bools = np.ones((1, 1), dtype=bool)
        if self.kind is not Kind.TO_SECONDARY:
            allowed = allowed & (t != p)
            if self.kind is not Kind.TO_ANY:
                allowed = allowed & (t != s)
        soft = self.forced
        allowed = allowed & ~self.breaks & (soft | ~self.conflict)
        allowed = allowed & self._room_for_primary(q, soft)
        if self.kind is Kind.REPLACE_PRIMARY:
            allowed = allowed & self._room_for_primary(s, soft)
            allowed = allowed & (soft | self._may_pass(s))
            allowed = allowed & ((board.may_migrate[p, s] & board.may_migrate[s, q]) | self.forced)
        elif AFTER[self.kind][0] != "p":
            allowed = allowed & (board.may_migrate[p, q] | self.forced)
        if self.kind is not Kind.TO_SECONDARY and self.kind is not Kind.TO_ANY:
            allowed = allowed & self._room_for_disks(t)
        if self.kind is not Kind.TO_ANY:
            first, second = AFTER[self.kind]
            if first != "p":
                allowed = allowed & (soft | self._turns(q, q is t))
            if self.kind is Kind.REPLACE_PRIMARY:
                allowed = allowed & (soft | self._turns(s, False))
            else:
                allowed = allowed & (
                    self.forced_second | self._turns(self.new_secondary, second == "t")
                )
        return allowed

    def _room_for_primary(self, node: Ints, soft: Bools) -> Bools:
        """For each instance and target node: do memory and processors suffice?"""
        board, layout = self.board, self.layout
        every = board.uses.primary[Use.MEMORY_ALL, self.rows][:, None]
        now = board.uses.primary[Use.MEMORY, self.rows][:, None]
        here = node == self.p
        real = self.real > 0
        left = layout.memory_left[node] + here * now - every
        left_all = layout.memory_left_all[node] + here * every - every
        fits = ((left > 0) | ~real) & (left_all > 0)
        cpus = board.uses.primary[Use.CPU_ALL, self.rows][:, None]
        used = layout.used[Use.CPU_ALL] + board.node_cpus
        result: Bools = fits & (soft | here | (used[node] + cpus <= self.judge.cpu_limit[node]))
        return result

    def _may_pass(self, node: Ints) -> Bools:
        """Whether the old secondary may run the instance while its disks are replaced.

        A reservation runs nowhere in between.
        """
        judge, board, layout = self.judge, self.board, self.layout
        kept = board.uses.reserve[self.rows][:, None]
        every = layout.reserved[node]
        others = np.where(judge.highest[node] == self.p, judge.second_highest[node], every)
        less = np.maximum(others, layout.peers[node, self.p] - kept)
        memory = board.uses.primary[Use.MEMORY, self.rows][:, None]
        fine = layout.fails[node] | (layout.memory_left[node] - memory >= less)
        for slot in range(board.apart.shape[1]):
            tag = board.apart[self.rows, slot][:, None]
            fine = fine & ~((tag != NOWHERE) & judge.apart_any[tag, node])
        result: Bools = fine | (self.real == 0)
        return result

    def _room_for_disks(self, node: Ints) -> Bools:
        """Whether a node that has no copy yet can hold one."""
        board, layout, limits = self.board, self.layout, self.judge.limits
        size = board.uses.primary[Use.DISK_ALL, self.rows][:, None]
        left = board.disk_room - layout.used[Use.DISK_ALL]
        after = left[node] - size
        keep = limits.disk_ratio * board.disk
        fits = (after > 0) & (after >= keep[node])
        if board.exclusive.any():
            own = board.uses.primary[Use.OWN_SPINDLES_ALL, self.rows][:, None]
            room = board.own_spindle_room - layout.used[Use.OWN_SPINDLES_ALL]
            fits = fits & (~board.exclusive[node] | (room[node] - own >= 0))
        result: Bools = fits | (size == 0)
        return result

    def _turns(self, node: Ints, comes: bool) -> Bools:
        """Whether a node has the spindles for its part of the instance."""
        board, used = self.board, self.layout.used
        needed = board.uses.primary[Use.SPINDLES_ALL, self.rows][:, None] * comes
        limit = np.where(board.exclusive, np.inf, board.spindle_limit)
        after = used[Use.SPINDLES_ALL][node] + needed
        real = used[Use.SPINDLES][node] + needed
        fits = np.where(self.real > 0, real <= limit[node], after < limit[node])
        result: Bools = fits | (board.uses.primary[Use.SPINDLES_ALL, self.rows][:, None] == 0)
        return result

"""Use of nodes by instances, and its sums by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ganeti.placement.facts import LOCAL, TURNING, Instance, Mirror

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: index of "no node"
NOWHERE = -1


class Use(IntEnum):
    """Kinds of use of a node; ``..._ALL`` counts instances that are down and reservations."""

    MEMORY = 0
    MEMORY_ALL = 1
    DISK = 2
    DISK_ALL = 3
    CPU = 4
    CPU_ALL = 5
    LOAD_CPU = 6
    LOAD_MEMORY = 7
    LOAD_DISK = 8
    LOAD_NET = 9
    SPINDLES = 10
    SPINDLES_ALL = 11
    #: spindles on nodes with exclusive storage
    OWN_SPINDLES = 12
    OWN_SPINDLES_ALL = 13


USES = len(Use)


def use_of(item: Instance) -> tuple[list[float], list[float]]:
    """Uses of an instance on its primary and on its secondary node, by :class:`Use`."""
    real = not item.forthcoming
    local = item.template in LOCAL
    disk = item.disk if local else 0
    turning = item.spindle_use if item.template in TURNING else 0
    own = (item.spindles or 0) if item.template in TURNING else 0
    load = item.load
    primary = [
        item.memory if item.runs else 0,
        item.memory,
        disk if real else 0,
        disk,
        item.vcpus if real else 0,
        item.vcpus,
        load.cpu if real else 0,
        load.memory if real else 0,
        load.disk if real else 0,
        load.net if real else 0,
        turning if real else 0,
        turning,
        own if real else 0,
        own,
    ]
    secondary = [0.0] * USES
    if item.mirror is Mirror.SECONDARY:
        for use in (
            Use.DISK,
            Use.DISK_ALL,
            Use.LOAD_DISK,
            Use.SPINDLES,
            Use.SPINDLES_ALL,
            Use.OWN_SPINDLES,
            Use.OWN_SPINDLES_ALL,
        ):
            secondary[use] = primary[use]
    return [float(value) for value in primary], [float(value) for value in secondary]


def reserve_of(item: Instance) -> float:
    """Memory that the secondary node keeps for the day the primary node fails."""
    kept = item.auto_balance and not item.forthcoming and item.mirror is Mirror.SECONDARY
    return float(item.memory) if kept else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Uses:
    """The use by each of some instances."""

    #: on its primary and on its secondary node: :class:`Use` x instance
    primary: Floats
    secondary: Floats
    #: memory that is kept for it
    reserve: Floats
    #: false for a reservation
    real: Bools

    @classmethod
    def from_instances(cls, items: Sequence[Instance]) -> Uses:
        known = {id(item): use_of(item) for item in items}
        both = np.array([known[id(item)] for item in items]).reshape(len(items), 2, USES)
        return cls(
            both[:, 0].T.copy(),
            both[:, 1].T.copy(),
            np.array([reserve_of(item) for item in items], dtype=float),
            np.array([not item.forthcoming for item in items], dtype=bool),
        )

    def select(self, columns: Ints | slice) -> Uses:
        """The uses of some of the instances."""
        return Uses(
            self.primary[:, columns],
            self.secondary[:, columns],
            self.reserve[columns],
            self.real[columns],
        )

    def join(self, others: Uses) -> Uses:
        return Uses(
            np.hstack([self.primary, others.primary]),
            np.hstack([self.secondary, others.secondary]),
            np.append(self.reserve, others.reserve),
            np.append(self.real, others.real),
        )

    def kinds(self) -> list[Use | None]:
        """For each :class:`Use` the first one that is the same for all instances; None: all 0."""
        found: list[Use | None] = []
        first, second = self.primary.sum(axis=1).tolist(), self.secondary.sum(axis=1).tolist()
        for use in Use:
            same = (
                other
                for other in Use
                if other < use
                and (first[other], second[other]) == (first[use], second[use])
                and np.array_equal(self.primary[other], self.primary[use])
                and np.array_equal(self.secondary[other], self.secondary[use])
            )
            found.append(next(same, use) if first[use] or second[use] else None)
        return found


class Sums:
    """The sums of the use by instances that have a place.

    Amounts of the cluster are whole numbers, so sums that were changed step by step are exact.
    """

    __slots__ = ("mirrored", "peers", "seats", "used")

    def __init__(self, used: Floats, peers: Floats, mirrored: Floats, seats: Ints) -> None:
        #: what is used: :class:`Use` x node
        self.used = used
        #: memory that (row) keeps for the failure of (column)
        self.peers = peers
        #: memory of real instances that (row) takes over when (column) fails
        self.mirrored = mirrored
        #: how many real instances have a node as primary (row 0) and as secondary (row 1)
        self.seats = seats

    @classmethod
    def from_places(cls, uses: Uses, primary: Ints, secondary: Ints, count: int) -> Sums:
        """The sums over all instances on ``count`` nodes."""
        used = np.zeros((USES, count))
        seats = np.zeros((2, count), dtype=np.int64)
        for part, (where, use) in enumerate(((primary, uses.primary), (secondary, uses.secondary))):
            known = where != NOWHERE
            at = where[known]
            for k in range(USES):
                used[k] += np.bincount(at, weights=use[k][known], minlength=count)
            seats[part] = np.bincount(at[uses.real[known]], minlength=count)
        both = (primary != NOWHERE) & (secondary != NOWHERE)
        cell = secondary[both] * count + primary[both]
        memory = uses.primary[Use.MEMORY_ALL] * uses.real
        kept, mirrored = (
            np.bincount(cell, weights=one[both], minlength=count * count).astype(float)
            for one in (uses.reserve, memory)
        )
        return cls(used, kept.reshape(count, count), mirrored.reshape(count, count), seats)

    def copy(self) -> Sums:
        return Sums(self.used.copy(), self.peers.copy(), self.mirrored.copy(), self.seats.copy())

    def add(self, uses: Uses, index: int, primary: int, secondary: int, sign: int = 1) -> None:
        """Count the instance ``index``, or with ``sign`` -1 count it no more."""
        real = sign * int(uses.real[index])
        if primary != NOWHERE:
            self.used[:, primary] += sign * uses.primary[:, index]
            self.seats[0, primary] += real
        if secondary != NOWHERE:
            self.used[:, secondary] += sign * uses.secondary[:, index]
            self.seats[1, secondary] += real
            if primary != NOWHERE:
                self.peers[secondary, primary] += sign * uses.reserve[index]
                memory = uses.primary[Use.MEMORY_ALL, index]
                self.mirrored[secondary, primary] += real * memory

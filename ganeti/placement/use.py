"""What instances use of nodes, as numbers and arrays."""

from __future__ import annotations

from collections.abc import Sequence
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
    """What instances use of nodes; ``..._ALL`` counts instances that are down and reservations."""

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
    """What an instance uses on its primary and on its secondary node, by :class:`Use`."""
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


def uses_of(items: Sequence[Instance]) -> tuple[Floats, Floats, Floats, Bools]:
    """What instances use as primary and as secondary, what is kept for them, and who is real."""
    both = [use_of(item) for item in items]
    first: Floats = np.array([p for p, _ in both], dtype=float).reshape(len(items), USES).T.copy()
    second: Floats = np.array([s for _, s in both], dtype=float).reshape(len(items), USES).T.copy()
    reserve: Floats = np.array([reserve_of(item) for item in items], dtype=float)
    real: Bools = np.array([not item.forthcoming for item in items], dtype=bool)
    return first, second, reserve, real


def total(places: tuple[Ints, Ints], uses: tuple[Floats, Floats], count: int) -> Floats:
    """What instances at these places use of ``count`` nodes: :class:`Use` x node."""
    found = np.zeros((USES, count))
    for where, use in zip(places, uses):
        known = where != NOWHERE
        for k in range(USES):
            found[k] += np.bincount(where[known], weights=use[k][known], minlength=count)
    return found

"""The plan of a random schedule with leases: which faults begin when, and how devices behave. Pure.

The plan follows from the seed alone. A fault may name the master, which is then the node that has
this role at that moment.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What happens to a node."""

    CUT_OFF = "is cut off"
    CUT_SOME = "is cut off from some"
    CUT_SENDING = "sends to some in vain"
    CUT_HEARING = "hears nothing from some"
    FREEZE_MASTERD = "the master daemon is frozen"
    FREEZE_NODED = "the node daemon is frozen"
    FREEZE_ALL = "all processes are frozen"
    KILL_MASTERD = "the master daemon is killed"
    KILL_NODED = "the node daemon is killed"
    KILL_ALL = "all daemons are killed"
    POWER_CUT = "power is cut"
    DEVICE_FAILS = "its devices fail"
    FAILOVER = "is told to become the master"


_WEIGHTS = {
    Kind.CUT_OFF: 4,
    Kind.CUT_SOME: 2,
    Kind.CUT_SENDING: 2,
    Kind.CUT_HEARING: 2,
    Kind.FREEZE_MASTERD: 4,
    Kind.FREEZE_NODED: 4,
    Kind.FREEZE_ALL: 4,
    Kind.KILL_MASTERD: 2,
    Kind.KILL_NODED: 2,
    Kind.KILL_ALL: 2,
    Kind.POWER_CUT: 3,
    Kind.DEVICE_FAILS: 2,
    Kind.FAILOVER: 2,
}
#: After these a node cannot end its guests by itself, so a device that lies makes them run twice.
_NEED_HONESTY = frozenset({Kind.FREEZE_NODED, Kind.FREEZE_ALL, Kind.KILL_NODED, Kind.KILL_ALL})
#: Seconds that a fault lasts, with their weights.
_TIMES = {5: 2, 10: 2, 20: 3, 35: 4, 50: 3, 70: 2, 90: 1}
#: Seconds in which faults begin.
_SPAN = 40.0
#: Stands for the node that is the master.
MASTER = 0


@dataclass(frozen=True)
class Fault:
    """One fault. A killed daemon stays down while it lasts, or is started again at once."""

    begin: float
    kind: Kind
    #: number of the node, or :data:`MASTER`
    node: int
    #: seconds
    lasts: float
    #: of a cut: numbers of the other nodes, of which the node itself is left out
    others: tuple[int, ...]
    #: of a kill: systemd starts the daemon again at once
    restarts: bool

    @property
    def end(self) -> float:
        return self.begin + self.lasts


@dataclass(frozen=True)
class Plan:
    """One schedule."""

    seed: int
    faults: tuple[Fault, ...]
    #: kinds of devices that all nodes have, in the order in which they are tried
    devices: tuple[str, ...]
    #: what the devices of each node do, by kind and number
    modes: dict[tuple[str, int], str]
    #: whether guests are moved, stopped and started meanwhile
    moves: bool
    #: whether one of the nodes that have lost power does not get it again
    dark: bool


def make_plan(seed: int, count: int) -> Plan:
    """The plan of a seed for a cluster of ``count`` nodes."""
    chance = random.Random(seed)
    lying = chance.random() < 0.25
    kinds = {k: w for k, w in _WEIGHTS.items() if not (lying and k in _NEED_HONESTY)}
    faults = [_make_fault(chance, kinds, count) for _ in range(chance.randint(2, 5))]
    devices = chance.choice((("agent",), ("helper",), ("helper", "agent")))
    honest = {"works": 6, "slow": 3, "fails": 1}
    choices = {"works": 3, "slow": 2, "lies": 5} if lying else honest
    modes = {
        (kind, n): chance.choices(list(choices), list(choices.values()))[0]
        for kind in ("agent", "helper")
        for n in range(1, count + 1)
    }
    return Plan(
        seed,
        tuple(sorted(faults, key=lambda fault: fault.begin)),
        devices,
        modes,
        moves=chance.random() < 0.5,
        dark=chance.random() < 0.5,
    )


def _make_fault(chance: random.Random, kinds: dict[Kind, int], count: int) -> Fault:
    numbers = range(1, count + 1)
    return Fault(
        begin=round(chance.uniform(0, _SPAN), 1),
        kind=chance.choices(list(kinds), list(kinds.values()))[0],
        node=MASTER if chance.random() < 0.5 else chance.choice(numbers),
        lasts=float(chance.choices(list(_TIMES), list(_TIMES.values()))[0]),
        others=tuple(sorted(chance.sample(numbers, chance.randint(2, count)))),
        restarts=chance.random() < 0.5,
    )

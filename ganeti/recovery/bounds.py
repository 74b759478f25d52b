"""The arithmetic of leases: when the holder stops, and when others may count on it.

A lease of ``limit`` seconds begins at a moment of the holder's own clock that is not later than the
moment from which others count. The holder acts for two thirds of it (:data:`PART`). The last third
is for ending guests, or for the watchdog to reset the node. Others wait for all of it.

No clock may run more than :data:`DRIFT` faster or slower than true time. Clocks count while a
machine sleeps (``CLOCK_BOOTTIME``). Pure.
"""

from __future__ import annotations

from typing import Final

#: Part of a lease during which its holder acts.
PART: Final = 2 / 3
#: How much faster or slower than true time a clock may run.
DRIFT: Final = 0.01
#: Shortest lease of a node in seconds: three calls of the master and time to end guests.
SHORTEST_NODE_LEASE: Final = 30
#: A node is called so often in the time of its lease, and an answer may take as long: a stamp that
#: comes with one answer and goes back with the next call still leaves time for lost ones.
CALLS: Final = 12


def count_acting(limit: float) -> float:
    """Seconds on the holder's clock for which it may act, from the begin of the lease."""
    return PART * limit


def count_waiting(limit: float) -> float:
    """Seconds on another clock after which the lease is over, whatever both clocks do."""
    return limit * (1 + DRIFT) / (1 - DRIFT)


def count_watchdog(limit: float) -> int:
    """Seconds after its last food after which a watchdog must reset the node.

    A holder that feeds it at the last moment is reset before the lease is over.
    """
    return int(limit * (1 - PART)) - 1

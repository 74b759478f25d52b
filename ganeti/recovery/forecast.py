"""Forecast of what follows the death of a node, and when at the latest. Pure.

The arithmetic is that of :mod:`ganeti.recovery.bounds`. The times of a vote, of a device and of the
start of a guest are not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ganeti.recovery import bounds, standby


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that follows from the death of a node."""

    #: seconds after it, at the latest
    after: float
    text: str
    #: then the death is proven, and instances start elsewhere
    proves: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of the cluster, in seconds; 0 for never."""

    fence_after: float
    failover_after: float
    #: the store that holds the role of the master; empty: the nodes vote
    store: str = ""
    #: the store chooses the next master by itself
    chooses: bool = False


def foresee(rules: Rules, *, master: bool, watchdog: bool, devices: Sequence[str]) -> list[Moment]:
    """The moments from the death to its proof; the last one says what proves it, or why nothing.

    ``master``: the node is the master. ``watchdog``: one resets it without a lease. ``devices``
    can switch it off, in the order in which they are tried.
    """
    found: list[Moment] = []
    begin, older = 0.0, 0.0
    if master and rules.chooses:
        who = rules.store.capitalize()
        text = f"{who} makes a candidate the master; what follows counts from then"
        found.append(Moment(0, text))
    elif master:
        if not rules.failover_after:
            return [Moment(0, "nothing by itself: auto_failover_after is not set")]
        begin = rules.failover_after + standby.SPREAD
        step = "asks for votes"
        if rules.store:
            # The first attempt may come before the end of the lease in the store.
            begin += standby.plan_next_attempt(int(rules.failover_after), 1, 1.0)
            step = f"takes the role in {rules.store}"
        older = begin + bounds.count_waiting(rules.failover_after)
        found.append(Moment(begin, f"a candidate {step}, and becomes the master"))
    if not rules.fence_after:
        return [*found, Moment(begin, "nothing more by itself: auto_fence_after is not set")]
    if watchdog:
        acts = bounds.count_acting(rules.fence_after)
        reset = acts + bounds.count_watchdog(rules.fence_after)
        found.append(Moment(reset, "the watchdog has reset it, if it still ran"))
    fenced = begin + rules.fence_after * (1 + 1 / bounds.CALLS)
    # A new master has received no stamp of this node, so it cannot count on its watchdog.
    proofs = ["lease and watchdog", *devices] if watchdog and not master else [*devices]
    if not proofs:
        return [*found, Moment(fenced, "nothing more by itself: nothing can prove its death")]
    found.append(Moment(fenced, "the master begins to fence it"))
    over = max(fenced, older + bounds.count_waiting(rules.fence_after))
    text = f"its lease is over, and its death is proven by {proofs[0]}"
    return [*found, Moment(over, text, proves=True)]

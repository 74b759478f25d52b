"""The machine of an acting master: how long it may act, which nodes have leases, whom to fence.

Events go in, effects come out. All moments are of the master's own clock, which counts while the
machine sleeps. A caller that has waited feeds :class:`Tick` before it acts on an older effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ganeti.recovery import bounds
from ganeti.recovery.lease import Grant, Granted, Stamp

#: Seconds until a node whose fencing failed is fenced again.
AGAIN_AFTER = 300.0
#: Seconds in which a server boots. After a power cut of all, some are up long before others.
LONGEST_BOOT = 600.0

# events ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a moment."""

    at: float


@dataclass(frozen=True, slots=True)
class Tick(Event):
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Followed(Event):
    """A majority of the master candidates answered calls that were sent at ``at`` or later."""


@dataclass(frozen=True, slots=True)
class Answered(Event):
    """A node answered a call that was sent at ``at``; its stamp came at ``received``."""

    node: str
    stamp: Stamp | None = None
    received: float = 0.0


@dataclass(frozen=True, slots=True)
class FenceEnded(Event):
    """The attempt to prove the death of a node has ended."""

    node: str
    proven: bool


# effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepDown:
    """Stop to act: another node may become the master."""

    silence: float


@dataclass(frozen=True, slots=True)
class Fence:
    """Prove that this node is dead."""

    node: str
    silence: float


@dataclass(frozen=True, slots=True)
class Rebooted:
    """The node has another boot than before: what ran on it does not run any more."""

    node: str


Effect = StepDown | Fence | Rebooted


@dataclass(slots=True)
class Settings:
    """Settings of the cluster, in seconds; 0 for never, or without."""

    failover_after: float = 0
    fence_after: float = 0
    node_lease: float = 0


@dataclass(slots=True)
class Watched:
    """State of one node that is not offline, as the master knows it."""

    #: when it answered last, or was seen for the first time
    heard: float
    lease: Granted
    #: whether it has answered this master
    answered: bool = False
    fenced: float = -AGAIN_AFTER
    fencing: bool = False


@dataclass
class MasterMachine:
    """One term of one master. Not thread-safe."""

    settings: Settings
    #: when a majority was last known to follow
    contact: float
    nodes: dict[str, Watched] = field(default_factory=dict)
    #: nodes whose death can be proven; others are not fenced
    provable: frozenset[str] = frozenset()
    down: bool = False
    #: an administrator works at the nodes
    paused: bool = False
    #: until when a node that has not answered this master may be booting: :data:`LONGEST_BOOT`
    #: after the boot of this server
    booting_until: float = 0.0

    def follow_nodes(self, names: Collection[str], provable: Iterable[str], now: float) -> None:
        """The nodes that are not offline, this one included.

        A node that is new here may have a lease of an earlier master, which has granted the last
        one before its own lease was over.
        """
        self.provable = frozenset(provable)
        self.nodes = {
            name: self.nodes.get(name) or Watched(heard=now, lease=Granted(since=now))
            for name in names
        }

    def set_paused(self, now: float, *, paused: bool) -> None:
        """In a pause nodes need no leases and none is fenced. Silence counts from its end."""
        if self.paused and not paused:
            for known in self.nodes.values():
                known.heard = max(known.heard, now)
        self.paused = paused

    # the lease of the master -----------------------------------------------------------------

    @property
    def acts_until(self) -> float | None:
        """Until when this master may act; None: without end."""
        limit = self.settings.failover_after
        return self.contact + bounds.count_acting(limit) if limit else None

    def may_act(self, now: float) -> bool:
        until = self.acts_until
        return not self.down and (until is None or now < until)

    # calls -----------------------------------------------------------------------------------

    def grant(self, node: str, now: float) -> Grant | None:
        """Make the grant for the call to a node that is sent now; None for nothing.

        A node that is being fenced gets no lease, so that its lease can end.
        """
        known = self.nodes.get(node)
        if known is None or known.fencing or not self.may_act(now):
            return None
        return known.lease.give(0 if self.paused else self.settings.node_lease, now)

    def feed(self, event: Event) -> list[Effect]:
        """Apply an event; what to do now."""
        if isinstance(event, Followed):
            return self._follow_majority(event.at)
        if isinstance(event, Answered):
            return self._hear(event)
        if isinstance(event, FenceEnded):
            return self._end_fence(event)
        return self._check(event.at)

    def _follow_majority(self, sent: float) -> list[Effect]:
        """A lease that ran out before this call was sent is over for good.

        A candidate may have won a vote in the meantime, although nobody has told this node yet.
        """
        if not self.may_act(sent):
            return self._check(sent)
        self.contact = max(self.contact, sent)
        return []

    def _hear(self, event: Answered) -> list[Effect]:
        known = self.nodes.get(event.node)
        if known is None:
            return []
        known.answered = True
        known.heard = max(known.heard, event.at)
        before, stamp = known.lease.stamp, event.stamp
        if stamp is None or not known.lease.hear(stamp, event.received, event.at):
            return []
        changed = before is not None and before.boot != stamp.boot
        return [Rebooted(event.node)] if changed else []

    def _end_fence(self, event: FenceEnded) -> list[Effect]:
        known = self.nodes.get(event.node)
        if known is not None:
            known.fencing = False
            known.fenced = event.at
        return []

    def _check(self, now: float) -> list[Effect]:
        if not self.may_act(now):
            if self.down:
                return []
            self.down = True
            return [StepDown(now - self.contact)]
        limit = self.settings.fence_after
        if not limit or self.paused:
            return []
        effects: list[Effect] = []
        for name in find_silent(self.heard, self.provable, limit, now):
            known = self.nodes[name]
            if not known.fencing and now >= self._find_due(known):
                known.fencing = True
                effects.append(Fence(name, now - known.heard))
        return effects

    @property
    def heard(self) -> dict[str, float]:
        """When each node answered, or was seen for the first time."""
        return {name: known.heard for name, known in self.nodes.items()}

    def find_fence_time(self, node: str) -> float | None:
        """When a node is fenced if it stays silent; None: never, or in a pause."""
        known, limit = self.nodes.get(node), self.settings.fence_after
        if known is None or not limit or self.paused or node not in self.provable:
            return None
        return self._find_due(known)

    def may_boot(self, node: str, now: float) -> bool:
        """Whether a node may have got power together with this server, and still be booting."""
        known = self.nodes.get(node)
        return known is not None and not known.answered and now < self.booting_until

    def _find_due(self, known: Watched) -> float:
        due = max(known.heard + self.settings.fence_after, known.fenced + AGAIN_AFTER)
        return due if known.answered else max(due, self.booting_until)

    # the lease of a node ---------------------------------------------------------------------

    def find_lease_end(self, node: str) -> float | None:
        """When the lease of a node is over; None: nodes have no leases, or it is unknown here."""
        known, seconds = self.nodes.get(node), self.settings.node_lease
        return known.lease.find_end(seconds) if known is not None and seconds else None

    def is_released(self, node: str) -> bool:
        """Whether a node has shown that it needs no lease any more, in a pause."""
        known = self.nodes.get(node)
        return self.paused and known is not None and known.lease.released

    def is_armed(self, node: str) -> bool:
        """Whether the watchdog of a node resets it when its lease ends."""
        known = self.nodes.get(node)
        return known is not None and known.lease.armed


def find_silent(
    heard: dict[str, float], watched: Collection[str], limit: float, now: float
) -> list[str]:
    """Nodes to fence: those watched that have not answered for ``limit`` seconds. Pure.

    ``heard`` says when each node that is not offline, the master included, last answered. Nothing
    is found unless more than half of them have answered within the limit.
    """
    silent = [name for name, moment in heard.items() if now - moment >= limit]
    if 2 * len(silent) >= len(heard):
        return []
    return sorted(name for name in silent if name in watched)

"""The machine of a node: its lease, its guests and its watchdog, and its part in the vote.

Events go in, effects come out. All moments are of the node's own clock, which counts while the
machine sleeps. A caller that has waited feeds :class:`Tick`, or asks :meth:`NodeMachine.may_start`,
before it acts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ganeti.recovery.lease import Grant, Holder, Kept, Stamp
from ganeti.recovery.standby import Candidate

#: Seconds until guests that did not end are ended again.
END_AGAIN = 1.0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a moment."""

    at: float


@dataclass(frozen=True, slots=True)
class Tick(Event):
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Called(Event):
    """The master of the term that this node follows has called."""

    grant: Grant | None = None


@dataclass(frozen=True, slots=True)
class Signed(Event):
    """A call that counts as a sign of life of the master; it may say how much silence it allows."""

    limit: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptEnded(Event):
    """The attempt to become the master has ended; see :meth:`Candidate.end_attempt`."""

    counts: bool = True


@dataclass(frozen=True, slots=True)
class GuestBegan(Event):
    """A guest has begun to run; the lease may have ended since it was asked for."""


@dataclass(frozen=True, slots=True)
class GuestsEnded(Event):
    """No guest that may be started elsewhere runs here any more."""


class Effect(Enum):
    """Actions of the node after an event."""

    #: try to become the master
    ATTEMPT = "attempt"
    #: end the guests that may be started elsewhere
    END_GUESTS = "end guests"
    #: feed the watchdog; switch it on before, if the node has one and it is off
    FEED = "feed"
    #: switch the watchdog off: nobody counts on it any more
    DISARM = "disarm"


class NodeMachine:
    """One life of a node daemon. Not thread-safe."""

    def __init__(
        self, boot: str, now: float, chance: Callable[[], float], *, candidate: bool = True
    ) -> None:
        self.holder = Holder(boot)
        self.candidate: Candidate | None = Candidate(now, chance) if candidate else None
        #: whether an administrator wants the watchdog
        self.wants_watchdog = False
        #: whether the watchdog is on
        self.armed = False
        #: whether guests are ended when the lease ends
        self.ends_guests = True
        #: when guests are to be ended (again); None: not now
        self._end_at: float | None = None
        self._attempting = False

    def restore(self, kept: Kept, now: float) -> None:
        """Go on with the lease of an earlier daemon; its guests end as they would have."""
        self.holder.restore(kept, now)
        self._end_at = self.holder.acts_until

    # what others ask ---------------------------------------------------------------------------

    def make_stamp(self, now: float) -> Stamp:
        """Make the stamp for the answer to a call."""
        return Stamp(self.holder.boot, now, self.armed and self.wants_watchdog)

    def may_start(self, now: float) -> bool:
        """Whether a guest may begin to run: always where nodes need no leases."""
        return not self.holder.needed or self.holder.may_act(now)

    def find_wake(self) -> float | None:
        """When to feed the next tick, if nothing else happens."""
        moments = []
        if self.candidate is not None and not self._attempting:
            moments.append(self.candidate.tries_at)
        moments.append(self._end_at)
        return min((moment for moment in moments if moment is not None), default=None)

    # events ------------------------------------------------------------------------------------

    def feed(self, event: Event) -> list[Effect]:
        """Apply an event; what to do now."""
        now = event.at
        if isinstance(event, Called):
            return self._take(event)
        if isinstance(event, Signed):
            if self.candidate is not None:
                self.candidate.hear(now, event.limit)
            return []
        if isinstance(event, AttemptEnded):
            self._attempting = False
            if self.candidate is not None:
                self.candidate.end_attempt(now, counts=event.counts)
            return []
        if isinstance(event, GuestBegan):
            if not self.may_start(now):
                self._end_at = now
            return []
        if isinstance(event, GuestsEnded):
            if not self.holder.may_act(now):  # or else the end of a new lease has to be watched
                self._end_at = None
            return []
        return self._check(now)

    def _take(self, event: Called) -> list[Effect]:
        if event.grant is None:
            return []
        if self.holder.take(event.grant, event.at):
            if not self.holder.needed:
                return self._release()
            if self.holder.may_act(event.at):
                self._end_at = self.holder.acts_until
        return self._tend_watchdog(event.at)

    def _release(self) -> list[Effect]:
        """No master counts on the end of a lease any more."""
        self._end_at = None
        armed, self.armed = self.armed, False
        return [Effect.DISARM] if armed else []

    def _check(self, now: float) -> list[Effect]:
        effects = []
        candidate = self.candidate
        if candidate is not None and not self._attempting and candidate.is_due(now):
            self._attempting = True
            effects.append(Effect.ATTEMPT)
        if self._end_at is not None and now >= self._end_at:
            if self.ends_guests:
                effects.append(Effect.END_GUESTS)
                self._end_at = now + END_AGAIN
            else:
                self._end_at = None
        return effects + self._tend_watchdog(now)

    def _tend_watchdog(self, now: float) -> list[Effect]:
        """Feed it only with a lease; switch it off only when the master has heard so before."""
        if not self.holder.may_act(now):
            return []
        if self.wants_watchdog:
            self.armed = True
            return [Effect.FEED]
        if not self.armed:
            return []
        if self.holder.known_as_armed:
            return [Effect.FEED]
        self.armed = False
        return [Effect.DISARM]

"""The lease of a node: permission to run guests that might be started elsewhere.

Each answer of a node carries a stamp: a moment on its own clock. The next call of the master brings
the stamp back, and the lease of the node begins at that moment. The master counts from the moment
in which it received the stamp, which is later. So it does not matter how long messages travel,
whether they come twice or in another order, or for how long a daemon was frozen.
"""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.recovery import bounds


@dataclass(frozen=True, slots=True)
class Stamp:
    """A moment on the clock of a node, since the boot with this id."""

    boot: str
    at: float
    #: whether the watchdog of the node was on
    armed: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """Lease in a call of the master: the newest stamp of the node, and the length in seconds.

    Without a stamp it says only that nodes need leases: the master knows none of this node.
    With 0 seconds it releases the node, which needs no lease any more.
    """

    stamp: Stamp | None
    seconds: float
    #: the watchdog device that the node is to use, empty for none
    watchdog: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """The newest lease of a node, for a daemon that starts again during the same boot."""

    boot: str
    #: moment on the clock of the node
    begin: float
    #: 0: nodes need no lease
    seconds: float


class Holder:
    """The lease as its node sees it. Not thread-safe."""

    def __init__(self, boot: str) -> None:
        self.boot = boot
        #: length of the newest lease in seconds; 0: none was granted since the start, or the newest
        #: grant was a release (then ``needed`` is false)
        self.seconds = 0.0
        #: whether a master has said that nodes need leases
        self.needed = False
        #: the watchdog device that the master wants to be used, empty for none
        self.watchdog = ""
        self._begin = 0.0
        #: state of the watchdog in the newest stamp that the master has sent back
        self.known_as_armed = False

    def take(self, grant: Grant, now: float) -> bool:
        """Note what a call brought; whether it is newer than what was known.

        A stamp of another boot, or of the future, is not one that this node gave.
        """
        stamp = grant.stamp
        if stamp is None or stamp.boot != self.boot:
            self.needed = self.needed or grant.seconds > 0
            return False
        if stamp.at > now or stamp.at < self._begin:
            return False
        self.needed = grant.seconds > 0
        self._begin = stamp.at
        self.seconds = grant.seconds
        self.watchdog = grant.watchdog
        self.known_as_armed = stamp.armed
        return True

    def keep(self) -> Kept:
        """Return the lease to be kept for :meth:`restore`; an older one ends earlier."""
        return Kept(self.boot, self._begin, self.seconds)

    def restore(self, kept: Kept, now: float) -> None:
        """Begin with what an earlier daemon knew, unless it is of another boot or the future."""
        if kept.boot == self.boot and kept.begin <= now:
            self._begin, self.seconds = kept.begin, kept.seconds
            self.needed = kept.seconds > 0

    @property
    def acts_until(self) -> float | None:
        """Until when guests may run here; None: no lease was granted since the start."""
        return self._begin + bounds.count_acting(self.seconds) if self.seconds else None

    def may_act(self, now: float) -> bool:
        """Whether the lease allows to act at this moment."""
        until = self.acts_until
        return until is not None and now < until


@dataclass(slots=True)
class Granted:
    """The lease of one node as its master sees it."""

    #: when the newest stamp that was sent back had come, or when another master can have sent one
    since: float
    stamp: Stamp | None = None
    #: when the stamp came
    received: float = 0.0
    #: whether the newest stamp said that the watchdog is on, and the node obeys a lease
    armed: bool = False
    #: the stamp by which the node was released from its lease; None: it was not, or obeys again
    _released: Stamp | None = None
    #: whether the node has answered a call that was sent after the one with its release
    released: bool = False
    #: when the first call with the release was sent
    _released_at: float = 0.0
    #: answers to earlier calls may come from before the end of a release
    _obeys_from: float = 0.0

    def hear(self, stamp: Stamp, now: float, sent: float | None = None) -> bool:
        """Note the stamp of an answer; False when it is not newer than what is known.

        Stamps of another boot replace those of the boot before. ``sent``: when the call was sent.
        """
        if not _is_newer(stamp, self.stamp):
            return False
        self.stamp, self.received = stamp, now
        if self._released is not None and sent is not None and sent > self._released_at:
            self.released = True
        obeys = self._released is None and (sent is None or sent >= self._obeys_from)
        self.armed = stamp.armed and obeys
        return True

    def give(self, seconds: float, now: float) -> Grant:
        """Make the grant for the call that is sent now.

        A release may arrive late. So after one the node gets a lease only with a newer stamp: a
        node that has taken that obeys no older release.
        """
        if self.stamp is None:
            return Grant(None, seconds)
        if not seconds:
            if self._released is None:
                self._released_at = now
            self._released, self.armed = self.stamp, False
        elif self._released is not None:
            if not _is_newer(self.stamp, self._released):
                return Grant(None, seconds)
            self._released, self._obeys_from, self.released = None, now, False
        self.since = max(self.since, self.received)
        return Grant(self.stamp, seconds)

    def is_over(self, seconds: float, now: float) -> bool:
        """Whether the node has ended its guests, or was reset, if it obeys."""
        return now >= self.find_end(seconds)

    def find_end(self, seconds: float) -> float:
        """When the lease is over on the clock of the master."""
        return self.since + bounds.count_waiting(seconds)


def _is_newer(stamp: Stamp, known: Stamp | None) -> bool:
    return known is None or known.boot != stamp.boot or stamp.at > known.at

"""The role of the master as one node claims and holds it in a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock, Deadline
from ganeti.recovery import bounds, role
from ganeti.recovery.role import Claim, Record, RoleStore

#: Seconds for the store to answer one question.
PATIENCE = 5.0
#: Seconds between two looks while another node has the role.
PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Held:
    """The role as this node has it."""

    claim: Claim
    #: when the lease began at the latest, by the monotonic clock: before it was asked for
    since: float
    #: length of the lease
    seconds: int

    @property
    def acts_until(self) -> float:
        """When this node must no longer act as the master, by the monotonic clock."""
        return self.since + bounds.count_acting(self.seconds)


class Role:
    """Claims the role for this node. One thread changes it at a time."""

    def __init__(
        self,
        store: RoleStore,
        node: str,
        clock: Clock = SYSTEM,
        wait: Callable[[float], object] = SYSTEM.sleep,
    ) -> None:
        self.store = store
        self._node = node
        self._clock = clock
        self._wait = wait
        #: None: this node has not the role
        self.held: Held | None = None

    def read(self) -> Record:
        """Read the store; RemoteError if it does not answer."""
        return self.store.read(Deadline(PATIENCE, self._clock))

    def take(self, lowest: int, seconds: int, *, force: bool = False, patience: float = 0.0) -> int:
        """Claim the role; returns the number of the term, at least ``lowest``.

        Waits ``patience`` seconds for the end of the lease of another node. With ``force`` it takes
        the role from any other node.

        Raises:
            NoMasterError: another node has the role.
            RemoteError: the store does not answer.
        """
        end = Deadline(patience, self._clock)
        while True:
            record = self.read()
            other = None if force else role.find_holder(self.store.name, record, self._node)
            if other is None:
                claim = Claim(record.choose_term(lowest), self._node)
                since = self._clock.monotonic()
                granted = self.store.claim(
                    record, claim, seconds, Deadline(PATIENCE, self._clock), force=force
                )
                if granted is not None:
                    self.held = Held(claim, since, granted)
                    return claim.term
                other = f"{self.store.name} has a newer claim than the one it told of"
            if end.has_passed:
                raise errors.NoMasterError(other)
            self._wait(PAUSE)  # the store does not tell when a lease ends

    def renew(self, seconds: int, end: Deadline) -> bool:
        """Renew the lease until ``end``; False when the role is lost.

        Raises:
            RemoteError: the store does not answer.
        """
        held = self.held
        if held is None:
            return False
        since = self._clock.monotonic()
        granted = self.store.renew(held.claim, seconds, end)
        self.held = None if granted is None else Held(held.claim, since, granted)
        return granted is not None

    def release(self) -> None:
        """Give the role up; what is not given up ends with the lease.

        Raises:
            RemoteError: the store does not answer.
        """
        held, self.held = self.held, None
        if held is not None:
            self.store.release(held.claim, Deadline(PATIENCE, self._clock))

"""The role of the master, where a store outside of the cluster holds it instead of a vote. Pure.

The store keeps the highest term and who claimed it. Beside that it keeps who has the role now,
which ends with a lease. Each claim has a term of its own, so its text says which claim it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from ganeti.base.clock import Deadline

#: Seconds of the lease where no candidate takes over by itself.
SECONDS: Final = 15
#: The lease is renewed so often in its time.
RENEWALS: Final = 6


@dataclass(frozen=True, slots=True)
class Claim:
    """A term, and the node that has claimed it."""

    term: int
    node: str

    def __str__(self) -> str:
        return f"{self.term} {self.node}"


def read_claim(text: str) -> Claim | None:
    """The claim that a text stands for; None for an empty or a damaged one."""
    number, _, node = text.partition(" ")
    return Claim(int(number), node) if number.isdigit() and node else None


@dataclass(frozen=True, slots=True)
class Record:
    """State of the role of the master in the store."""

    #: the newest claim, over or not; None: nobody has ever claimed the role
    last: Claim | None = None
    #: the claim whose lease has not ended; None: nobody has the role
    holder: Claim | None = None
    #: why the store gives the role to no master on this node; empty: it may
    refusal: str = ""

    def choose_term(self, lowest: int) -> int:
        """A term that nobody has claimed."""
        return max(lowest, 1 + (self.last.term if self.last is not None else 0))


class RoleStore(Protocol):
    """Holds the role. All methods block until ``end`` at most.

    Raises:
        RemoteError: the store does not answer; a claim may have been made.
    """

    @property
    def name(self) -> str:
        """Name of the store in messages."""

    def read(self, end: Deadline) -> Record:
        """The newest state; nothing that was there before the call is missing."""

    def claim(
        self, seen: Record, claim: Claim, seconds: int, end: Deadline, *, force: bool = False
    ) -> int | None:
        """Take the role if nothing has changed since ``seen``; with ``force`` whoever has it.

        Returns the length of the lease in seconds, which may be more than asked for; None: not
        taken. The lease begins after the call.
        """

    def renew(self, claim: Claim, seconds: int, end: Deadline) -> int | None:
        """As :meth:`claim`, for who has the role; None: it has ended, or another one has it."""

    def release(self, claim: Claim, end: Deadline) -> None:
        """Give the role up now, if it is still that of the claim."""

    def close(self) -> None:
        """Let go of connections; the role stays. Idempotent."""


def find_holder(store: str, record: Record, name: str) -> str | None:
    """Why the node ``name`` cannot have the role now; None when nobody else has it."""
    if record.refusal:
        return record.refusal
    holder = record.holder
    if holder is None or holder.node == name:
        return None
    return f"{store} says that {holder.node} is the master (term {holder.term})"


def find_successor(store: str, record: Record, name: str) -> str | None:
    """Why the node ``name`` does not continue as the master; None when nobody came after it."""
    last = record.last
    if last is None or last.node == name:
        return find_holder(store, record, name)
    return f"{store} says that {last.node} claimed term {last.term} since"


def find_obstacle(store: str, record: Record, name: str) -> str | None:
    """Why the node ``name`` does not take over by itself; None when it may."""
    if record.last is None and not record.refusal:
        return (
            f"{store} knows nothing of this cluster, so it cannot tell whether a master acts:"
            " start the master daemon, or run gnt-cluster master-failover"
        )
    return find_holder(store, record, name)

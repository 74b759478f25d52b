"""Calls of nodes to the node daemon of the master node: guests ended, shall end, or can begin."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.timing import URGENT, call


class GuestEndCalls(ABC):
    """Answered by :class:`ganeti.node.guest_ends.GuestEnds`, on the master node."""

    @abstractmethod
    @call(timeout=URGENT, by_any_node=True)
    def guests_ended(self, instances: list[str]) -> None:
        """Look at these instances of the node that calls, as their guests ended by themselves."""

    @abstractmethod
    @call(timeout=URGENT, by_any_node=True)
    def host_starts(self) -> None:
        """Start what has waited for the node that calls, as its node daemon serves calls now."""

    @abstractmethod
    @call(timeout=URGENT, by_any_node=True)
    def host_stops(self, migrate: bool) -> list[str]:
        """Have all guests of the node that calls stopped or migrated by jobs; their names."""

"""Node calls about virtual switches."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.timing import NORMAL, call


class SwitchCalls(ABC):
    """Answered by :class:`ganeti.node.switches.Switches`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def node_configure_ovs(self, ovs_name: str, ovs_link: str) -> None:
        """Make a virtual switch if it is missing, with a network interface of the node in it."""

"""Node calls about the versions of this software that are installed side by side."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import VersionState
from ganeti.rpc.timing import URGENT, call


class VersionCalls(ABC):
    """Answered by :class:`ganeti.node.versions.Versions`."""

    @abstractmethod
    @call(timeout=URGENT)
    def version_state(self) -> VersionState:
        """Which versions are installed on this node, which one is in use and which one runs."""

    @abstractmethod
    @call(timeout=URGENT)
    def version_switch(self, version: str) -> None:
        """Go over to another installed version and start the daemons again; answers before."""

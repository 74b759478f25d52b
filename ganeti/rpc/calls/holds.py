"""Node calls that pause a guest while its disks are copied."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.model.enums import Consistency
from ganeti.rpc.objects import NodeInstance
from ganeti.rpc.timing import URGENT, call


class HoldCalls(ABC):
    """Answered by :class:`ganeti.node.holds.Holds`."""

    @abstractmethod
    @call(timeout=URGENT)
    def instance_hold(self, instance: NodeInstance, seconds: float) -> Consistency:
        """Pause a running guest, at most for so many seconds, whatever the master does.

        Returns what its disks hold meanwhile.
        """

    @abstractmethod
    @call(timeout=URGENT)
    def instance_release(self, instance: NodeInstance) -> bool:
        """Let the guest run on; whether it was paused until now."""

"""Node calls about the right of a node to run an instance."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.model.ids import InstanceUuid
from ganeti.rpc.objects import RunRight
from ganeti.rpc.timing import FAST, URGENT, call


class RunRightCalls(ABC):
    """Answered by :class:`ganeti.node.run_rights.RunRights`."""

    @abstractmethod
    @call(timeout=URGENT)
    def run_rights(self, uuids: list[InstanceUuid]) -> list[RunRight]:
        """Run rights on record for instances; without uuids, for those that are on their way."""

    @abstractmethod
    @call(timeout=FAST)
    def run_right_set(self, right: RunRight, hypervisor: str) -> None:
        """Record a newer right; one that forbids to run is refused while the guest runs here."""

    @abstractmethod
    @call(timeout=FAST)
    def run_right_forget(self, uuid: InstanceUuid) -> None:
        """Forget an instance that does not exist any more; no error when it is not known."""

"""Node calls about the master role and the copy of the master's state."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.replica import MasterView, ReplicaUpdate
from ganeti.rpc.timing import FAST, REPLICA, call


class ReplicaCalls(ABC):
    """Answered by :class:`ganeti.node.replica.Replica`."""

    @abstractmethod
    @call(timeout=REPLICA)
    def master_view(self) -> MasterView:
        """Return the master that this node follows, and how new its copy of the state is."""

    @abstractmethod
    @call(timeout=REPLICA)
    def master_claim(
        self, epoch: int, master: str, known: int | None = None, silence: float | None = None
    ) -> MasterView:
        """Follow a new master; DeposedError when another one has the term or a higher one.

        Also when this node has heard of a term later than ``known`` since it was asked, or has
        heard the master that it follows less than ``silence`` seconds ago.
        """

    @abstractmethod
    @call(timeout=REPLICA)
    def replica_update(self, update: ReplicaUpdate) -> bool:
        """Write a part of the master's state durably; False when records do not follow ours."""

    @abstractmethod
    @call(timeout=REPLICA)
    def replica_differing(self, manifest: dict[str, int]) -> list[str]:
        """Names of queue files whose content is not the one with this CRC-32."""

    @abstractmethod
    @call(timeout=FAST)
    def replica_read(self) -> ReplicaUpdate:
        """The whole copy of this node, with all job files that are not archived."""

    @abstractmethod
    @call(timeout=FAST)
    def replica_adopt(self, update: ReplicaUpdate) -> None:
        """Replace an older copy by that of another candidate; durable when the call is done."""

    @abstractmethod
    @call(timeout=FAST)
    def node_demote_from_mc(self) -> None:
        """Forget what only master candidates have; refused on the master."""

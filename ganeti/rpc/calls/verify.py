"""The node call that checks a node."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import Json
from ganeti.rpc.timing import NORMAL, call


class VerifyCalls(ABC):
    """Answered by :class:`ganeti.node.verify.Verifier`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def node_verify(
        self, checkdict: Json, cluster_name: str, all_hvparams: dict[str, Json]
    ) -> Json:
        """Answers of the asked checks: version, time, hypervisor, filelist, oslist, ..."""

"""The node call that checks a node."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.base.json_types import JsonObject
from ganeti.rpc.timing import NORMAL, call


class VerifyCalls(ABC):
    """Answered by :class:`ganeti.node.verify.Verifier`."""

    @abstractmethod
    @call(timeout=NORMAL)
    def node_verify(
        self, checkdict: JsonObject, cluster_name: str, all_hvparams: dict[str, JsonObject]
    ) -> JsonObject:
        """Answers of the asked checks: version, time, hypervisor, filelist, oslist, ..."""

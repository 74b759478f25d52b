"""Facts about the cluster, as an operation."""

from __future__ import annotations

from typing import Any

from ganeti.opcodes.cluster import OpClusterQuery
from ganeti.ops.operation import Operation


class ClusterQuery(Operation[OpClusterQuery, dict[str, Any]]):
    def run(self) -> dict[str, Any]:
        return self.ctx.services.cluster_info()

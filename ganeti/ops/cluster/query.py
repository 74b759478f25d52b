"""Facts about the cluster, as an operation."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.cluster import OpClusterQuery
from ganeti.ops.operation import Operation


class ClusterQuery(Operation[OpClusterQuery, JsonObject]):
    def run(self) -> JsonObject:
        return self.ctx.services.cluster_info()

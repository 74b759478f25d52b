"""Single values of the cluster, as an operation."""

from __future__ import annotations

from typing import Any

from ganeti.opcodes.cluster import OpClusterConfigQuery
from ganeti.ops.operation import Operation


class ClusterConfigQuery(Operation[OpClusterConfigQuery, list[Any]]):
    def run(self) -> list[object]:
        return self.ctx.services.config_values(self.op.output_fields)

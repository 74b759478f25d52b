"""Send what every node should have to every node again."""

from __future__ import annotations

from ganeti.opcodes.cluster import OpClusterRedistConf
from ganeti.ops.operation import Operation


class ClusterRedistConf(Operation[OpClusterRedistConf, None]):
    def run(self) -> None:
        for failure in self.ctx.services.distribute_ssconf():
            self.ctx.warn(failure)

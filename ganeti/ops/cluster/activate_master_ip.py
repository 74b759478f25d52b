"""Add the address of the cluster to the master node."""

from __future__ import annotations

from ganeti.opcodes.cluster import OpClusterActivateMasterIp
from ganeti.ops.operation import Operation
from ganeti.ops.steps.nodes import master_ip


class ClusterActivateMasterIp(Operation[OpClusterActivateMasterIp, None]):
    """No error when it is there already."""

    def run(self) -> None:
        master_ip.activate(self.ctx, self.ctx.config)
        master_ip.explain(self.ctx, self.ctx.config)

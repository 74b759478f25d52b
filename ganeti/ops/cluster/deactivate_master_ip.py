"""Remove the address of the cluster from the master node."""

from __future__ import annotations

from ganeti.opcodes.cluster import OpClusterDeactivateMasterIp
from ganeti.ops.operation import Operation
from ganeti.ops.steps.nodes import master_ip


class ClusterDeactivateMasterIp(Operation[OpClusterDeactivateMasterIp, None]):
    """Takes the master IP off the master node; succeeds too when the node does not have it."""

    def run(self) -> None:
        master_ip.deactivate(self.ctx, self.ctx.config)
        master_ip.explain(self.ctx, self.ctx.config)

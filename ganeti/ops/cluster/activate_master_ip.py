"""Put the address of the cluster on the master node."""

from __future__ import annotations

from ganeti.opcodes.cluster import OpClusterActivateMasterIp
from ganeti.ops.cluster import master_ip
from ganeti.ops.operation import Operation


class ClusterActivateMasterIp(Operation[OpClusterActivateMasterIp, None]):
    """No error when it is there already."""

    def run(self) -> None:
        master_ip.activate(self.ctx, self.ctx.config)
        master_ip.explain(self.ctx, self.ctx.config)

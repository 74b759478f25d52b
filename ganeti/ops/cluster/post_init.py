"""The first operation of a new cluster: its hooks."""

from __future__ import annotations

from ganeti.opcodes.cluster import OpClusterPostInit
from ganeti.ops.operation import Hooks, Operation


class ClusterPostInit(Operation[OpClusterPostInit, bool]):
    def hooks(self) -> Hooks:
        cluster = self.ctx.config.cluster
        env = {"OP_TARGET": cluster.cluster_name}
        return Hooks("cluster-init", "CLUSTER", env, [], [cluster.master_node])

    def run(self) -> bool:
        return True

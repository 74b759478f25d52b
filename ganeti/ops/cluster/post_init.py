"""The first operation of a new cluster: its hooks, and the SSH keys of its first node."""

from __future__ import annotations

from ganeti.opcodes.cluster import OpClusterPostInit
from ganeti.ops.operation import Hooks, Operation
from ganeti.ops.steps.nodes import ssh_keys


class ClusterPostInit(Operation[OpClusterPostInit, bool]):
    def hooks(self) -> Hooks:
        cluster = self.ctx.config.cluster
        env = {"OP_TARGET": cluster.cluster_name}
        return Hooks("cluster-init", "CLUSTER", env, [], [cluster.master_node])

    def run(self) -> bool:
        ssh_keys.bring_up_to_date(self.ctx)
        return True

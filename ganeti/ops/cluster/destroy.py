"""The last operation of a cluster; the command then stops the daemons and removes the files."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.cluster import OpClusterDestroy
from ganeti.ops.operation import Hooks, Operation


class ClusterDestroy(Operation[OpClusterDestroy, str]):
    """Returns the UUID of the master node."""

    def check(self) -> None:
        config = self.ctx.config
        others = [n.name for n in config.nodes.values() if n is not config.master]
        if others:
            raise errors.make_invalid_error(
                f"there are still {len(others)} other nodes in this cluster"
                f" ({', '.join(sorted(others)[:5])}); remove them first"
            )
        if config.instances:
            raise errors.make_invalid_error(
                f"there are still {len(config.instances)} instances in this cluster;"
                " remove them first"
            )

    def hooks(self) -> Hooks:
        cluster = self.ctx.config.cluster
        env = {"OP_TARGET": cluster.cluster_name}
        return Hooks("cluster-destroy", "CLUSTER", env, [], [cluster.master_node])

    def run(self) -> str:
        return self.ctx.config.cluster.master_node

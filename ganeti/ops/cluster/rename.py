"""Give the cluster another name, and with it another address."""

from __future__ import annotations

from ganeti import constants, errors
from ganeti.config.changes import Draft
from ganeti.model.config import Config
from ganeti.net import resolve
from ganeti.net.probe import Target, unreachable
from ganeti.opcodes.cluster import OpClusterRename
from ganeti.ops.operation import Hooks, Operation
from ganeti.ops.planning import checks
from ganeti.ops.steps.nodes import master_ip


class ClusterRename(Operation[OpClusterRename, str]):
    """Gives the new name. The old address is gone afterwards, and with it connections to it."""

    def check(self) -> None:
        config = self.ctx.config
        self.old = config
        self.name = checks.host_name(self.op.name, "the cluster")
        try:
            self.address = resolve.address(self.name)
        except errors.ResolverError as err:
            raise errors.unresolved(
                f"the name {self.name} has no address: {errors.text(err)}; put it into DNS or"
                f" {self.ctx.paths.hosts} first"
            ) from err
        cluster = config.cluster
        if (self.name, self.address) == (cluster.cluster_name, cluster.master_ip):
            raise errors.invalid(
                f"the cluster has the name {self.name} and the address {self.address} already"
            )
        if self.address != cluster.master_ip:
            _check_free(config, self.address)

    def hooks(self) -> Hooks:
        config = self.ctx.config
        env = {"OP_TARGET": config.cluster.cluster_name, "NEW_NAME": self.name}
        return Hooks(
            "cluster-rename", "CLUSTER", env, [config.cluster.master_node], list(config.nodes)
        )

    def run(self) -> str:
        ctx = self.ctx
        moves = self.address != self.old.cluster.master_ip
        if moves:
            ctx.undo.callback(self._reactivate)
            master_ip.deactivate(ctx, self.old)

        def edit(draft: Draft) -> None:
            draft.update_cluster(cluster_name=self.name, master_ip=self.address)

        ctx.store.change("cluster-rename", ctx.author, edit)
        # From here on the new name holds, whatever happens to the address.
        ctx.undo.pop_all()
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        if moves:
            try:
                master_ip.activate(ctx, ctx.config)
                master_ip.explain(ctx, ctx.config)
            except errors.GanetiError as err:
                ctx.warn(
                    f"the new address {self.address} is not active: {errors.text(err)}; try"
                    " gnt-cluster activate-master-ip"
                )
        return self.name

    def _reactivate(self) -> None:
        """Undo of the release of the old address."""
        try:
            master_ip.activate(self.ctx, self.old)
        except errors.GanetiError as err:
            self.ctx.warn(f"the old address is not active any more: {errors.text(err)}")


def _check_free(config: Config, address: str) -> None:
    """Refuse an address of a node, and one at which somebody answers."""
    for node in config.nodes.values():
        if address in (node.primary_ip, node.secondary_ip):
            raise errors.not_unique(f"address {address} belongs to node {node.name}")
    target = Target(address, resolve.port(constants.NODED))
    if not unreachable([target]):
        raise errors.not_unique(
            f"somebody answers at {address}, so it cannot become the address of this cluster"
        )

"""Rename the cluster, and change its address."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import constants, errors
from ganeti.config.changes import Draft
from ganeti.model.config import Config
from ganeti.net import resolve
from ganeti.net.probe import Target, find_unreachable
from ganeti.opcodes.cluster import OpClusterRename
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import checks
from ganeti.ops.steps.nodes import master_ip


@dataclass(frozen=True)
class _Plan:
    name: str
    address: str
    #: the configuration before it
    before: Config


class ClusterRename(PlannedOperation[OpClusterRename, _Plan, str]):
    """Returns the new name. The old address is gone afterwards, and with it connections to it."""

    def decide(self) -> _Plan:
        config = self.ctx.config
        name = checks.host_name(self.op.name, "the cluster")
        try:
            address = resolve.address(name)
        except errors.ResolverError as err:
            raise errors.make_unresolved_error(
                f"the name {name} has no address: {errors.text(err)}; add it to DNS or"
                f" {self.ctx.paths.hosts} first"
            ) from err
        cluster = config.cluster
        if (name, address) == (cluster.cluster_name, cluster.master_ip):
            raise errors.make_invalid_error(
                f"the cluster has the name {name} and the address {address} already"
            )
        if address != cluster.master_ip:
            _check_free(config, address)
        return _Plan(name, address, config)

    def hooks(self) -> Hooks:
        config = self.ctx.config
        env = {"OP_TARGET": config.cluster.cluster_name, "NEW_NAME": self.plan.name}
        return Hooks(
            "cluster-rename", "CLUSTER", env, [config.cluster.master_node], list(config.nodes)
        )

    def run(self) -> str:
        ctx = self.ctx
        moves = self.plan.address != self.plan.before.cluster.master_ip
        if moves:
            ctx.undo.callback(self._reactivate)
            master_ip.deactivate(ctx, self.plan.before)

        def edit(draft: Draft) -> None:
            draft.update_cluster(cluster_name=self.plan.name, master_ip=self.plan.address)

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
                    f"the new address {self.plan.address} is not active: {errors.text(err)}; try"
                    " gnt-cluster activate-master-ip"
                )
        return self.plan.name

    def _reactivate(self) -> None:
        """Undo of the release of the old address."""
        try:
            master_ip.activate(self.ctx, self.plan.before)
        except errors.GanetiError as err:
            self.ctx.warn(f"the old address is not active any more: {errors.text(err)}")


def _check_free(config: Config, address: str) -> None:
    """Refuse an address of a node, and one at which a host answers."""
    for node in config.nodes.values():
        if address in (node.primary_ip, node.secondary_ip):
            raise errors.make_not_unique_error(f"address {address} belongs to node {node.name}")
    target = Target(address, resolve.port(constants.NODED))
    if not find_unreachable([target]):
        raise errors.make_not_unique_error(
            f"another host answers at {address}, so it cannot become the address of this cluster"
        )

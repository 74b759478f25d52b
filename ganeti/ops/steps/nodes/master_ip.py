"""The address of the cluster: add it to the master node, remove it."""

from __future__ import annotations

from ganeti import paths
from ganeti.model.config import Config
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import MasterNetwork


def network(config: Config) -> MasterNetwork:
    """Address of the master with its settings, for the master node."""
    cluster = config.cluster
    return MasterNetwork(
        uuid=cluster.master_node,
        ip=cluster.master_ip,
        netmask=cluster.master_netmask,
        netdev=cluster.master_netdev,
        ip_family=cluster.primary_ip_family,
    )


def activate(ctx: Context, config: Config) -> None:
    """Put the address of this configuration on its master node; can be repeated.

    Raises:
        CommandError, GenericError, HooksAbort, RpcError: the node could not do it.
    """
    ctx.rpc.call_one(
        config.master,
        NodeCalls.node_activate_master_ip,
        network(config),
        config.cluster.use_external_mip_script,
    )


def deactivate(ctx: Context, config: Config) -> None:
    """Take the address of this configuration off its master node; can be repeated."""
    ctx.rpc.call_one(
        config.master,
        NodeCalls.node_deactivate_master_ip,
        network(config),
        config.cluster.use_external_mip_script,
    )


def explain(ctx: Context, config: Config) -> None:
    """Say so when the address is only recorded, as in a cluster that lives in a directory."""
    if paths.is_rooted() and not config.cluster.use_external_mip_script:
        ctx.log(
            "This cluster lives in a directory: the state of the address is recorded in"
            f" {ctx.paths.master_ip_state}, no network interface was changed"
        )

"""Whether a node may get another address for replication traffic."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.net import resolve
from ganeti.ops.operation import Context
from ganeti.ops.steps.nodes import candidates
from ganeti.rpc.calls import NodeCalls
from ganeti.storage.registry import traits_of


def mirrored(config: Config, node: Node) -> list[Instance]:
    """Instances that replicate disks over the node's secondary address."""
    found = [*config.primaries[node.uuid], *config.secondaries[node.uuid]]
    return [
        item
        for item in found
        if any(traits_of(config.disks[uuid].dev_type).mirrored for uuid in item.disks)
    ]


def refusal(config: Config, node: Node, address: str, *, force: bool) -> str | None:
    """Why the configuration does not allow the address, None if it does. Pure."""
    if not resolve.is_address(address):
        return f"'{address}' is not an IP address"
    for other in config.nodes.values():
        if other is not node and address in (other.primary_ip, other.secondary_ip):
            return f"address {address} belongs to node {other.name}"
    if address == config.cluster.master_ip:
        return f"address {address} is that of the cluster"
    used = mirrored(config, node)
    if used:
        return (
            f"instances with mirrored disks use the secondary address of node {node.name}"
            f" ({join_names(item.name for item in used)}); move them first"
        )
    return _homing_refusal(config, node, address, force=force)


def _homing_refusal(config: Config, node: Node, address: str, *, force: bool) -> str | None:
    """Either all nodes have a secondary address of their own, or none; the master goes first."""
    master = config.master
    single, will_be_single = master.primary_ip == master.secondary_ip, address == node.primary_ip
    if single == will_be_single or (node is master and force):
        return None
    have = "no node has" if single else "all nodes have"
    return (
        f"in this cluster {have} a secondary address of its own; to change that, begin with the"
        f" master, {master.name}, and --force"
    )


def check(ctx: Context, node: Node, address: str, *, offline: bool, force: bool) -> None:
    """Refuse an address that cannot be used (OpPrereqError); asks the node unless offline."""
    text = refusal(ctx.config, node, address, force=force)
    if text is not None:
        raise errors.make_invalid_error(text)
    if offline:
        ctx.warn(f"node {node.name} is offline; whether it has address {address} is not known")
        return
    if not ctx.rpc.call_one(candidates.online(node), NodeCalls.node_has_ip_address, address):
        raise errors.make_environment_error(
            f"node {node.name} does not have the address {address}; configure it there first"
        )

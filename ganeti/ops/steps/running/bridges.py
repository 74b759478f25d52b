"""The bridges that instances need on nodes.

Only NICs of mode ``bridged`` need something that can be checked: ``routed`` needs no device,
and which Open vSwitch switches a node has, only that tells when a guest starts.
"""

from __future__ import annotations

from collections.abc import Iterable

from ganeti import errors
from ganeti.base.text import plural
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.config import Config
from ganeti.model.enums import NicMode
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.net import interfaces
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls

#: The check of nodes that answers with those names that are not bridges there.
CHECK = "bridges"


def list_needed(
    config: Config, instance: Instance, node: Node, nics: Iterable[Nic] | None = None
) -> list[str]:
    """Bridges that a node must have for the instance, or for other NICs of it."""
    hypervisor = instance.hypervisor
    if hypervisor is None or not HYPERVISORS.get(hypervisor).traits.joins_bridges:
        return []
    chosen = instance.nics if nics is None else nics
    found = (config.nicparams_for(nic.nicparams, nic.network, node.group) for nic in chosen)
    return sorted({str(item["link"]) for item in found if item["mode"] == NicMode.BRIDGED})


def check(
    ctx: Context,
    instance: Instance,
    node: Node,
    nics: Iterable[Nic] | None = None,
    *,
    ignore: bool = False,
) -> None:
    """Refuse a node without a bridge that the instance needs; with ``ignore`` only warn.

    Raises:
        OpPrereqError: one is missing; the text says what to do.
        RpcError: the node does not answer.
    """
    config = ctx.config
    wanted = list_needed(config, instance, node, nics)
    if not wanted:
        return
    missing = ctx.rpc.call_one(
        node, NodeCalls.node_verify, {CHECK: wanted}, config.cluster.cluster_name, {}
    ).get(CHECK)
    if not missing:
        return
    if not isinstance(missing, list):
        raise errors.make_environment_error(
            f"the bridges of node {node.name} cannot be checked: {missing}"
        )
    text = (
        f"{plural(len(missing), 'bridge')} that instance {instance.name} needs"
        f" {'is' if len(missing) == 1 else 'are'} missing on node {node.name}:"
        f" {', '.join(missing)}; {remedy(missing[0])} there, or change the link of the NIC"
    )
    if not ignore:
        raise errors.make_environment_error(text)
    ctx.warn(text)


def remedy(name: str) -> str:
    """How a bridge is made on a node."""
    return f"make it with: {interfaces.bridge_command(name)}"

"""Virtual switches on nodes whose parameters want one."""

from __future__ import annotations

from collections.abc import Iterable

from ganeti import errors
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls


def find_changed(before: Config, after: Config) -> list[Node]:
    """Nodes that are to have another switch than before, or another link in it. Pure."""
    return [
        node
        for uuid, node in after.nodes.items()
        if (wanted := _find_switch(after, node))
        and (uuid not in before.nodes or _find_switch(before, before.nodes[uuid]) != wanted)
    ]


def configure(ctx: Context, nodes: Iterable[Node]) -> None:
    """Make the switches; failures are only reported, as the nodes work without them."""
    for node in nodes:
        wanted = _find_switch(ctx.config, node)
        if not wanted or node.offline:
            continue
        try:
            ctx.rpc.call_one(node, NodeCalls.node_configure_ovs, *wanted)
        except errors.GanetiError as err:
            ctx.warn(
                f"the virtual switch {wanted[0]} could not be made on node {node.name}:"
                f" {errors.text(err)}; install Open vSwitch there and set ovs again"
            )


def _find_switch(config: Config, node: Node) -> tuple[str, str] | None:
    """Name of the switch and the link in it; None without one."""
    params = config.ndparams(node)
    if not params.get("ovs"):
        return None
    return str(params.get("ovs_name") or "switch1"), str(params.get("ovs_link") or "")

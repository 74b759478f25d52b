"""Keep the nodes listed in ``/etc/hosts`` of all nodes, where the cluster and each node want it.

Every step may be repeated. A node that does not answer, or whose root did not agree, is warned of.
"""

from __future__ import annotations

from collections.abc import Iterable

from ganeti import errors
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls

_MEND = "run gnt-cluster redist-conf when that is repaired"


def is_managed(ctx: Context) -> bool:
    """Whether the cluster is to list its nodes, and root of the master node agreed."""
    return ctx.config.cluster.modify_etc_hosts and ctx.paths.hosts_managed.exists()


def bring_up_to_date(ctx: Context) -> None:
    """List all nodes on all nodes; blocks for a round of calls for each node."""
    nodes = ctx.config.nodes.values()
    _change(ctx, "add", [(node, ctx.config.online_nodes()) for node in nodes])


def add(ctx: Context, new: Node) -> None:
    """List a new node everywhere, and all nodes on it."""
    online = ctx.config.online_nodes()
    others = [node for node in ctx.config.nodes.values() if node.uuid != new.uuid]
    _change(ctx, "add", [(new, online), *((node, [new]) for node in others)])


def remove(ctx: Context, gone: Node) -> None:
    """Take a node that left from the lists of the others."""
    _change(ctx, "remove", [(gone, ctx.config.online_nodes())])


def _change(ctx: Context, mode: str, work: Iterable[tuple[Node, Iterable[Node]]]) -> None:
    if not is_managed(ctx):
        return
    failed: set[str] = set()
    for node, targets in work:
        asked = [target for target in targets if target.uuid not in failed]
        answers = ctx.rpc.call_many(
            asked, NodeCalls.etc_hosts_modify, mode, node.name, node.primary_ip
        )
        for answer in answers.values():
            if answer.error is not None:
                failed.add(answer.node.uuid)
                ctx.warn(
                    f"the hosts file of {answer.node.name} is not up to date:"
                    f" {errors.text(answer.error)}; {_MEND}"
                )

"""Verify that nodes have the memory that is reserved on them, and that a failover would need.

A node that lost memory, or guests that somebody started by hand, break the reservation; better now
than when the instance is to be created, or when its primary node has failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ganeti.base.text import join_names, plural
from ganeti.model.config import Config
from ganeti.model.enums import AdminState
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.ops.verification.report import Report
from ganeti.rpc.calls import NodeCalls
from ganeti.storage import held


def check(ctx: Context, report: Report, online: Sequence[Node], *, nplusone: bool) -> None:
    """Report nodes with too little free memory; those that need not have any are not asked.

    With ``nplusone`` a node must be able to take the instances of any one other node.
    """
    config = ctx.config
    asked = [
        node
        for node in online
        if held.memory(config, node.uuid).amount or (nplusone and _guests(config, node))
    ]
    if not asked:
        return
    hypervisor = config.cluster.enabled_hypervisors[0]
    params = config.cluster.hvparams.get(hypervisor, {})
    answers = ctx.rpc.call_many(asked, NodeCalls.node_info, [], [(str(hypervisor), params)])
    for node in asked:
        answer = answers[node.uuid]
        if answer.error is not None:
            continue  # that it does not answer has been reported
        _boot, _rooms, info = answer.get()
        free = info[0].get("memory_free") if info else None
        if not isinstance(free, int):
            continue
        texts = [*_check_reserved(config, ctx.config, node, free)]
        if nplusone:
            texts += _failovers(config, ctx.config, node, free)
        for text in texts:
            report.error("ENODEN1", "node", node.name, text)


def _check_reserved(config: Config, now: Config, node: Node, free: int) -> Iterator[str]:
    wanted = held.memory(config, node.uuid)
    # what was committed meanwhile is used, and not reserved any more
    amount = min(wanted.amount, held.memory(now, node.uuid).amount)
    if free < amount:
        yield (
            f"{amount} MiB of memory are reserved for {', '.join(wanted.by)}, but only {free} MiB"
            " are free; gnt-instance failover moves some of them to other nodes"
        )


def _failovers(config: Config, now: Config, node: Node, free: int) -> Iterator[str]:
    left = max(0, free - held.memory(now, node.uuid).amount)
    for uuid, guests in _guests(config, node).items():
        needed = sum(int(config.beparams(item)["minmem"]) for item in guests)
        if left < needed:
            yield (
                f"if node {config.nodes[uuid].name} fails, {needed} MiB of memory are needed here"
                f" for {plural(len(guests), 'instance')}"
                f" ({join_names([item.name for item in guests], 3)}), but only {left} MiB are free"
            )


def _guests(config: Config, node: Node) -> dict[NodeUuid, list[Instance]]:
    """Running instances that come to the node, by uuid of the primary node that fails."""
    found: dict[NodeUuid, list[Instance]] = {}
    for item in config.secondaries.get(node.uuid, []):
        runs = item.admin_state is AdminState.UP and not item.forthcoming
        if runs and item.primary_node in config.nodes and config.beparams(item)["auto_balance"]:
            found.setdefault(item.primary_node, []).append(item)
    return found

"""Verify that nodes still have the memory that is reserved on them.

A node that lost memory, or guests that somebody started by hand, break the promise; better now
than when the instance is to be created.
"""

from __future__ import annotations

from collections.abc import Sequence

from ganeti.model.node import Node
from ganeti.ops.cluster.report import Report
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.storage import held


def memory(ctx: Context, report: Report, online: Sequence[Node]) -> None:
    """Report nodes with less free memory than what is reserved; others are not asked."""
    config = ctx.config
    kept = {node.uuid: held.memory(config, node.uuid) for node in online}
    asked = [node for node in online if kept[node.uuid].amount]
    if not asked:
        return
    hypervisor = config.cluster.enabled_hypervisors[0]
    params = config.cluster.hvparams.get(hypervisor, {})
    answers = ctx.rpc.many(asked, NodeCalls.node_info, [], [(str(hypervisor), params)])
    for node in asked:
        answer = answers[node.uuid]
        if answer.error is not None:
            continue  # that it does not answer has been reported
        _boot, _rooms, info = answer.get()
        free = info[0].get("memory_free") if info else None
        wanted = kept[node.uuid]
        # what was committed meanwhile is used, and not reserved any more
        now = min(wanted.amount, held.memory(ctx.config, node.uuid).amount)
        if isinstance(free, int) and free < now:
            report.error(
                "ENODEN1",
                "node",
                node.name,
                f"{now} MiB of memory are reserved for {', '.join(wanted.by)}, but only {free} MiB"
                " are free; gnt-instance failover brings some of them elsewhere",
            )

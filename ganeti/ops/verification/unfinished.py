"""Migrations and conversions that a job began and did not end."""

from __future__ import annotations

from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.node import Node
from ganeti.ops.operation import Context
from ganeti.ops.steps.running import live_conversion
from ganeti.ops.verification.report import Report
from ganeti.rpc.calls import NodeCalls


def check(ctx: Context, report: Report, config: Config, nodes: list[Node]) -> None:
    """Ask nodes what they have on record; an instance that a job works on is left out."""
    answers = ctx.rpc.call_many(nodes, NodeCalls.run_rights, [])
    busy = {view.name for view in ctx.locks.snapshot() if view.owners}
    for answer in answers.values():
        for right in answer.value or ():
            item = config.instances.get(right.uuid)
            if item is None or _lock_of(item.name) in busy:
                continue
            report.error(
                "EINSTANCEWRONGNODE",
                "instance",
                item.name,
                f"a migration of it did not end (node {answer.node.name} has it on record as"
                f" {right.state.value}, the other node is {right.peer}); to repair it:"
                f" gnt-instance migrate --cleanup {item.name}",
            )
    for name, node in live_conversion.list_open(ctx, nodes).items():
        if _lock_of(name) not in busy:
            report.error(
                "EINSTANCEFAULTYDISK",
                "instance",
                name,
                f"a conversion of its disks did not end on node {node.name}; to repair it:"
                f" gnt-instance migrate --cleanup {name}",
            )


def _lock_of(name: str) -> str:
    return f"{LockLevel.INSTANCE.label}/{name}"

"""The storage units of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.model.node import Node
from ganeti.opcodes.enums import StorageType
from ganeti.opcodes.node_storage import OpNodeQueryStorage
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import node_storage
from ganeti.rpc.calls import NodeCalls
from ganeti.storage import units

_FIELDS = ("node", "type", "name", "size", "used", "free", "allocatable")


@dataclass(frozen=True)
class _Plan:
    kind: StorageType
    nodes: list[Node]


class NodeQueryStorage(PlannedOperation[OpNodeQueryStorage, _Plan, list[list[Any]]]):
    """A row for each unit, by node and name; sizes in MiB."""

    def decide(self) -> _Plan:
        op = self.op
        node_storage.check_fields(op.output_fields, _FIELDS)
        kind = op.storage_type or node_storage.default_type(self.ctx.config)
        if kind not in units.LISTED:
            raise errors.make_invalid_error(
                f"storage of type {kind} has no units to list; {', '.join(units.LISTED)} have"
            )
        return _Plan(kind, node_storage.choose_nodes(self.ctx, op.nodes))

    def run(self) -> list[list[object]]:
        ctx, op = self.ctx, self.op
        fields = ["name", *(f for f in op.output_fields if f not in ("name", "node", "type"))]
        args = node_storage.unit_args(ctx.config, self.plan.kind)
        answers = ctx.rpc.call_many(
            self.plan.nodes, NodeCalls.storage_list, str(self.plan.kind), args, op.name, fields
        )
        rows: list[list[object]] = []
        for answer in answers.values():
            if answer.error is not None:
                ctx.warn(f"no storage of node {answer.node.name}: {errors.text(answer.error)}")
                continue
            for unit in sorted(answer.get(), key=lambda values: str(values[0])):
                known = {"node": answer.node.name, "type": str(self.plan.kind)}
                known.update(zip(fields, unit))
                rows.append([known[field] for field in op.output_fields])
        return rows

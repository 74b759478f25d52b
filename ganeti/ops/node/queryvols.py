"""The logical volumes on nodes, with the instances that they belong to."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config import volumes
from ganeti.model.node import Node
from ganeti.opcodes.node_storage import OpNodeQueryvols
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import node_storage
from ganeti.rpc.calls import NodeCalls

_FIELDS = ("node", "phys", "vg", "name", "size", "instance")


class NodeQueryvols(PlannedOperation[OpNodeQueryvols, list[Node], list[list[str]]]):
    """A row of texts for each volume and each physical volume that it lies on.

    Nodes that are offline are left out, those that do not answer get a warning.
    """

    def decide(self) -> list[Node]:
        """The nodes to ask."""
        node_storage.check_fields(self.op.output_fields, _FIELDS)
        return node_storage.choose_nodes(self.ctx, self.op.nodes)

    def run(self) -> list[list[str]]:
        ctx = self.ctx
        expected = volumes.list_expected(ctx.config)
        rows: list[list[str]] = []
        for uuid, answer in ctx.rpc.call_many(self.plan, NodeCalls.node_volumes).items():
            if answer.error is not None:
                ctx.warn(f"no volumes of node {answer.node.name}: {errors.text(answer.error)}")
                continue
            for item in sorted(answer.get(), key=lambda each: (each["dev"], each["name"])):
                owner = expected.get(uuid, {}).get(f"{item['vg']}/{item['name']}")
                values: JsonObject = {
                    "node": answer.node.name,
                    "phys": item["dev"],
                    "vg": item["vg"],
                    "name": item["name"],
                    "size": int(float(item["size"])),
                    "instance": owner.instance.name if owner and owner.instance else "-",
                }
                rows.append([str(values[field]) for field in self.op.output_fields])
        return rows

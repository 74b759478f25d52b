"""Which fields can be queried."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.query import OpQueryFields
from ganeti.ops.operation import Operation


class QueryFields(Operation[OpQueryFields, JsonObject]):
    def run(self) -> JsonObject:
        return self.ctx.services.query_fields(str(self.op.what), self.op.fields)

"""Which fields can be queried."""

from __future__ import annotations

from typing import Any

from ganeti.opcodes.query import OpQueryFields
from ganeti.ops.operation import Operation


class QueryFields(Operation[OpQueryFields, dict[str, Any]]):
    def run(self) -> dict[str, Any]:
        return self.ctx.services.query_fields(str(self.op.what), self.op.fields)

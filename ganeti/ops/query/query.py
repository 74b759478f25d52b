"""A query as a job: for item types that only operations may ask, and for scripts."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.query import OpQuery
from ganeti.ops.operation import Operation


class Query(Operation[OpQuery, JsonObject]):
    """Takes no lock: queries read one snapshot."""

    def run(self) -> JsonObject:
        return self.ctx.services.query(str(self.op.what), self.op.fields, self.op.qfilter)

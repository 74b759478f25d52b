"""Opcodes that run a query as a job."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import QueryTypeOp
from ganeti.opcodes.scalars import NonEmpty, doc


class OpQuery(OpCode, tag="OP_QUERY", kw_only=True):
    """Return fields of all objects of a kind that pass a filter."""

    summary_field: ClassVar[str | None] = "what"
    result_type: ClassVar[str] = "QueryResponse"

    what: Annotated[QueryTypeOp, doc("Kind of the objects")]
    use_locking: p.UseLocking = False
    fields: p.OutputFields
    qfilter: Annotated[p.AnyList | None, doc("Filter as nested lists; unset for all")] = None


class OpQueryFields(OpCode, tag="OP_QUERY_FIELDS", kw_only=True):
    """Return name, title, type and meaning of the fields of a kind."""

    summary_field: ClassVar[str | None] = "what"
    result_type: ClassVar[str] = "QueryFieldsResponse"

    what: Annotated[QueryTypeOp, doc("Kind of the objects")]
    fields: Annotated[list[NonEmpty] | None, doc("Fields to describe; unset for all")] = None

"""Base of all opcodes.

An opcode is one thing that can be asked of a cluster, as a typed struct. Requests, job files,
REST bodies, schemas and reference pages are derived from the fields; see ``wire``, ``describe``.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from ganeti.base import typed
from ganeti.model.marks import Mark
from ganeti.opcodes.scalars import SubmitPriority, UInt, doc
from ganeti.opcodes.values import JobDep

_PREFIX = "OP_"


class OpCode(msgspec.Struct, tag_field="OP_ID", forbid_unknown_fields=True, kw_only=True):
    """Base of all opcodes; its fields are the parameters every opcode has.

    A subclass names its OP_ID as ``tag``, repeats ``kw_only=True`` and is called like the OP_ID
    in camel case, so that ``registry.find`` needs no list of classes. A parameter that may be
    null has null as its default. Constructing one checks nothing; reading the wire form does.
    """

    #: Parameter shown in the summary of a job.
    summary_field: ClassVar[str | None] = None
    #: REST requests that submit one job with this opcode: ``METHOD /2/path``. A name in
    #: braces is the parameter that the path fills in.
    rest: ClassVar[tuple[str, ...]] = ()
    #: Whether nothing else may run at the same time (global lock held exclusively).
    exclusive_bgl: ClassVar[bool] = False
    #: Type of the job result, in the notation of ``describe.type_text``.
    result_type: ClassVar[str] = "any"
    #: Of an opcode that changes settings: parameters that only say of what, or how. With nothing
    #: else there is nothing to change.
    says_how: ClassVar[frozenset[str]] = frozenset()
    #: Kind of the objects that it is about and nothing else, so that users with
    #: limits to such objects may use it; None: never.
    within: ClassVar[Mark | None] = None

    dry_run: Annotated[bool | None, doc("Only check whether it could be done"), Mark.SAFE] = None
    debug_level: Annotated[UInt | None, doc("How much to log; 0 is the normal amount")] = None
    priority: Annotated[
        SubmitPriority, doc("Place in the queue: -10 before, 10 after normal jobs (0)"), Mark.SAFE
    ] = 0
    depends: Annotated[list[JobDep] | None, doc("Jobs that must have ended before"), Mark.SAFE] = (
        None
    )
    comment: Annotated[str | None, doc("Free text stored with the job"), Mark.SAFE] = None
    reason: Annotated[
        list[tuple[str, str, int]],
        doc("Who asked for it and why: source, text and time in nanoseconds"),
        Mark.SAFE,
    ] = []

    @property
    def op_id(self) -> str:
        """Name on the wire, such as ``OP_INSTANCE_CREATE``."""
        return id_of(type(self))

    def summary_value(self) -> object:
        """Return the value for the summary; not called without a ``summary_field``."""
        return getattr(self, self.summary_field or "")


def id_of(cls: type[OpCode]) -> str:
    """OP_ID of a class."""
    return str(cls.__struct_config__.tag)


def class_name(op_id: str) -> str:
    """Name of the class of an OP_ID (``OP_TAGS_GET`` gives ``OpTagsGet``)."""
    return "".join(word.capitalize() for word in op_id.split("_"))


def summary(op: OpCode) -> str:
    """Short text for job lists: ``INSTANCE_CREATE(web1)``; an unset value shows as ``None``."""
    name = op.op_id.removeprefix(_PREFIX)
    if op.summary_field is None:
        return name
    value = op.summary_value()
    if isinstance(value, list | tuple):
        value = ",".join(str(item) for item in value)
    return f"{name}({value})"


def changes(op: OpCode) -> frozenset[str]:
    """Parameters that ask for a change: all that differ from their default and do not say how."""
    other_fields = type(op).says_how.union(OpCode.__struct_fields__)
    own = (f for f in typed.fields(type(op)) if not f.required and f.name not in other_fields)
    return frozenset(f.name for f in own if getattr(op, f.name) != _default(f))


def _default(field: msgspec.structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def reason_source(op: OpCode) -> str:
    """Source of the reason entry that is added when a job is submitted."""
    return f"gnt:opcode:{op.op_id.removeprefix(_PREFIX).lower()}"

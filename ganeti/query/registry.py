"""Kind of thing -> its fields, imported on first use."""

from __future__ import annotations

from typing import Final

from ganeti.base.registry import Registry
from ganeti.query.field import Kind

#: Kinds that the LUXI calls Query and QueryFields serve.
LUXI_KINDS: Final = (
    "backup",
    "disk",
    "export",
    "filter",
    "group",
    "image",
    "instance",
    "job",
    "lock",
    "network",
    "node",
)
#: Kinds that are requested with the opcodes OP_QUERY and OP_QUERY_FIELDS only.
OPCODE_KINDS: Final = ("cluster", "extstorage", "os")

KINDS: Registry[Kind[object]] = Registry(
    "kind of query", {name: f"ganeti.query.kinds.{name}:KIND" for name in LUXI_KINDS + OPCODE_KINDS}
)

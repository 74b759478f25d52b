"""Opcodes for the storage of nodes."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import StorageType
from ganeti.opcodes.scalars import doc


class OpNodeQueryvols(OpCode, tag="OP_NODE_QUERYVOLS", kw_only=True):
    """Return the logical volumes of nodes."""

    result_type: ClassVar[str] = "[any]"

    output_fields: p.OutputFields
    nodes: p.NodeNames = []


class OpNodeQueryStorage(OpCode, tag="OP_NODE_QUERY_STORAGE", kw_only=True):
    """Return the storage units of nodes, with their sizes."""

    rest: ClassVar[tuple[str, ...]] = ("GET /2/nodes/{nodes}/storage",)
    result_type: ClassVar[str] = "[[any]]"
    within: ClassVar[Mark | None] = Mark.NODE

    output_fields: p.OutputFields
    storage_type: Annotated[
        StorageType | None,
        doc("Kind of the storage; unset for the default of the cluster"),
        Mark.SAFE,
    ] = None
    nodes: p.NodeNames = []
    name: p.StorageName = None


class OpNodeModifyStorage(OpCode, tag="OP_NODE_MODIFY_STORAGE", kw_only=True):
    """Change a storage unit, such as whether new disks may be put there."""

    summary_field: ClassVar[str | None] = "node_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/nodes/{node_name}/storage/modify",)
    result_type: ClassVar[str] = "null"

    node_name: p.NodeName
    node_uuid: p.NodeUuid = None
    storage_type: p.StorageTypeParam
    name: p.StorageName = None
    changes: Annotated[JsonObject, doc("New values, by field")]


class StorageChanges(msgspec.Struct, kw_only=True):
    """The keys of ``changes``; what is unset stays."""

    allocatable: Annotated[bool | None, doc("Whether new disks may use this storage unit")] = None


class OpRepairNodeStorage(OpCode, tag="OP_REPAIR_NODE_STORAGE", kw_only=True):
    """Remove missing parts from a storage unit so that it can be used again."""

    summary_field: ClassVar[str | None] = "node_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/nodes/{node_name}/storage/repair",)
    result_type: ClassVar[str] = "null"

    node_name: p.NodeName
    node_uuid: p.NodeUuid = None
    storage_type: p.StorageTypeParam
    name: p.StorageName = None
    ignore_consistency: p.IgnoreConsistency = False

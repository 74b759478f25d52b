"""Opcodes for node groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.scalars import NonEmpty, doc


class OpGroupAdd(OpCode, tag="OP_GROUP_ADD", kw_only=True):
    """Create a node group without nodes."""

    summary_field: ClassVar[str | None] = "group_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/groups",)
    result_type: ClassVar[str] = "null|JobIdListOnly"

    group_name: p.GroupName
    alloc_policy: p.AllocPolicyParam = None
    ndparams: p.NodeParams = None
    beparams: p.GroupBackendParams = None
    diskparams: p.DiskTemplateParams = None
    hv_state: p.HvState = None
    disk_state: p.DiskState = None
    ipolicy: p.IPolicy = None


class OpGroupAssignNodes(OpCode, tag="OP_GROUP_ASSIGN_NODES", kw_only=True):
    """Move nodes into a node group."""

    summary_field: ClassVar[str | None] = "group_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/groups/{group_name}/assign-nodes",)
    result_type: ClassVar[str] = "null"

    group_name: p.GroupName
    force: p.Force = False
    nodes: Annotated[list[NonEmpty], doc("Nodes to move")]
    node_uuids: p.NodeUuids = None


class OpGroupSetParams(OpCode, tag="OP_GROUP_SET_PARAMS", kw_only=True):
    """Change settings of a node group; what is not given stays."""

    summary_field: ClassVar[str | None] = "group_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/groups/{group_name}/modify",)
    result_type: ClassVar[str] = "[(nestr,any)]"
    within: ClassVar[Mark | None] = Mark.GROUP

    group_name: p.GroupName
    alloc_policy: p.AllocPolicyParam = None
    ndparams: p.NodeParams = None
    beparams: p.GroupBackendParams = None
    diskparams: p.DiskTemplateParams = None
    hv_state: p.HvState = None
    disk_state: p.DiskState = None
    ipolicy: p.IPolicy = None


class OpGroupRemove(OpCode, tag="OP_GROUP_REMOVE", kw_only=True):
    """Remove a node group that has no nodes."""

    summary_field: ClassVar[str | None] = "group_name"
    rest: ClassVar[tuple[str, ...]] = ("DELETE /2/groups/{group_name}",)
    result_type: ClassVar[str] = "null"

    group_name: p.GroupName


class OpGroupRename(OpCode, tag="OP_GROUP_RENAME", kw_only=True):
    """Rename a node group."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/groups/{group_name}/rename",)
    result_type: ClassVar[str] = "nestr"

    group_name: p.GroupName
    new_name: p.NewName


class OpGroupEvacuate(OpCode, tag="OP_GROUP_EVACUATE", kw_only=True):
    """Submit jobs that move all instances of a node group to other groups."""

    summary_field: ClassVar[str | None] = "group_name"
    result_type: ClassVar[str] = "JobIdListOnly"

    group_name: p.GroupName
    early_release: p.EarlyRelease = False
    iallocator: p.IAllocator = None
    target_groups: p.TargetGroups = None
    sequential: Annotated[bool, doc("Move one instance after the other")] = False
    force_failover: Annotated[bool, doc("Fail instances over instead of migrating them")] = False


class OpGroupVerifyDisks(OpCode, tag="OP_GROUP_VERIFY_DISKS", kw_only=True):
    """Find the disks of a node group that are not active or missing."""

    summary_field: ClassVar[str | None] = "group_name"
    result_type: ClassVar[str] = "({str:str},[str],{str:[[str]]})"

    group_name: p.GroupName
    is_strict: p.IsStrict = True

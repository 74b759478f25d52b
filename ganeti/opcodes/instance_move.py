"""Opcodes that move an instance to other nodes."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti import constants
from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.scalars import NonEmpty, doc

_TIMEOUT = constants.DEFAULT_SHUTDOWN_TIMEOUT


class OpInstanceFailover(OpCode, tag="OP_INSTANCE_FAILOVER", kw_only=True):
    """Stop an instance and start it on its secondary node."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/failover",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    shutdown_timeout: p.ShutdownTimeout = _TIMEOUT
    ignore_consistency: p.IgnoreConsistency = False
    target_node: p.TargetNode = None
    target_node_uuid: p.TargetNodeUuid = None
    ignore_ipolicy: p.IgnoreIpolicy = False
    cleanup: p.Cleanup = False
    iallocator: p.IAllocator = None


class OpInstanceMigrate(OpCode, tag="OP_INSTANCE_MIGRATE", kw_only=True):
    """Live-migrate an instance to its secondary node."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/migrate",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    mode: p.MigrationModeParam = None
    live: p.Live = None
    target_node: p.TargetNode = None
    target_node_uuid: p.TargetNodeUuid = None
    allow_runtime_changes: p.AllowRuntimeChanges = True
    ignore_ipolicy: p.IgnoreIpolicy = False
    cleanup: p.Cleanup = False
    iallocator: p.IAllocator = None
    allow_failover: Annotated[bool, doc("Fail the instance over if it does not run"), Mark.SAFE] = (
        False
    )
    ignore_hvversions: Annotated[
        bool, doc("Continue although the nodes have different hypervisor versions")
    ] = False
    bandwidth: p.DiskBandwidth = 0
    give_up_after: p.GiveUpAfter = p.GIVE_UP_AFTER


class OpInstanceMove(OpCode, tag="OP_INSTANCE_MOVE", kw_only=True):
    """Copy the disks of an instance to another node and start it there."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/move",)
    summary_field: ClassVar[str | None] = "instance_name"
    result_type: ClassVar[str] = "null"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    shutdown_timeout: p.ShutdownTimeout = _TIMEOUT
    ignore_ipolicy: p.IgnoreIpolicy = False
    target_node: Annotated[NonEmpty, doc("Target node")]
    target_node_uuid: p.TargetNodeUuid = None
    compress: p.Compress = "none"
    ignore_consistency: p.IgnoreConsistency = False
    live: Annotated[bool, doc("Do not stop the instance if it runs"), Mark.SAFE] = False
    bandwidth: p.DiskBandwidth = 0
    give_up_after: p.GiveUpAfter = p.GIVE_UP_AFTER


class OpInstanceChangeGroup(OpCode, tag="OP_INSTANCE_CHANGE_GROUP", kw_only=True):
    """Submit jobs that move an instance to another node group."""

    summary_field: ClassVar[str | None] = "instance_name"
    result_type: ClassVar[str] = "JobIdListOnly"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    early_release: p.EarlyRelease = False
    iallocator: p.IAllocator = None
    target_groups: p.TargetGroups = None

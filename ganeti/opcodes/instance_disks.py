"""Opcodes for the disks of an instance."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import DiskRecreation
from ganeti.opcodes.enums import ReplaceDisksMode
from ganeti.opcodes.scalars import DiskIndex, NonEmpty, UInt, doc


class OpInstanceActivateDisks(OpCode, tag="OP_INSTANCE_ACTIVATE_DISKS", kw_only=True):
    """Activate the disks of a stopped instance on its primary node."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/activate-disks",)
    result_type: ClassVar[str] = "[(nestr,nestr,nestr|null)]"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    ignore_size: Annotated[
        bool, doc("Continue although a disk has another size than recorded"), Mark.SAFE
    ] = False
    wait_for_sync: p.WaitForSync = False


class OpInstanceDeactivateDisks(OpCode, tag="OP_INSTANCE_DEACTIVATE_DISKS", kw_only=True):
    """Deactivate the disks of a stopped instance."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/deactivate-disks",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    force: p.Force = False


class OpInstanceGrowDisk(OpCode, tag="OP_INSTANCE_GROW_DISK", kw_only=True):
    """Make a disk of an instance larger."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/instances/{instance_name}/disk/{disk}/grow",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    wait_for_sync: p.WaitForSync = True
    disk: Annotated[DiskIndex, doc("Index of the disk"), Mark.SAFE]
    amount: Annotated[UInt, doc("MiB to add"), Mark.SAFE]
    absolute: Annotated[bool, doc("The size is the new size, not an increase"), Mark.SAFE] = False
    ignore_ipolicy: p.IgnoreIpolicy = False


class OpInstanceRecreateDisks(OpCode, tag="OP_INSTANCE_RECREATE_DISKS", kw_only=True):
    """Recreate lost disks of a stopped instance, empty."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/instances/{instance_name}/recreate-disks",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    disks: Annotated[
        list[DiskRecreation],
        doc("Indices, each alone or with changed parameters; empty for all"),
        Mark.SAFE,
    ] = []
    nodes: Annotated[
        list[NonEmpty], doc("Nodes to put the disks on; empty for its own nodes"), Mark.NODE
    ] = []
    node_uuids: p.NodeUuids = None
    iallocator: p.IAllocator = None


class OpInstanceReplaceDisks(OpCode, tag="OP_INSTANCE_REPLACE_DISKS", kw_only=True):
    """Replace one side of the mirrored disks of an instance."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/instances/{instance_name}/replace-disks",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    early_release: p.EarlyRelease = False
    ignore_ipolicy: p.IgnoreIpolicy = False
    mode: Annotated[ReplaceDisksMode, doc("Which side is replaced, and where"), Mark.SAFE]
    disks: Annotated[list[DiskIndex], doc("Indices of the disks; empty for all"), Mark.SAFE] = []
    remote_node: p.RemoteNode = None
    remote_node_uuid: p.RemoteNodeUuid = None
    iallocator: p.IAllocator = None

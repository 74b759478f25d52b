"""Opcodes for single disks, with or without an instance."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.enums import DiskMode, DiskTemplate
from ganeti.opcodes.scalars import DiskIndex, NonEmpty, UInt, doc

DiskName = Annotated[NonEmpty, doc("UUID or name of the disk, or INSTANCE/INDEX"), Mark.DISK]


class OpDiskCreate(OpCode, tag="OP_DISK_CREATE", kw_only=True):
    """Create a disk that belongs to no instance."""

    summary_field: ClassVar[str | None] = "disk_template"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/disks",)
    result_type: ClassVar[str] = "nestr"
    within: ClassVar[Mark | None] = Mark.DISK

    disk_template: Annotated[DiskTemplate, doc("How the disk is stored"), Mark.SAFE]
    disk: Annotated[
        DiskParams, doc("Size in MiB, mode, name and what the template knows"), Mark.SAFE
    ]
    nodes: Annotated[
        list[NonEmpty],
        doc("Nodes that hold the disk; the first is the one that uses it"),
        Mark.NODE,
    ] = []
    node_uuids: p.NodeUuids = None
    iallocator: p.IAllocator = None
    file_driver: p.OptionalFileDriver = None
    file_storage_dir: p.FileStorageDir = None
    tags: p.Tags = []


class OpDiskRemove(OpCode, tag="OP_DISK_REMOVE", kw_only=True):
    """Destroy a disk that belongs to no instance."""

    summary_field: ClassVar[str | None] = "disk_name"
    rest: ClassVar[tuple[str, ...]] = ("DELETE /2/disks/{disk_name}",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.DISK

    disk_name: DiskName
    ignore_failures: Annotated[
        bool,
        doc("Remove the disk from the configuration although its data on a node cannot be removed"),
        Mark.SAFE,
    ] = False


class OpDiskSetParams(OpCode, tag="OP_DISK_SET_PARAMS", kw_only=True):
    """Change settings of a disk; what is not given stays."""

    summary_field: ClassVar[str | None] = "disk_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/disks/{disk_name}/modify",)
    result_type: ClassVar[str] = "[(nestr,any)]"
    within: ClassVar[Mark | None] = Mark.DISK

    disk_name: DiskName
    mode: Annotated[DiskMode | None, doc("Whether the guest may write"), Mark.SAFE] = None
    spindles: Annotated[UInt | None, doc("Number of physical disks it counts as"), Mark.SAFE] = None
    max_iops: Annotated[
        UInt | None, doc("Maximum reads and writes of the guest per second; 0 for no limit")
    ] = None
    max_bandwidth: Annotated[
        UInt | None, doc("Maximum MiB that the guest reads and writes per second; 0 for no limit")
    ] = None


class OpDiskRename(OpCode, tag="OP_DISK_RENAME", kw_only=True):
    """Rename a disk."""

    summary_field: ClassVar[str | None] = "disk_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/disks/{disk_name}/rename",)
    result_type: ClassVar[str] = "nestr"
    within: ClassVar[Mark | None] = Mark.DISK

    disk_name: DiskName
    new_name: Annotated[
        NonEmpty, doc("New name, which no other disk has; none for no name"), Mark.SAFE
    ]


class OpDiskGrow(OpCode, tag="OP_DISK_GROW", kw_only=True):
    """Make a disk larger, with or without an instance."""

    summary_field: ClassVar[str | None] = "disk_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/disks/{disk_name}/grow",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.DISK

    disk_name: DiskName
    amount: Annotated[UInt, doc("MiB to add"), Mark.SAFE]
    absolute: Annotated[bool, doc("The size is the new size, not an increase"), Mark.SAFE] = False
    wait_for_sync: p.WaitForSync = True
    ignore_ipolicy: p.IgnoreIpolicy = False


class OpDiskAttach(OpCode, tag="OP_DISK_ATTACH", kw_only=True):
    """Attach a detached disk to an instance; a running guest gets it at once where possible."""

    summary_field: ClassVar[str | None] = "disk_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/disks/{disk_name}/attach",)
    result_type: ClassVar[str] = "[(nestr,any)]"
    within: ClassVar[Mark | None] = Mark.DISK

    disk_name: DiskName
    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    index: Annotated[
        DiskIndex | None, doc("Index among the disks of the instance; unset for the end"), Mark.SAFE
    ] = None
    hotplug: Annotated[bool, doc("Also change the running guest"), Mark.SAFE] = True
    ignore_ipolicy: p.IgnoreIpolicy = False


class OpDiskDetach(OpCode, tag="OP_DISK_DETACH", kw_only=True):
    """Detach a disk from its instance and keep its data."""

    summary_field: ClassVar[str | None] = "disk_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/disks/{disk_name}/detach",)
    result_type: ClassVar[str] = "[(nestr,any)]"
    within: ClassVar[Mark | None] = Mark.DISK

    disk_name: DiskName
    hotplug: Annotated[bool, doc("Also change the running guest"), Mark.SAFE] = True
    ignore_ipolicy: p.IgnoreIpolicy = False

"""Opcodes for snapshots of instances."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.scalars import NonEmpty, UInt, doc

SnapshotName = Annotated[NonEmpty, doc("Name of the snapshot"), Mark.SAFE]


class OpSnapshotCreate(OpCode, tag="OP_SNAPSHOT_CREATE", kw_only=True):
    """Keep the content of all disks of an instance as it is now."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/instances/{instance_name}/snapshots",)
    result_type: ClassVar[str] = "nestr"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    snapshot_name: SnapshotName
    description: Annotated[str, doc("What the snapshot is made for"), Mark.SAFE] = ""
    room: Annotated[
        UInt,
        doc("MiB for later changes of each volume of LVM; by default enough for any change"),
        Mark.SAFE,
    ] = 0


class OpSnapshotRevert(OpCode, tag="OP_SNAPSHOT_REVERT", kw_only=True):
    """Revert the disks of a stopped instance to a snapshot; the snapshot stays."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = (
        "PUT /2/instances/{instance_name}/snapshots/{snapshot_name}/revert",
    )
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    snapshot_name: SnapshotName


class OpSnapshotRemove(OpCode, tag="OP_SNAPSHOT_REMOVE", kw_only=True):
    """Remove a snapshot of an instance; its disks stay as they are."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = (
        "DELETE /2/instances/{instance_name}/snapshots/{snapshot_name}",
    )
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    snapshot_name: SnapshotName
    ignore_failures: Annotated[
        bool,
        doc("Remove the snapshot from the configuration although a copy of a disk remains"),
        Mark.SAFE,
    ] = False

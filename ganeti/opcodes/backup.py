"""Opcodes for exports of instances."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti import constants
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import ExportMode
from ganeti.opcodes.scalars import NonEmpty, Number, doc

_TIMEOUT = constants.DEFAULT_SHUTDOWN_TIMEOUT


class OpBackupPrepare(OpCode, tag="OP_BACKUP_PREPARE", kw_only=True):
    """Make what an export to another cluster needs to be trusted there."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/prepare-export",)
    result_type: ClassVar[str] = "{any:any}|null"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    mode: Annotated[ExportMode, doc("Whether the export stays in this cluster")]


class OpBackupExport(OpCode, tag="OP_BACKUP_EXPORT", kw_only=True):
    """Copy the disks and the settings of an instance to a node or another cluster."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/export",)
    result_type: ClassVar[str] = "(bool,[bool])"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    compress: p.Compress = "none"
    shutdown_timeout: p.ShutdownTimeout = _TIMEOUT
    target_node: Annotated[
        NonEmpty | p.AnyList, doc("Node to write to, or the destination of each disk when remote")
    ]
    target_node_uuid: p.TargetNodeUuid = None
    shutdown: Annotated[bool, doc("Stop the instance while its disks are read")] = True
    remove_instance: Annotated[bool, doc("Remove the instance after a good export")] = False
    ignore_remove_failures: Annotated[bool, doc("Ignore errors when it is removed")] = False
    mode: Annotated[ExportMode, doc("Whether the export stays in this cluster")] = ExportMode.LOCAL
    x509_key_name: Annotated[
        p.AnyList | None, doc("Name, digest and salt of the key made by the preparation")
    ] = None
    destination_x509_ca: Annotated[
        NonEmpty | None, doc("Signed certificate of the other cluster")
    ] = None
    zero_free_space: Annotated[bool, doc("Zero unused space of the guest first")] = False
    zeroing_timeout_fixed: Annotated[
        int | None, doc("Seconds to wait for zeroing, whatever the size")
    ] = None
    zeroing_timeout_per_mib: Annotated[
        Number | None, doc("Seconds to wait for zeroing, for every MiB")
    ] = None
    long_sleep: Annotated[bool, doc("Leave the instance down until the export is done")] = False


class OpBackupRemove(OpCode, tag="OP_BACKUP_REMOVE", kw_only=True):
    """Delete the exports of an instance from all nodes."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("DELETE /2/instances/{instance_name}/export",)
    result_type: ClassVar[str] = "null"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None

"""Opcodes for exports and backups of instances."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti import constants
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import ExportMode
from ganeti.opcodes.scalars import DiskIndex, NonEmpty, Number, Positive, UInt, doc

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
    ignore_remove_failures: Annotated[bool, doc("Ignore errors of the removal")] = False
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


_REPOSITORY = doc(
    "Repository: a directory on the nodes, or the name of a restic or borg repository; by "
    "default that in the schedule of the instance, else /srv/ganeti/backup"
)
_KEEP_LAST = doc("Number of newest backups to keep")
_KEEP_DAILY = doc("Number of days of which the newest backup is kept")
_KEEP_WEEKLY = doc("Number of weeks of which the newest backup is kept")
_KEEP_MONTHLY = doc("Number of months of which the newest backup is kept")
_BACKUP_ID = doc("Id of the backup; by default the newest")
_UNTIL = doc(
    "By what a copy shows that it works: agent, tcp:PORT, or serial:TEXT with a part of a line of"
    " the serial console; by default the guest agent, else serial:login:"
)


class OpBackupRun(OpCode, tag="OP_BACKUP_RUN", kw_only=True):
    """Back up the disks of an instance; after the first time only what has changed."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/instances/{instance_name}/backups",)
    result_type: ClassVar[str] = "{any:any}"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    repository: Annotated[NonEmpty | None, _REPOSITORY] = None
    full: Annotated[bool, doc("Store all data again, whatever earlier backups hold")] = False
    bandwidth: Annotated[
        UInt | None,
        doc("Maximum MiB per second to read, 0 for no limit; by default that of the schedule"),
    ] = None
    room: Annotated[
        UInt,
        doc(
            "MiB for what is written meanwhile to a disk that is read from a snapshot; 0: as much"
            " as the disk has"
        ),
    ] = 0


class OpBackupSchedule(OpCode, tag="OP_BACKUP_SCHEDULE", kw_only=True):
    """Change when and where an instance is backed up, and which backups are kept."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/backup-schedule",)
    result_type: ClassVar[str] = "null"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    repository: Annotated[
        str | None, doc("Directory or name of the repository; empty for the default")
    ] = None
    every: Annotated[
        Number | None,
        doc("Hours between two backups that the watcher starts; 0: it starts none"),
    ] = None
    at: Annotated[
        str | None,
        doc(
            "Time of day at which the watcher begins, such as 02:30, by the clock of the master;"
            " empty for any time. Then --every is a number of whole days"
        ),
    ] = None
    bandwidth: Annotated[UInt | None, doc("Maximum MiB per second to read; 0 for no limit")] = None
    verify_every: Annotated[
        Number | None,
        doc("Hours between two verifications that the watcher starts; 0: it starts none"),
    ] = None
    verify_boot: Annotated[bool | None, doc("Whether these start a copy")] = None
    verify_until: Annotated[str | None, _UNTIL] = None
    keep_last: Annotated[UInt | None, _KEEP_LAST] = None
    keep_daily: Annotated[UInt | None, _KEEP_DAILY] = None
    keep_weekly: Annotated[UInt | None, _KEEP_WEEKLY] = None
    keep_monthly: Annotated[UInt | None, _KEEP_MONTHLY] = None


class OpBackupRestore(OpCode, tag="OP_BACKUP_RESTORE", kw_only=True):
    """Write disks of a backup over those of the same instance, which must be stopped."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/restore-backup",)
    result_type: ClassVar[str] = "nestr"

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    repository: Annotated[NonEmpty | None, _REPOSITORY] = None
    backup: Annotated[NonEmpty | None, _BACKUP_ID] = None
    disk: Annotated[DiskIndex | None, doc("Only this disk, by its number; by default all")] = None


class OpBackupReadFiles(OpCode, tag="OP_BACKUP_READ_FILES", kw_only=True):
    """Read files of a backup into an archive on a node."""

    summary_field: ClassVar[str | None] = "instance_name"
    result_type: ClassVar[str] = "{any:any}"

    instance_name: Annotated[NonEmpty, doc("Name that the instance has, or had at that time")]
    repository: Annotated[NonEmpty | None, _REPOSITORY] = None
    backup: Annotated[NonEmpty | None, _BACKUP_ID] = None
    files: Annotated[
        list[NonEmpty],
        doc("Files and directories to read, by their full paths in the file system they are in"),
    ]
    node: Annotated[
        NonEmpty | None, doc("Node that reads them and keeps the archive; by default the master")
    ] = None
    timeout: Annotated[Positive, doc("Seconds until they must have been read")] = 3600


class OpBackupVerify(OpCode, tag="OP_BACKUP_VERIFY", kw_only=True):
    """Check that a backup can be restored: compare its checksums, and start a copy if wanted."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/verify-backup",)
    result_type: ClassVar[str] = "nestr"

    instance_name: Annotated[NonEmpty, doc("Name that the instance has, or had at that time")]
    repository: Annotated[NonEmpty | None, _REPOSITORY] = None
    backup: Annotated[NonEmpty | None, _BACKUP_ID] = None
    boot: Annotated[bool, doc("Start a copy without a network, too; it is removed afterwards")] = (
        False
    )
    boot_until: Annotated[NonEmpty | None, _UNTIL] = None
    boot_timeout: Annotated[Positive, doc("Seconds until the copy must have shown it")] = 600
    boot_node: Annotated[
        NonEmpty | None, doc("Node that starts the copy; by default one with memory to spare")
    ] = None


class OpBackupPrune(OpCode, tag="OP_BACKUP_PRUNE", kw_only=True):
    """Remove the backups of an instance that its rules do not keep."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/prune-backups",)
    result_type: ClassVar[str] = "[nestr]"

    instance_name: Annotated[NonEmpty, doc("Name that the instance has, or had at that time")]
    repository: Annotated[NonEmpty | None, _REPOSITORY] = None
    keep_last: Annotated[UInt | None, _KEEP_LAST] = None
    keep_daily: Annotated[UInt | None, _KEEP_DAILY] = None
    keep_weekly: Annotated[UInt | None, _KEEP_WEEKLY] = None
    keep_monthly: Annotated[UInt | None, _KEEP_MONTHLY] = None

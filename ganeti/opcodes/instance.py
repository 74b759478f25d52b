"""Opcodes for existing instances; creation, disks and moves have modules of their own."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti import constants
from ganeti.base.json_types import JsonObject
from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import DiskChange, NicChange
from ganeti.opcodes.enums import AdminStateSource, DiskTemplate, RebootType
from ganeti.opcodes.scalars import NonEmpty, Positive, doc

_TIMEOUT = constants.DEFAULT_SHUTDOWN_TIMEOUT


class OpInstanceRemove(OpCode, tag="OP_INSTANCE_REMOVE", kw_only=True):
    """Stop an instance and delete it with its disks."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("DELETE /2/instances/{instance_name}",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    shutdown_timeout: p.ShutdownTimeout = _TIMEOUT
    ignore_failures: Annotated[
        bool,
        doc("Remove the instance from the configuration even if parts of it remain"),
        Mark.SAFE,
    ] = False


class OpInstanceRename(OpCode, tag="OP_INSTANCE_RENAME", kw_only=True):
    """Rename an instance; it must be stopped."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/rename",)
    result_type: ClassVar[str] = "nestr"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    new_name: p.NewName
    name_check: p.NameCheck = False
    ip_check: p.IpCheck = False


class OpInstanceReinstall(OpCode, tag="OP_INSTANCE_REINSTALL", kw_only=True):
    """Install an OS on the disks of a stopped instance again."""

    summary_field: ClassVar[str | None] = "instance_name"
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    force_variant: p.ForceVariant = False
    os_type: p.OsType = None
    osparams: Annotated[JsonObject | None, doc("OS parameters for this installation")] = None
    osparams_private: p.OsParamsPrivate = None
    osparams_secret: p.OsParamsSecret = None


class OpInstanceStartup(OpCode, tag="OP_INSTANCE_STARTUP", kw_only=True):
    """Start an instance."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/startup",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    force: p.Force = False
    ignore_offline_nodes: p.IgnoreOfflineNodes = False
    hvparams: Annotated[
        JsonObject, doc("Hypervisor parameters for this run only"), Mark.HVPARAMS
    ] = {}
    beparams: Annotated[JsonObject, doc("Memory and processors for this run only")] = {}
    no_remember: p.NoRemember = False
    startup_paused: Annotated[bool, doc("Start the guest paused"), Mark.SAFE] = False
    shutdown_timeout: p.ShutdownTimeout = _TIMEOUT


class OpInstanceShutdown(OpCode, tag="OP_INSTANCE_SHUTDOWN", kw_only=True):
    """Stop an instance."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/shutdown",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    force: p.Force = False
    ignore_offline_nodes: p.IgnoreOfflineNodes = False
    timeout: p.ShutdownTimeout = _TIMEOUT
    no_remember: p.NoRemember = False
    admin_state_source: Annotated[
        AdminStateSource | None,
        doc("Who stopped it: the administrator, or the user of the guest"),
        Mark.SAFE,
    ] = None


class OpInstanceReboot(OpCode, tag="OP_INSTANCE_REBOOT", kw_only=True):
    """Restart an instance."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/instances/{instance_name}/reboot",)
    result_type: ClassVar[str] = "null"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    shutdown_timeout: p.ShutdownTimeout = _TIMEOUT
    ignore_secondaries: Annotated[
        bool, doc("Start the instance although its secondary node is missing"), Mark.SAFE
    ] = False
    reboot_type: Annotated[
        RebootType,
        doc("How to restart: by guest (soft), by hypervisor (hard), with disks (full)"),
        Mark.SAFE,
    ]


class OpInstanceSetParams(OpCode, tag="OP_INSTANCE_SET_PARAMS", kw_only=True):
    """Change settings, disks or NICs of an instance; what is not given stays."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/instances/{instance_name}/modify",)
    result_type: ClassVar[str] = "[(nestr,any)]"
    says_how: ClassVar[frozenset[str]] = frozenset(
        (
            "bandwidth",
            "conflicts_check",
            "ext_params",
            "file_driver",
            "file_storage_dir",
            "force",
            "force_variant",
            "hotplug",
            "hotplug_if_possible",
            "iallocator",
            "ignore_ipolicy",
            "instance_uuid",
            "remote_node",
            "remote_node_uuid",
            "wait_for_sync",
        )
    )
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None
    # no mark: it also allows more memory than is set
    force: Annotated[bool, doc("Ignore warnings")] = False
    force_variant: p.ForceVariant = False
    ignore_ipolicy: p.IgnoreIpolicy = False
    nics: Annotated[list[NicChange], doc("Changes of NICs, one after the other"), Mark.SAFE] = []
    disks: Annotated[list[DiskChange], doc("Changes of disks, one after the other"), Mark.SAFE] = []
    beparams: p.BeParams = {}
    runtime_mem: Annotated[
        Positive | None, doc("Memory of the running guest from now on, in MiB"), Mark.SAFE
    ] = None
    hvparams: p.HvParams = {}
    disk_template: Annotated[DiskTemplate | None, doc("Disk template to convert the disks to")] = (
        None
    )
    ext_params: Annotated[JsonObject, doc("Parameters for the provider of external storage")] = {}
    bandwidth: p.DiskBandwidth = 0
    file_driver: p.OptionalFileDriver = None
    file_storage_dir: p.FileStorageDir = None
    pnode: Annotated[NonEmpty | None, doc("Node to record as the primary")] = None
    pnode_uuid: Annotated[NonEmpty | None, doc("UUID of the primary node")] = None
    remote_node: p.RemoteNode = None
    remote_node_uuid: p.RemoteNodeUuid = None
    iallocator: p.IAllocator = None
    os_name: Annotated[NonEmpty | None, doc("OS to record; nothing is installed"), Mark.SAFE] = None
    osparams: p.OsParams = {}
    osparams_private: p.OsParamsPrivate = None
    wait_for_sync: p.WaitForSync = True
    ssh_keys: p.SshKeys = None
    password_hash: p.PasswordHash = None
    user_data: p.UserData = None
    vendor_data: p.VendorData = None
    network_config: p.NetworkConfig = None
    reseed: Annotated[
        bool, doc("Let cloud-init in the guest repeat what it does at the first start"), Mark.SAFE
    ] = False
    offline: Annotated[
        bool | None, doc("Whether the instance is marked as out of use"), Mark.SAFE
    ] = None
    conflicts_check: p.ConflictsCheck = True
    hotplug: Annotated[bool, doc("Also change devices of the running guest"), Mark.SAFE] = True
    hotplug_if_possible: Annotated[
        bool | None, doc("The same as hotplug, as clients of 3.0 ask for it"), Mark.SAFE
    ] = None
    instance_communication: Annotated[
        bool | None, doc("Whether the guest can talk to its node")
    ] = None


class OpInstanceConsole(OpCode, tag="OP_INSTANCE_CONSOLE", kw_only=True):
    """Return how to reach the console of an instance."""

    summary_field: ClassVar[str | None] = "instance_name"
    result_type: ClassVar[str] = "{any:any}"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: p.InstanceName
    instance_uuid: p.InstanceUuid = None


class OpInstanceQueryData(OpCode, tag="OP_INSTANCE_QUERY_DATA", kw_only=True):
    """Return everything that is known about instances, down to their disks."""

    rest: ClassVar[tuple[str, ...]] = ("GET /2/instances/{instances}/info",)
    result_type: ClassVar[str] = "{any:{any:any}}"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    use_locking: p.UseLocking = False
    instances: p.InstanceNames = []
    static: Annotated[
        bool, doc("Do not ask nodes; omit values that only nodes have"), Mark.SAFE
    ] = False

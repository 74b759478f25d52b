"""Opcodes that create instances."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ganeti import constants
from ganeti.model.marks import Mark
from ganeti.opcodes import params as p
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.devices import DiskParams, DiskSource, NicParams
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.scalars import NonEmpty, UInt, doc


class OpInstanceCreate(OpCode, tag="OP_INSTANCE_CREATE", kw_only=True):
    """Create an instance: from an OS definition, an export or another cluster."""

    summary_field: ClassVar[str | None] = "instance_name"
    rest: ClassVar[tuple[str, ...]] = (
        "POST /2/instances",
        "POST /2/instances/{instance_name}/create",
    )
    result_type: ClassVar[str] = "[nestr]"
    within: ClassVar[Mark | None] = Mark.INSTANCE

    instance_name: Annotated[str, doc("Name of the instance"), Mark.SAFE]
    force_variant: p.ForceVariant = False
    wait_for_sync: p.WaitForSync = True
    name_check: p.NameCheck = False
    ignore_ipolicy: p.IgnoreIpolicy = False
    opportunistic_locking: p.OpportunisticLocking = False
    beparams: p.BeParams = {}
    disks: Annotated[list[DiskParams], doc("Disks, the first one to boot from"), Mark.SAFE]
    disk_template: p.OptionalDiskTemplate = None
    group_name: Annotated[NonEmpty | None, doc("Node group to choose nodes from"), Mark.GROUP] = (
        None
    )
    file_driver: p.OptionalFileDriver = None
    file_storage_dir: p.FileStorageDir = None
    hvparams: p.HvParams = {}
    hypervisor: p.OptionalHypervisor = None
    iallocator: p.IAllocator = None
    identify_defaults: Annotated[
        bool, doc("Do not store values that equal those of the cluster"), Mark.SAFE
    ] = False
    ip_check: p.IpCheck = False
    conflicts_check: p.ConflictsCheck = True
    mode: Annotated[InstCreateMode, doc("Where the content of the disks comes from"), Mark.SAFE]
    nics: Annotated[list[NicParams], doc("NICs"), Mark.SAFE]
    no_install: Annotated[
        bool | None, doc("Create the disks, but do not install an OS"), Mark.SAFE
    ] = None
    osparams: p.OsParams = {}
    osparams_private: p.OsParamsPrivate = None
    osparams_secret: p.OsParamsSecret = None
    os_type: p.OsType = None
    image: Annotated[
        NonEmpty | None, doc("Image to write to the first disk, in place of an OS"), Mark.SAFE
    ] = None
    disk_sources: Annotated[
        list[DiskSource] | None,
        doc(
            "What the first disks are filled with, in place of an OS: for each its source, which is"
            " a URL or the name of a file in the directory of uploads of the master, and its format"
        ),
    ] = None
    ssh_keys: p.SshKeys = None
    password_hash: p.PasswordHash = None
    user_data: p.UserData = None
    vendor_data: p.VendorData = None
    network_config: p.NetworkConfig = None
    pnode: p.PrimaryNode = None
    pnode_uuid: p.PrimaryNodeUuid = None
    snode: Annotated[NonEmpty | None, doc("Secondary node"), Mark.NODE] = None
    snode_uuid: Annotated[NonEmpty | None, doc("UUID of the secondary node"), Mark.NODE] = None
    source_handshake: Annotated[
        p.AnyList | None, doc("Proof that the other cluster shares the secret; for remote import")
    ] = None
    source_instance_name: Annotated[
        NonEmpty | None, doc("Name of the instance in the other cluster")
    ] = None
    source_shutdown_timeout: Annotated[
        UInt, doc("Seconds the guest in the other cluster gets to stop")
    ] = constants.DEFAULT_SHUTDOWN_TIMEOUT
    source_x509_ca: Annotated[NonEmpty | None, doc("Signed certificate of the other cluster")] = (
        None
    )
    src_node: Annotated[NonEmpty | None, doc("Node that holds the export")] = None
    src_node_uuid: Annotated[NonEmpty | None, doc("UUID of the node that holds the export")] = None
    src_path: Annotated[NonEmpty | None, doc("Directory of the export")] = None
    backup: Annotated[
        NonEmpty | None,
        doc("Id of a backup to import in place of an export; 'newest' for the last one"),
    ] = None
    repository: Annotated[
        NonEmpty | None,
        doc("Repository of backups: a directory or a name; by default /srv/ganeti/backup"),
    ] = None
    compress: p.Compress = "none"
    start: Annotated[bool, doc("Start the instance when it is ready"), Mark.SAFE] = True
    forthcoming: Annotated[
        bool, doc("Only reserve capacity; create the instance later"), Mark.SAFE
    ] = False
    commit: Annotated[bool, doc("Create the instance of a reservation"), Mark.SAFE] = False
    tags: p.Tags = []
    instance_communication: Annotated[bool, doc("Let the guest talk to its node")] = False
    helper_startup_timeout: Annotated[int | None, doc("Seconds the helper guest gets to start")] = (
        None
    )
    helper_shutdown_timeout: Annotated[
        int | None, doc("Seconds the helper guest gets to do its work and stop")
    ] = None


class OpInstanceMultiAlloc(OpCode, tag="OP_INSTANCE_MULTI_ALLOC", kw_only=True):
    """Allocate nodes for several instances at once and submit a job for each."""

    rest: ClassVar[tuple[str, ...]] = ("POST /2/instances-multi-alloc",)
    result_type: ClassVar[str] = "InstanceMultiAllocResponse"

    opportunistic_locking: p.OpportunisticLocking = False
    iallocator: p.IAllocator = None
    instances: Annotated[
        list[OpInstanceCreate], doc("What to create; nodes are chosen by the allocator")
    ] = []

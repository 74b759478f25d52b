"""Parameters that several opcodes share: type and description under one name."""

from __future__ import annotations

from typing import Annotated, Any

from ganeti.base.json_types import JsonObject
from ganeti.model.marks import Mark
from ganeti.opcodes import enums
from ganeti.opcodes.hidden import Private, Secret
from ganeti.opcodes.scalars import NonEmpty, Positive, UInt, doc

# What is acted on
InstanceName = Annotated[str, doc("Name of the instance"), Mark.INSTANCE]
InstanceUuid = Annotated[
    NonEmpty | None, doc("UUID of the instance, checked against the name"), Mark.INSTANCE
]
InstanceNames = Annotated[list[NonEmpty], doc("Names of instances; empty for all"), Mark.INSTANCE]
NodeName = Annotated[NonEmpty, doc("Name of the node"), Mark.NODE]
NodeUuid = Annotated[NonEmpty | None, doc("UUID of the node, checked against the name"), Mark.NODE]
NodeNames = Annotated[list[NonEmpty], doc("Names of nodes; empty for all"), Mark.NODE]
NodeUuids = Annotated[
    list[NonEmpty] | None, doc("UUIDs of the nodes, in the order of the names"), Mark.NODE
]
GroupName = Annotated[NonEmpty, doc("Name of the node group"), Mark.GROUP]
OptionalGroupName = Annotated[NonEmpty | None, doc("Name of the node group; unset for all")]
NetworkName = Annotated[NonEmpty, doc("Name of the network")]
ImageName = Annotated[NonEmpty, doc("Name of the image")]
NewName = Annotated[NonEmpty, doc("New name"), Mark.SAFE]
Tags = Annotated[list[NonEmpty], doc("Tags of the new object"), Mark.SAFE]

# Where to
TargetNode = Annotated[NonEmpty | None, doc("Target node"), Mark.NODE]
TargetNodeUuid = Annotated[NonEmpty | None, doc("UUID of the target node"), Mark.NODE]
TargetGroups = Annotated[list[NonEmpty] | None, doc("Node groups to choose from; unset for any")]
RemoteNode = Annotated[NonEmpty | None, doc("Node that becomes the secondary"), Mark.NODE]
RemoteNodeUuid = Annotated[
    NonEmpty | None, doc("UUID of the node that becomes the secondary"), Mark.NODE
]
PrimaryNode = Annotated[NonEmpty | None, doc("Primary node"), Mark.NODE]
PrimaryNodeUuid = Annotated[NonEmpty | None, doc("UUID of the primary node"), Mark.NODE]
IAllocator = Annotated[
    NonEmpty | None,
    doc("Allocator that chooses nodes; a dot stands for the default one of the cluster"),
]

# How hard to try
Force = Annotated[bool, doc("Ignore warnings"), Mark.SAFE]
ForceVariant = Annotated[bool, doc("Allow an OS variant that the OS does not list")]
IgnoreConsistency = Annotated[bool, doc("Continue although data may be lost"), Mark.SAFE]
IgnoreIpolicy = Annotated[bool, doc("Ignore instance policy violations")]
IgnoreOfflineNodes = Annotated[
    bool, doc("If the node is offline, change only the configuration"), Mark.SAFE
]
NoRemember = Annotated[
    bool, doc("Do not record whether the instance should run from now on"), Mark.SAFE
]
Cleanup = Annotated[bool, doc("Clean up after an interrupted migration or failover"), Mark.SAFE]
OpportunisticLocking = Annotated[
    bool, doc("Consider only nodes that are not locked now"), Mark.SAFE
]
UseLocking = Annotated[bool, doc("Lock what is read, for a consistent answer"), Mark.SAFE]
EarlyRelease = Annotated[
    bool, doc("Release the old secondary node before the new disks are in sync"), Mark.SAFE
]
WaitForSync = Annotated[bool, doc("Wait until the disks are in sync"), Mark.SAFE]
ShutdownTimeout = Annotated[UInt, doc("Seconds the guest gets to stop by itself"), Mark.SAFE]
AllowRuntimeChanges = Annotated[
    bool, doc("Reduce the memory of the guest if the target node has too little"), Mark.SAFE
]
MigrationModeParam = Annotated[
    enums.MigrationMode | None,
    doc("Whether the guest keeps running; unset for the default of its hypervisor"),
    Mark.SAFE,
]
DiskBandwidth = Annotated[
    UInt, doc("Maximum MiB per second for the disks of a running guest; 0 for no limit")
]
GIVE_UP_AFTER = 600
GiveUpAfter = Annotated[
    Positive,
    doc("Seconds after which a guest is not moved that writes as fast as its disks are sent"),
    Mark.SAFE,
]
Live = Annotated[bool | None, doc("Older form of the mode: true is live"), Mark.SAFE]

# Checks
NameCheck = Annotated[bool, doc("Resolve the name and use the full one"), Mark.SAFE]
IpCheck = Annotated[bool, doc("Refuse if the address of the instance is in use"), Mark.SAFE]
ConflictsCheck = Annotated[bool, doc("Refuse addresses that overlap with a network")]
DebugSimulateErrors = Annotated[bool, doc("Report every check as failed, to test reports")]
ErrorCodes = Annotated[bool, doc("Report in a form for programs")]
Verbose = Annotated[bool, doc("Report more")]
SkipChecks = Annotated[frozenset[enums.VerifyOptionalChecks], doc("Checks to omit")]
IgnoreErrors = Annotated[frozenset[enums.CVErrorCode], doc("Errors to report as warnings only")]
VerifyClutter = Annotated[bool, doc("Also report keys of unknown nodes in SSH files")]
IsStrict = Annotated[bool, doc("Treat nodes that do not answer as errors")]

# Settings
HvState = Annotated[
    JsonObject | None,
    doc("Memory and processors to reserve, by hypervisor, as in kvm:mem_node=2048"),
]
DiskState = Annotated[
    JsonObject | None,
    doc("Disk space to reserve, as in plain/xenvg:disk_reserved=10240"),
]
NodeParams = Annotated[JsonObject | None, doc("Node parameters")]
GroupBackendParams = Annotated[
    JsonObject | None, doc("Backend parameters of recovery: ha and ha_attempts")
]
IPolicy = Annotated[JsonObject | None, doc("Instance policy")]
DiskTemplateParams = Annotated[
    dict[enums.DiskTemplate, JsonObject] | None, doc("Disk parameters, by disk template")
]
AllocPolicyParam = Annotated[
    enums.AllocPolicy | None, doc("Allocation policy of the group"), Mark.SAFE
]
HvParams = Annotated[JsonObject, doc("Hypervisor parameters"), Mark.HVPARAMS]
BeParams = Annotated[JsonObject, doc("Backend parameters, such as memory and vcpus"), Mark.BEPARAMS]
OsParams = Annotated[JsonObject, doc("OS parameters")]
OsParamsPrivate = Annotated[
    dict[str, Private] | None, doc("OS parameters that are stored but not shown")
]
OsParamsSecret = Annotated[
    dict[str, Secret] | None, doc("OS parameters that are neither stored nor shown")
]
OptionalDiskTemplate = Annotated[
    enums.DiskTemplate | None, doc("How the disks are stored"), Mark.SAFE
]
OptionalHypervisor = Annotated[enums.Hypervisor | None, doc("Hypervisor; unset for the default")]
OptionalFileDriver = Annotated[enums.FileDriver | None, doc("Driver of file disks")]
FileStorageDir = Annotated[
    NonEmpty | None, doc("Directory for the files of the disks, below the file storage directory")
]
OsType = Annotated[
    NonEmpty | None, doc("OS to install, with its variant after a plus sign"), Mark.SAFE
]
SshKeys = Annotated[
    list[NonEmpty] | None,
    doc("Public SSH keys that may log in as the user of the image"),
    Mark.SAFE,
]
PasswordHash = Annotated[
    Secret | None, doc("Hash of the password of the user of the image; empty for none"), Mark.SAFE
]
UserData = Annotated[Secret | None, doc("User data for cloud-init; empty for none"), Mark.SAFE]
VendorData = Annotated[Secret | None, doc("Vendor data for cloud-init; empty for none"), Mark.SAFE]
NetworkConfig = Annotated[
    str | None,
    doc("Network configuration for cloud-init; empty for the one made from the NICs"),
    Mark.SAFE,
]
Compress = Annotated[str, doc("Compression for the transfer: a tool of the cluster, or none")]
MacPrefix = Annotated[NonEmpty | None, doc("First three bytes of generated MAC addresses")]

# Questions
OutputFields = Annotated[list[NonEmpty], doc("Fields to return, in this order"), Mark.SAFE]
Names = Annotated[list[NonEmpty], doc("Names to show; empty for all")]
StorageTypeParam = Annotated[enums.StorageType, doc("Kind of the storage")]
StorageName = Annotated[NonEmpty | None, doc("Name of the storage unit")]
TagKindParam = Annotated[enums.TagKind, doc("Kind of the object"), Mark.SAFE]
TagObject = Annotated[str | None, doc("Name of the object; unset for the cluster"), Mark.SAFE]
TagList = Annotated[list[str], doc("Tags to set or remove"), Mark.SAFE]
AnyList = list[Any]

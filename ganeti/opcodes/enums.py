"""Words that opcode parameters accept; every value is the exact text on the wire.

Class names are the ones of the interface tables, so that documentation can refer to them. What the
configuration knows too is the same enumeration (``model/names.py``).
"""

from __future__ import annotations

from enum import StrEnum

from ganeti.model.names import (
    AdminStateSource,
    AllocPolicy,
    DiskMode,
    DiskTemplate,
    RebootType,
    TagKind,
)
from ganeti.model.names import HypervisorName as Hypervisor

__all__ = [
    "AdminStateSource",
    "AllocPolicy",
    "CVErrorCode",
    "DdmFull",
    "DdmSimple",
    "DiskMode",
    "DiskTemplate",
    "EvacMode",
    "ExportMode",
    "FileDriver",
    "FinalStatus",
    "Hypervisor",
    "IAllocatorMode",
    "IAllocatorTestDir",
    "InstCreateMode",
    "MigrationMode",
    "NICMode",
    "OobCommand",
    "QueryTypeOp",
    "RebootType",
    "ReplaceDisksMode",
    "SshKeyType",
    "StorageType",
    "TagKind",
    "VerifyOptionalChecks",
]


class CVErrorCode(StrEnum):
    """Problems that a cluster verification can report."""

    ECLUSTERCERT = "ECLUSTERCERT"
    ECLUSTERCFG = "ECLUSTERCFG"
    ECLUSTERCLIENTCERT = "ECLUSTERCLIENTCERT"
    ECLUSTERDANGLINGINST = "ECLUSTERDANGLINGINST"
    ECLUSTERDANGLINGNODES = "ECLUSTERDANGLINGNODES"
    ECLUSTERFILECHECK = "ECLUSTERFILECHECK"
    EEXTAGS = "EEXTAGS"
    EGROUPDIFFERENTPVSIZE = "EGROUPDIFFERENTPVSIZE"
    EINSTANCEBADNODE = "EINSTANCEBADNODE"
    EINSTANCEDOWN = "EINSTANCEDOWN"
    EINSTANCEFAULTYDISK = "EINSTANCEFAULTYDISK"
    EINSTANCELAYOUT = "EINSTANCELAYOUT"
    EINSTANCEMISSINGCFGPARAMETER = "EINSTANCEMISSINGCFGPARAMETER"
    EINSTANCEMISSINGDISK = "EINSTANCEMISSINGDISK"
    EINSTANCEPOLICY = "EINSTANCEPOLICY"
    EINSTANCESPLITGROUPS = "EINSTANCESPLITGROUPS"
    EINSTANCEUNSUITABLENODE = "EINSTANCEUNSUITABLENODE"
    EINSTANCEWRONGNODE = "EINSTANCEWRONGNODE"
    ENODEDRBD = "ENODEDRBD"
    ENODEDRBDHELPER = "ENODEDRBDHELPER"
    ENODEDRBDVERSION = "ENODEDRBDVERSION"
    ENODEFILECHECK = "ENODEFILECHECK"
    ENODEFILESTORAGEPATHS = "ENODEFILESTORAGEPATHS"
    ENODEFILESTORAGEPATHUNUSABLE = "ENODEFILESTORAGEPATHUNUSABLE"
    ENODEGLUSTERSTORAGEPATHUNUSABLE = "ENODEGLUSTERSTORAGEPATHUNUSABLE"
    ENODEHOOKS = "ENODEHOOKS"
    ENODEHV = "ENODEHV"
    ENODELVM = "ENODELVM"
    ENODEN1 = "ENODEN1"
    ENODENET = "ENODENET"
    ENODEOOBPATH = "ENODEOOBPATH"
    ENODEORPHANFILE = "ENODEORPHANFILE"
    ENODEORPHANINSTANCE = "ENODEORPHANINSTANCE"
    ENODEORPHANLV = "ENODEORPHANLV"
    ENODEOS = "ENODEOS"
    ENODERPC = "ENODERPC"
    ENODESETUP = "ENODESETUP"
    ENODESHAREDFILESTORAGEPATHUNUSABLE = "ENODESHAREDFILESTORAGEPATHUNUSABLE"
    ENODESSH = "ENODESSH"
    ENODETIME = "ENODETIME"
    ENODEUSERSCRIPTS = "ENODEUSERSCRIPTS"
    ENODEVERSION = "ENODEVERSION"


class VerifyOptionalChecks(StrEnum):
    """Parts of a cluster verification that can be left out."""

    HVPARAM_ASSESSMENT = "hvparam_assessment"
    NPLUSONE_MEM = "nplusone_mem"


class StorageType(StrEnum):
    """Kinds of storage a node can report."""

    BLOCKDEV = "blockdev"
    DISKLESS = "diskless"
    EXT = "ext"
    FILE = "file"
    GLUSTER = "gluster"
    LVM_PV = "lvm-pv"
    LVM_VG = "lvm-vg"
    RADOS = "rados"
    SHAREDFILE = "sharedfile"


class FileDriver(StrEnum):
    """Xen drivers for disks that are files."""

    BLKTAP = "blktap"
    BLKTAP2 = "blktap2"
    LOOP = "loop"


class NICMode(StrEnum):
    """How a NIC connects to the network."""

    BRIDGED = "bridged"
    EXT = "ext"
    OPENVSWITCH = "openvswitch"
    POOL = "pool"
    ROUTED = "routed"


class InstCreateMode(StrEnum):
    """Where the content of a new instance comes from."""

    CREATE = "create"
    IMPORT = "import"
    REMOTE_IMPORT = "remote-import"


class ExportMode(StrEnum):
    """Whether an export stays in this cluster or goes to another one."""

    LOCAL = "local"
    REMOTE = "remote"


class MigrationMode(StrEnum):
    """Whether a guest keeps running while it migrates."""

    LIVE = "live"
    NON_LIVE = "non-live"


class ReplaceDisksMode(StrEnum):
    """Which side of mirrored disks is replaced."""

    AUTO = "replace_auto"
    NEW_SECONDARY = "replace_new_secondary"
    ON_PRIMARY = "replace_on_primary"
    ON_SECONDARY = "replace_on_secondary"


class EvacMode(StrEnum):
    """Which instances are evacuated from a node."""

    ALL = "all"
    PRIMARY_ONLY = "primary-only"
    SECONDARY_ONLY = "secondary-only"


class DdmSimple(StrEnum):
    """Changes of a list that need no position."""

    ADD = "add"
    ATTACH = "attach"
    DETACH = "detach"
    REMOVE = "remove"


class DdmFull(StrEnum):
    """Changes of the disks or NICs of an instance."""

    ADD = "add"
    ATTACH = "attach"
    DETACH = "detach"
    MODIFY = "modify"
    REMOVE = "remove"


class IAllocatorTestDir(StrEnum):
    """Whether an allocator test only shows the request or also runs the allocator."""

    IN = "in"
    OUT = "out"


class IAllocatorMode(StrEnum):
    """Requests an allocator can answer."""

    ALLOCATE = "allocate"
    ALLOCATE_SECONDARY = "allocate-secondary"
    CHANGE_GROUP = "change-group"
    MULTI_ALLOCATE = "multi-allocate"
    NODE_EVACUATE = "node-evacuate"
    RELOCATE = "relocate"


class OobCommand(StrEnum):
    """Commands for the out-of-band helper of a node."""

    HEALTH = "health"
    POWER_CYCLE = "power-cycle"
    POWER_OFF = "power-off"
    POWER_ON = "power-on"
    POWER_STATUS = "power-status"


class QueryTypeOp(StrEnum):
    """Resources that can be queried by a job."""

    CLUSTER = "cluster"
    DISK = "disk"
    EXPORT = "export"
    EXTSTORAGE = "extstorage"
    FILTER = "filter"
    GROUP = "group"
    INSTANCE = "instance"
    JOB = "job"
    LOCK = "lock"
    NETWORK = "network"
    NODE = "node"
    OS = "os"


class SshKeyType(StrEnum):
    """Algorithms for SSH keys."""

    DSA = "dsa"
    ECDSA = "ecdsa"
    RSA = "rsa"


class FinalStatus(StrEnum):
    """States in which a job ends."""

    CANCELED = "canceled"
    ERROR = "error"
    SUCCESS = "success"

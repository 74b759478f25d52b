"""Words that opcode parameters accept; every value is the exact text on the wire.

Names and values are those of Ganeti, which clients send. Words that the configuration has too come
from its enumerations (``model/enums.py``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from ganeti.model.enums import (
    AdminStateSource,
    AllocPolicy,
    DiskMode,
    DiskTemplate,
    RebootType,
    TagKind,
)
from ganeti.model.enums import HypervisorName as Hypervisor

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
    "ImageFormat",
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
    """Problems that a cluster verification can report; ``CODE = "CODE", "what it means"``."""

    meaning: str

    def __new__(cls, code: str, meaning: str = "") -> Self:
        item = str.__new__(cls, code)
        item._value_ = code
        item.meaning = meaning
        return item

    ECLUSTERCERT = "ECLUSTERCERT", "a certificate or key is missing, does not fit, or expires soon"
    ECLUSTERCFG = "ECLUSTERCFG", "the configuration contradicts itself"
    ECLUSTERCLIENTCERT = (
        "ECLUSTERCLIENTCERT",
        "the client certificate of a node does not fit, or expires soon",
    )
    ECLUSTERDANGLINGINST = "ECLUSTERDANGLINGINST", "the primary node of an instance does not exist"
    ECLUSTERDANGLINGNODES = (
        "ECLUSTERDANGLINGNODES",
        "a node belongs to a node group that does not exist",
    )
    ECLUSTERFILECHECK = (
        "ECLUSTERFILECHECK",
        "a file that must be the same on nodes differs, is missing, or is where it may not be",
    )
    EEXTAGS = "EEXTAGS", "instances on one node share an exclusion tag"
    EGROUPDIFFERENTPVSIZE = (
        "EGROUPDIFFERENTPVSIZE",
        "physical volumes of a node group differ in size, with exclusive storage",
    )
    EINSTANCEBADNODE = "EINSTANCEBADNODE", "an instance should run, but its primary node is offline"
    EINSTANCEDOWN = "EINSTANCEDOWN", "an instance should run on its primary node, and does not"
    EINSTANCEFAULTYDISK = "EINSTANCEFAULTYDISK", "a disk is not active, or its mirror is incomplete"
    EINSTANCELAYOUT = (
        "EINSTANCELAYOUT",
        "the disks, nodes or state of an instance do not fit together",
    )
    EINSTANCEMISSINGCFGPARAMETER = (
        "EINSTANCEMISSINGCFGPARAMETER",
        "a parameter that the node requires is missing in an instance",
    )
    EINSTANCEMISSINGDISK = "EINSTANCEMISSINGDISK", "a disk is missing on a node"
    EINSTANCEPOLICY = (
        "EINSTANCEPOLICY",
        "an instance violates the instance policy of its node group",
    )
    EINSTANCESPLITGROUPS = (
        "EINSTANCESPLITGROUPS",
        "the nodes of an instance are in several node groups",
    )
    EINSTANCEUNSUITABLENODE = (
        "EINSTANCEUNSUITABLENODE",
        "an instance has disks that its node cannot have with exclusive storage",
    )
    EINSTANCEWRONGNODE = "EINSTANCEWRONGNODE", "a guest runs on a node where it should not"
    ENODEDRBD = "ENODEDRBD", "DRBD devices of a node do not fit the configuration"
    ENODEDRBDHELPER = (
        "ENODEDRBDHELPER",
        "the DRBD usermode helper of a node is not that of the cluster",
    )
    ENODEDRBDVERSION = "ENODEDRBDVERSION", "nodes have different versions of DRBD"
    ENODEETCD = "ENODEETCD", "the node cannot use etcd, which decides about the master"
    ENODEFILECHECK = "ENODEFILECHECK", "the node could not say what its files contain"
    ENODEFILESTORAGEPATHS = (
        "ENODEFILESTORAGEPATHS",
        "directories for file disks are forbidden or cannot be read",
    )
    ENODEFILESTORAGEPATHUNUSABLE = (
        "ENODEFILESTORAGEPATHUNUSABLE",
        "the directory of file disks cannot be used",
    )
    ENODEGLUSTERSTORAGEPATHUNUSABLE = (
        "ENODEGLUSTERSTORAGEPATHUNUSABLE",
        "the directory of Gluster disks cannot be used",
    )
    ENODEHOOKS = "ENODEHOOKS", "a hook of the verification failed on the node"
    ENODEHV = "ENODEHV", "a hypervisor of the node does not work"
    ENODELVM = "ENODELVM", "volume groups or volumes of the node are missing or damaged"
    ENODEN1 = "ENODEN1", "the node has too little memory for what may have to run on it"
    ENODENET = "ENODENET", "a bridge is missing, or the node cannot reach another one"
    ENODEFENCING = "ENODEFENCING", "a fence agent cannot be used on the node, or its watchdog"
    ENODEOOBPATH = "ENODEOOBPATH", "the out-of-band program cannot be run on the node"
    ENODEORPHANFILE = (
        "ENODEORPHANFILE",
        "a file with the name of a disk belongs to no disk, or an export was cut off",
    )
    ENODEORPHANINSTANCE = "ENODEORPHANINSTANCE", "a guest runs that no instance is known for"
    ENODEORPHANLV = "ENODEORPHANLV", "a logical volume belongs to no disk"
    ENODEOS = "ENODEOS", "OS definitions are broken, or differ between the nodes of a group"
    ENODEPACEMAKER = (
        "ENODEPACEMAKER",
        "Pacemaker decides about the master, and is not set up for it on the node",
    )
    ENODERPC = "ENODERPC", "the node does not answer"
    ENODESETUP = "ENODESETUP", "the node is not set up as it must be"
    ENODESHAREDFILESTORAGEPATHUNUSABLE = (
        "ENODESHAREDFILESTORAGEPATHUNUSABLE",
        "the directory of shared file disks cannot be used",
    )
    ENODESSH = "ENODESSH", "the master cannot log in to the node with its remote shell"
    ENODETIME = "ENODETIME", "the clock of the node differs from that of the master"
    ENODEUSERSCRIPTS = (
        "ENODEUSERSCRIPTS",
        "a program that operations run is missing or not executable",
    )
    ENODEVERSION = "ENODEVERSION", "the node runs another version"


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
    """Source of the content of a new instance."""

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


class ImageFormat(StrEnum):
    """Format of the file that an image is made from."""

    QCOW2 = "qcow2"
    RAW = "raw"
    VMDK = "vmdk"
    OVA = "ova"

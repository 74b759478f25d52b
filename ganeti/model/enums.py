"""Enumerations of the model; the values are the wire strings."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from ganeti.model.drivers import DiskTemplate as DiskTemplate
from ganeti.model.drivers import HypervisorName as HypervisorName

#: Computed template of an instance whose disks differ.
MIXED_TEMPLATE = "mixed"


class AdminState(StrEnum):
    UP = "up"
    DOWN = "down"
    OFFLINE = "offline"


class MasterVote(StrEnum):
    """Means by which the master is chosen."""

    #: the nodes, by a vote
    NODES = "nodes"
    #: an etcd cluster, by a lease
    ETCD = "etcd"
    #: Pacemaker, by the node on which it runs a resource
    PACEMAKER = "pacemaker"


class HaPolicy(StrEnum):
    """Automatic action for an instance whose node dies."""

    #: what the repair tags of the instance, its group and the cluster allow
    TAGS = "tags"
    NONE = "none"
    #: it starts again when its node is back
    RESTART = "restart"
    #: it starts elsewhere when its node is proven dead
    FAILOVER = "failover"


class AdminStateSource(StrEnum):
    """Source of the wanted state of an instance."""

    ADMIN = "admin"
    USER = "user"


class Consistency(StrEnum):
    """Consistency of the disks of an instance at the moment of a snapshot."""

    #: the instance was stopped
    CLEAN = "clean"
    #: its guest agent had written everything to the disks
    FROZEN = "frozen"
    #: what a power cut would have left
    CRASH = "crash"


class InstanceStatus(StrEnum):
    """Status in ``gnt-instance list``; compares the wanted state with the real one."""

    RUNNING = "running"
    ADMIN_DOWN = "ADMIN_down"
    ADMIN_OFFLINE = "ADMIN_offline"
    USER_DOWN = "USER_down"
    ERROR_UP = "ERROR_up"
    ERROR_DOWN = "ERROR_down"
    ERROR_WRONG_NODE = "ERROR_wrongnode"
    ERROR_NODE_DOWN = "ERROR_nodedown"
    ERROR_NODE_OFFLINE = "ERROR_nodeoffline"


class RunState(IntEnum):
    """State of an instance as a hypervisor tells it."""

    RUNNING = 0
    SHUTDOWN = 1


class MigrationState(StrEnum):
    """How far a move of a running instance is."""

    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class HotplugAction(StrEnum):
    """Change of a device of a running instance."""

    ADD = "hotadd"
    REMOVE = "hotremove"
    MODIFY = "hotmod"


class HotplugTarget(StrEnum):
    """Kind of device."""

    DISK = "hotdisk"
    NIC = "hotnic"


class LocalDisk(IntEnum):
    """``ldisk_status`` of a ``BlockDevStatus``: how the data on this node is."""

    OKAY = 0
    UNKNOWN = 1
    FAULTY = 2
    SYNCHRONISING = 3


class AllocPolicy(StrEnum):
    """Allocation policy of a node group."""

    PREFERRED = "preferred"
    LAST_RESORT = "last_resort"
    UNALLOCABLE = "unallocable"


class NicMode(StrEnum):
    BRIDGED = "bridged"
    ROUTED = "routed"
    OPENVSWITCH = "openvswitch"
    EXT = "ext"


class DiskMode(StrEnum):
    """Whether a guest may write to a disk."""

    RO = "ro"
    RW = "rw"


class NodeRole(StrEnum):
    OFFLINE = "O"
    DRAINED = "D"
    REGULAR = "R"
    CANDIDATE = "C"
    MASTER = "M"


class RebootType(StrEnum):
    """How an instance is rebooted."""

    FULL = "full"
    HARD = "hard"
    SOFT = "soft"


class TagKind(StrEnum):
    """Objects that carry tags."""

    CLUSTER = "cluster"
    DISK = "disk"
    INSTANCE = "instance"
    NETWORK = "network"
    NODE = "node"
    NODEGROUP = "nodegroup"

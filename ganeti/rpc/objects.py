"""Objects in node calls: instances and disks with all parameters filled in.

A node has no configuration, so the master annotates everything a driver needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model.enums import DiskMode, DiskTemplate, HypervisorName, LocalDisk, MigrationState
from ganeti.model.ids import DiskUuid, InstanceUuid, NetworkUuid, NodeUuid

#: How new a right to run an instance is: the master's term, and a number that grows within it.
RunNumber = tuple[int, int]


#: Key of ``NodeDisk.dynamic_params`` of a logical volume that is to be made: sizes in MiB of the
#: volumes that follow it in its group, in sets that belong close together. The volume itself
#: belongs to the first set.
BATCH = "batch"


class NodeDisk(msgspec.Struct, kw_only=True, frozen=True):
    """A disk for the node side; ``params`` are complete logical parameters of its template."""

    uuid: DiskUuid
    dev_type: DiskTemplate
    logical_id: tuple[Any, ...]
    children: tuple[NodeDisk, ...] = ()
    nodes: tuple[NodeUuid, ...] = ()
    iv_name: Annotated[str, msgspec.Meta(pattern=r"^(disk/[0-9]{1,4})?\Z")] = ""
    #: MiB
    size: int
    mode: DiskMode = DiskMode.RW
    name: str | None = None
    spindles: int | None = None
    #: most reads and writes of the guest in a second, and MiB; 0: no limit
    max_iops: int = 0
    max_bandwidth: int = 0
    params: JsonObject = {}
    #: what only holds on the node that is asked (DRBD addresses and minor)
    dynamic_params: JsonObject = {}

    @property
    def index(self) -> int:
        """Position in the instance, from ``iv_name`` (``disk/3`` -> 3).

        Raises:
            ParameterError: the disk has none, as one that belongs to no instance.
        """
        if not self.iv_name:
            raise errors.ParameterError(
                f"disk {self.uuid} has no position in an instance (iv_name)"
            )
        return int(self.iv_name.rpartition("/")[2])


class PlacedDisk(NodeDisk, kw_only=True, frozen=True):
    """A disk as the master knows it: with what holds on each of its nodes.

    A node gets it as :class:`NodeDisk` with its own part of this, see :func:`localised`.
    """

    #: node uuid -> dynamic_params there
    places: dict[str, JsonObject] = {}


class NodeNic(msgspec.Struct, kw_only=True, frozen=True):
    """A NIC with complete parameters (mode, link, vlan)."""

    uuid: str
    mac: str
    ip: str | None = None
    name: str | None = None
    network: NetworkUuid | None = None
    nicparams: JsonObject = {}
    #: the network object in its configuration form, when the NIC has one
    netinfo: JsonObject | None = None


class NodeInstance(msgspec.Struct, kw_only=True, frozen=True):
    """An instance for the node side; all parameter sets are complete."""

    uuid: InstanceUuid
    name: str
    primary_node: NodeUuid
    secondary_nodes: tuple[NodeUuid, ...] = ()
    os: str = ""
    hypervisor: HypervisorName
    hvparams: JsonObject = {}
    beparams: JsonObject = {}
    osparams: JsonObject = {}
    nics: tuple[NodeNic, ...] = ()
    disks_info: tuple[NodeDisk, ...] = ()
    admin_state: str = "down"
    network_port: int | None = None
    ctime: float = 0.0
    mtime: float = 0.0
    serial_no: int = 1
    tags: tuple[str, ...] = ()
    #: set for calls that grant or use the run right of the instance; (0, 0): none
    run_epoch: RunNumber = (0, 0)
    #: files for the disk that cloud-init reads (name -> content); they may have secrets
    seed: dict[str, str] = {}

    def backend(self, name: str, default: int | None = None) -> int:
        """A backend parameter that is an integer, such as ``maxmem`` (MiB) or ``vcpus``.

        Raises:
            ParameterError: it is missing and has no default, or it is something else.
        """
        value = self.beparams.get(name, default)
        if type(value) is not int:
            raise errors.ParameterError(
                f"instance {self.name}: the backend parameter {name} must be an integer,"
                f" not {value!r:.60}"
            )
        return value


class InstanceMetadata(msgspec.Struct, kw_only=True, frozen=True):
    """Metadata for a guest, on its node; parameters of the OS by who else may see them."""

    uuid: InstanceUuid
    name: str
    os: str = ""
    nics: tuple[NodeNic, ...] = ()
    osparams_public: JsonObject = {}
    osparams_private: JsonObject = {}
    #: those that the socket of the daemon was told; the master keeps none
    osparams_secret: JsonObject = {}


class RightState(StrEnum):
    """States of a run right: what the node may do with the instance."""

    #: may run it, nobody else may
    HERE = "here"
    #: runs it, and is handing it to another node that may run it from some moment on
    LEAVING = "leaving"
    #: gets it from another node that still may run it
    ARRIVING = "arriving"
    #: must not run it before a newer right says so
    GONE = "gone"


class RunRight(msgspec.Struct, kw_only=True, frozen=True):
    """Durable record of a node about its right to run an instance.

    Of all nodes at most one has ``here``, or one has ``leaving`` and another one ``arriving``.
    """

    uuid: InstanceUuid
    name: str
    epoch: RunNumber
    state: RightState
    #: name of the other node while the instance is on its way
    peer: str = ""


class BlockDevStatus(msgspec.Struct, kw_only=True):
    """State of an assembled disk on one node."""

    dev_path: str
    major: int = 0
    minor: int = 0
    #: percent done, None when nothing is being synchronised
    sync_percent: float | None = None
    #: seconds left, None when unknown
    estimated_time: int | None = None
    is_degraded: bool = False
    #: one of :class:`LocalDisk`
    ldisk_status: int = LocalDisk.OKAY


class InstanceInfo(msgspec.Struct, kw_only=True):
    """Facts about one instance from its hypervisor: memory in MiB, CPU seconds."""

    memory: int
    vcpus: int
    #: 0 running, 1 shut down from inside
    state: int
    time: float = 0.0


class MigrationStatus(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How far a migration is, as its source tells. Bytes, but where something else is said."""

    status: MigrationState
    transferred_ram: int | None = None
    total_ram: int | None = None
    #: whether the guest runs at the target already and fetches the rest of its memory from here
    postcopy_status: bool | None = None
    #: still to be sent, as of now; a guest that writes makes it grow
    remaining_ram: int | None = None
    #: seconds until the end at the present speed, None when the guest writes as fast as that
    eta: float | None = None
    #: ms the guest was paused, known at the end
    downtime: int | None = None
    #: ms since the beginning
    total_time: int | None = None
    #: why it failed
    error: str | None = None


class DiskProgress(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How far a disk of a running guest is that is sent to another node, in bytes."""

    uuid: DiskUuid
    #: what was sent; blocks that the guest wrote again were sent again
    done: int
    #: still to be sent, as of now
    left: int
    #: whether all was sent once, so that only what the guest writes now is left
    ready: bool = False
    #: why it will not arrive
    error: str | None = None


class CopyStatus(msgspec.Struct, kw_only=True):
    """How far a copy of a disk's content is, in bytes."""

    size: int
    done: int
    #: of those, what was not written: zeros, or what was there already
    zeros: int
    ended: bool


class ImportExportOptions(msgspec.Struct, kw_only=True, frozen=True):
    """How two ends of a transfer recognise each other."""

    #: key of this end, None for that of its node
    key_name: str | None = None
    #: certificate of the other end (PEM), None for any node of the cluster
    ca_pem: str | None = None
    compress: str = "none"
    #: what the sender says first
    magic: str | None = None
    ipv6: bool = False
    #: seconds until the ends must have found each other
    connect_timeout: int | None = None


class ImportExportStatus(msgspec.Struct, kw_only=True):
    """How far the transfer of a dump is."""

    #: last lines of what its programs wrote
    recent_output: list[str] = []
    #: of the end that waits
    listen_port: int | None = None
    connected: bool = False
    progress_mbytes: float | None = None
    #: MiB/s
    progress_throughput: float | None = None
    #: seconds left
    progress_eta: float | None = None
    progress_percent: float | None = None
    #: None while it continues, 0 when all has arrived
    exit_status: int | None = None
    error_message: str | None = None
    ctime: float = 0.0
    mtime: float = 0.0


class JobLogLine(msgspec.Struct, kw_only=True):
    """Line that a daemon of a node logged about a job."""

    #: seconds since 1970
    time: float
    program: str
    level: str
    text: str


class JobLog(msgspec.Struct, kw_only=True):
    """The lines of a node about a job."""

    lines: list[JobLogLine]
    #: whether older ones are left out
    cut: bool


class VersionState(msgspec.Struct, kw_only=True):
    """The versions of this software on a node, as ``X.Y``."""

    #: version of the node daemon, and its release (``X.Y.Z``)
    running: str
    release: str
    #: version that the link of the node leads to; empty without one
    active: str
    installed: list[str]
    #: whether the node is being switched to another version now
    switching: bool = False
    #: why the last switch failed
    problem: str = ""


class Console(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How to reach the console of an instance."""

    instance: str
    #: ssh, vnc, spice or msg
    kind: str
    message: str | None = None
    host: str | None = None
    port: int | None = None
    user: str | None = None
    #: argv for ssh consoles
    command: list[str] | None = None
    display: int | None = None


class OsInfo(msgspec.Struct, kw_only=True):
    """One OS definition found on a node."""

    name: str
    path: str
    valid: bool
    diagnose: str
    variants: list[str]
    #: (name, description)
    parameters: list[tuple[str, str]]
    api_versions: list[int]
    #: the only ones that it is made for; empty: all
    hypervisors: list[str] = []
    trusted: bool = True


class ExtStorageInfo(msgspec.Struct, frozen=True, array_like=True):
    """A provider of external storage found on a node; ``parameters`` are (name, description)."""

    name: str
    path: str
    valid: bool
    diagnose: str
    parameters: Sequence[tuple[str, str]] = ()


class MasterNetwork(msgspec.Struct, kw_only=True, frozen=True):
    """The address of the cluster, as the master node carries it."""

    #: uuid of the master node
    uuid: NodeUuid
    ip: str
    #: prefix length
    netmask: int
    netdev: str
    #: 2 (IPv4) or 10 (IPv6)
    ip_family: int = 2


def localised(value: object, node: str) -> Any:
    """A value (arguments of a call) as the node with this uuid gets it.

    Placed disks in it, at any depth, become disks with the node's own ``dynamic_params``. The
    same object comes back when there are none.
    """
    if isinstance(value, NodeInstance):
        disks = localised(value.disks_info, node)
        unchanged = disks is value.disks_info
        return value if unchanged else msgspec.structs.replace(value, disks_info=disks)
    if isinstance(value, PlacedDisk):
        fields = {name: getattr(value, name) for name in NodeDisk.__struct_fields__}
        fields["children"] = localised(value.children, node)
        fields["dynamic_params"] = value.places.get(node, {})
        return NodeDisk(**fields)
    if isinstance(value, list | tuple):
        items = [localised(item, node) for item in value]
        if all(new is old for new, old in zip(items, value)):
            return value
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        table = {key: localised(item, node) for key, item in value.items()}
        return value if all(table[key] is value[key] for key in value) else table
    return value

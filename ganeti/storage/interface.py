"""The contract of a disk template's driver.

Callers ask :class:`Traits`, never a driver's name. A driver splits its work into building an
argument list (pure), parsing output (pure) and running.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.model.ids import DiskUuid, NodeUuid
from ganeti.paths import Paths
from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.storage import measure


@dataclass(frozen=True)
class Traits:
    """The abilities of a template; facts, not behaviour."""

    #: data is kept on more than one node by the template itself (DRBD)
    mirrored: bool = False
    #: every node sees the same data (so any node can start the instance)
    shared: bool = False
    #: disks are files below an allowed directory
    file_based: bool = False
    #: storage type whose free space limits new disks; None: not checked
    space_checked_as: str | None = None
    growable: bool = True
    may_adopt: bool = False
    must_adopt: bool = False
    #: a disk may have keys that only its template knows, see ``PlanRequest.options``
    takes_options: bool = False
    #: new space may show what somebody else had there
    holds_old_data: bool = False
    #: only :meth:`Device.attach` finds out the device, and so ``path``
    found_by_attach: bool = False
    #: number of nodes an instance with such disks needs
    nodes_needed: int = 1
    #: names of the parts of a logical id; hooks get the first one as ``INSTANCE_DISK0_<NAME>``
    id_parts: tuple[str, ...] = ("driver", "path")
    #: template of the disks that one is built on; data of such a disk is kept when it is converted
    built_on: str | None = None
    #: MiB that a disk takes beside its data
    overhead: int = 0
    #: setting of the cluster with the directory that holds the disks; empty: none is needed
    directory: str = ""

    @property
    def is_volume(self) -> bool:
        """Whether a disk is a logical volume."""
        return self.id_parts == ("vg", "volume")


_UNKNOWN_NODE = NodeUuid("")


@dataclass(frozen=True)
class Environment:
    """The facts that a driver has of its node."""

    paths: Paths
    #: uuid of this node
    node_uuid: NodeUuid = _UNKNOWN_NODE
    #: directories that may hold file disks (file-storage-paths; those of the cluster without it)
    file_roots: tuple[Path, ...] = ()
    #: where the Gluster volume is mounted
    gluster_dir: Path = Path("/var/run/ganeti/gluster")
    #: each disk has its physical volumes for itself (node parameter ``exclusive_storage``)
    exclusive_storage: bool = False


@dataclass(frozen=True)
class MirrorPlace:
    """Settings that two nodes that mirror a disk have in common."""

    #: device numbers, in the order of the nodes
    minors: tuple[int, int]
    secret: str = field(repr=False)
    #: TCP port on both nodes; 0: given when the disk is put into the configuration
    port: int = 0


@dataclass(frozen=True)
class ChildPlan:
    """A disk below a planned one."""

    dev_type: str
    logical_id: tuple[str, ...]
    #: MiB
    size: int


@dataclass(frozen=True)
class PlanRequest:
    """Request to plan a disk: everything a name may be made of."""

    instance_name: str
    disk_uuid: DiskUuid
    index: int
    size: int
    #: uuids, primary first
    nodes: Sequence[str]
    file_driver: str = "loop"
    #: directory for file disks, already checked by the operation
    file_dir: str = ""
    #: volume groups of the data and of a mirror's metadata
    vg: str = ""
    metavg: str = ""
    #: what exists already and becomes the disk; empty: a new one is made
    adopt: str = ""
    #: keys that only the template knows, and ``access`` if it is given
    options: Mapping[str, str] = field(default_factory=dict)
    #: for mirrored disks
    mirror: MirrorPlace | None = None


class Device(ABC):
    """One disk on this node. All methods are idempotent and block until the tool is done.

    Raises (all methods): BlockDeviceError with the tool's own words; FileStoragePathError for a
    path outside the allowed directories.
    """

    traits: ClassVar[Traits]
    params: ClassVar[type[msgspec.Struct]]

    def __init__(self, disk: NodeDisk, env: Environment) -> None:
        self.disk = disk
        self.env = env

    @property
    @abstractmethod
    def path(self) -> str:
        """Device or file that holds the bytes; valid when :meth:`attach` returns it."""

    def uri(self) -> str | None:
        """Address for a hypervisor that reaches the data by itself, None when there is none."""
        return None

    @abstractmethod
    def create(self, size: int, *, info: str = "") -> None:
        """Make the disk with ``size`` MiB; BlockDeviceError when it exists or space is short."""

    @abstractmethod
    def remove(self) -> None:
        """Destroy the disk and its data; no error when it is not there."""

    @abstractmethod
    def attach(self) -> bool:
        """Whether the disk exists on this node; changes nothing."""

    def is_active(self) -> bool:
        """Whether the disk can be asked for its state; changes nothing."""
        return self.attach()

    def size(self) -> int:
        """Bytes that a guest sees; BlockDeviceError when that cannot be told."""
        return measure.device_size(self.path)

    @abstractmethod
    def assemble(self) -> None:
        """Make the disk ready for use."""

    @abstractmethod
    def shutdown(self) -> None:
        """Undo :meth:`assemble`; the data stays."""

    @abstractmethod
    def open(self, *, exclusive: bool = True) -> None:
        """Allow writing on this node."""

    @abstractmethod
    def close(self) -> None:
        """Forbid writing on this node."""

    @abstractmethod
    def grow(self, amount: int, *, dry_run: bool = False) -> None:
        """Add ``amount`` MiB."""

    @abstractmethod
    def status(self) -> BlockDevStatus:
        """State of the disk; BlockDeviceError when it is not there."""

    @classmethod
    @abstractmethod
    def plan(cls, request: PlanRequest) -> tuple[str | int, ...]:
        """The ``logical_id`` of a new disk; pure."""

    @classmethod
    def plan_copy(cls, logical_id: Sequence[str], name: str) -> tuple[str, ...]:
        """The logical id of a copy of the disk that is kept beside it under a name; pure."""
        return (*logical_id[:-1], name)

    @classmethod
    def plan_children(cls, request: PlanRequest) -> tuple[ChildPlan, ...]:
        """Disks that a new one is built on; pure."""
        return ()

    @classmethod
    def plan_params(cls, request: PlanRequest) -> JsonObject:
        """Parameters that only this disk has, kept with it; pure."""
        return {}

    @classmethod
    def node_params(cls, params: JsonObject) -> tuple[JsonObject, tuple[JsonObject, ...]]:
        """Complete parameters as nodes get them: of the disk, and of each of its children.

        Children that are not in the second part have the parameters of their own template.
        """
        return params, ()


@runtime_checkable
class Renamable(Protocol):
    """A disk that can get another logical id without copying."""

    def rename(self, new_id: Sequence[str]) -> None: ...


@runtime_checkable
class Snapshotting(Protocol):
    """A disk that can freeze a copy of its content, in a moment and without reading it."""

    def snapshot(self, name: str, size: int) -> tuple[str, ...]:
        """Make the copy, with ``size`` MiB for what changes later (0: as large as the disk).

        ``name`` empty: the driver makes one. Returns the logical id of the copy, which is that of
        :meth:`Device.plan_copy`.
        """


@runtime_checkable
class Labelled(Protocol):
    """A disk that carries a text for the administrator beside its data."""

    def set_info(self, text: str) -> None: ...


@runtime_checkable
class Resyncing(Protocol):
    """A mirrored disk whose synchronisation can be held up."""

    def pause_resync(self, pause: bool) -> None: ...


@runtime_checkable
class Mirrored(Protocol):
    """One side of a disk whose other side is on another node."""

    def begin(self, *, on_primary: bool) -> None:
        """First use of a new disk: activate it; the primary's content becomes that of both."""

    def connect_and_wait(self, *, two_primaries: bool, seconds: int) -> None:
        """Look for the other side until it answers; BlockDeviceError after ``seconds``."""

    def disconnect(self) -> None:
        """Disconnect from the other side; no error when the disk is not active."""

    def needs_activation(self) -> bool:
        """Whether it is not active, or works without its own data or its other side for good."""

    def progress(self, seconds: int) -> tuple[bool, float]:
        """Whether nothing is being synchronised, and percent done; waits for the other side."""

    def attach_children(self, children: Sequence[NodeDisk]) -> None:
        """Give a side that lost its disks new ones, which the other side then fills."""

    def detach_children(self, children: Sequence[NodeDisk]) -> None:
        """Go on without its disks."""


@runtime_checkable
class Spindled(Protocol):
    """A disk that knows on how many physical disks it lies."""

    def spindles(self) -> int | None: ...

"""The contract of a hypervisor driver: twelve methods. ``abilities`` has the rest.

Callers ask :class:`Traits` and the protocols, never a driver's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.model.enums import Consistency
from ganeti.model.ids import DiskUuid
from ganeti.paths import Paths
from ganeti.rpc.objects import Console, InstanceInfo, NodeDisk, NodeInstance

HvParams = Mapping[str, Any]


@dataclass(frozen=True)
class Traits:
    """The abilities of a hypervisor; facts, not behaviour."""

    can_migrate: bool = False
    #: instances run as real guests with a console of their own
    has_console: bool = True
    #: parameters that are set for the cluster only
    global_params: frozenset[str] = frozenset()
    #: parameters that name a program which the hypervisor runs on the node; empty: none
    scripts: frozenset[str] = frozenset()
    #: NICs of mode ``bridged`` are put into a bridge of the node
    joins_bridges: bool = True
    #: instances need a TCP port for their display
    needs_port: bool = False
    #: opens disks by an address, without a device on the node (disk parameter ``access``)
    opens_addresses: bool = False
    #: guests get the files of ``NodeInstance.seed`` on a disk of their own
    seeds: bool = False
    #: keeps guests to the limits ``max_iops`` and ``max_bandwidth`` of their disks
    limits_disks: bool = False
    #: sends disks of a node with a guest that migrates
    sends_disks: bool = False
    #: lets other disks take the place of those that a running guest has
    converts_disks: bool = False
    #: parameters of a guest that boots its first disk, prints on a serial console, and ends when it
    #: restarts; empty: the hypervisor has no helper guests
    helper_params: Mapping[str, object] = field(default_factory=dict)
    #: parameters of a guest that is started from a copy of its disks, to see whether it boots; its
    #: devices reach nothing of the node. Empty: the hypervisor does not start copies
    copy_params: Mapping[str, object] = field(default_factory=dict)
    #: link of a NIC of mode ``ext`` by which such a guest reaches nobody
    isolated_link: str = ""


@dataclass(frozen=True)
class ConsoleLine:
    """Access to a console of a guest on its node: a socket, an address or a program."""

    socket: Path | None = None
    #: address and port of a TCP server of the hypervisor
    tcp: tuple[str, int] | None = None
    #: program that shows the console on its terminal
    argv: tuple[str, ...] = ()
    #: file to which the hypervisor writes what the guest prints
    log: Path | None = None


@dataclass(frozen=True)
class AttachedDisk:
    """An assembled disk with what a guest gets of it."""

    disk: NodeDisk
    #: device or file
    path: str
    #: address that the hypervisor opens by itself, or None
    uri: str | None = None
    #: other nodes may read the data at the same time
    shared: bool = False


@dataclass(frozen=True)
class FrozenDisk:
    """A disk of a running guest as it was at one moment, served by NBD."""

    uuid: DiskUuid
    #: bytes
    size: int
    socket: Path
    export: str
    #: name of the exported bitmap of what was written since the last moment; None: not known
    bitmap: str | None


@dataclass(frozen=True)
class Moment:
    """All disks of a running guest as they were at one moment."""

    disks: list[FrozenDisk]
    consistency: Consistency


@dataclass(frozen=True)
class NodeInfo:
    """Memory in MiB and processors of a node, as this hypervisor sees them."""

    memory_total: int
    memory_free: int
    memory_dom0: int
    cpu_total: int
    cpu_nodes: int
    cpu_sockets: int
    cpu_dom0: int = 0
    hv_version: tuple[int, ...] | None = None


class Hypervisor(ABC):
    """One hypervisor on this node.

    Raises (all methods): HypervisorError with the tool's own words. Every method is bounded in
    time. The state of what runs is kept in files below ``paths.run`` or in the hypervisor itself,
    so that a restarted node daemon finds everything again.
    """

    traits: ClassVar[Traits]
    params: ClassVar[type[msgspec.Struct]]

    def __init__(self, paths: Paths) -> None:
        self.paths = paths

    @abstractmethod
    def start(
        self, instance: NodeInstance, disks: Sequence[AttachedDisk], *, paused: bool = False
    ) -> None:
        """Start a guest; returns when it runs. HypervisorError when it runs already."""

    @abstractmethod
    def stop(self, name: str, *, force: bool = False, timeout: float = 0) -> None:
        """Ask a guest to stop and wait up to ``timeout`` seconds; with ``force`` end it now.

        Returns whether or not it stopped: ask :meth:`info`. No error when it does not run.
        """

    @abstractmethod
    def reboot(self, instance: NodeInstance, disks: Sequence[AttachedDisk]) -> None:
        """Reset a running guest without ending its process (soft reboot)."""

    @abstractmethod
    def cleanup(self, name: str) -> None:
        """Remove what a guest that no longer runs left behind. Idempotent."""

    @abstractmethod
    def list_names(self) -> list[str]:
        """Names of the guests known to run here."""

    @abstractmethod
    def info(self, name: str) -> InstanceInfo | None:
        """State of one guest, None when it does not run here."""

    @abstractmethod
    def info_all(self) -> dict[str, InstanceInfo]:
        """State of all guests."""

    @abstractmethod
    def node_info(self, params: HvParams) -> NodeInfo:
        """Resources of the node."""

    @abstractmethod
    def verify(self, params: HvParams) -> str | None:
        """None when the hypervisor can be used here, else what is missing and how to cure it."""

    @abstractmethod
    def check_params(self, params: HvParams) -> None:
        """Check complete parameters on this node (files that must exist); HypervisorError."""

    @abstractmethod
    def console(self, instance: NodeInstance, node_name: str, params: HvParams) -> Console:
        """How to reach the console of a guest."""

    def console_lines(self, instance: NodeInstance, params: HvParams) -> dict[str, ConsoleLine]:
        """Consoles that can be shown in a browser: ``serial`` and ``vnc``; none by default."""
        return {}

    @classmethod
    def defaults(cls) -> JsonObject:
        """Builtin values of all parameters."""
        return msgspec.structs.asdict(cls.params())

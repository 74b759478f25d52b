"""Facts about a server, as the checks judge them. Needs no library of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Stage(StrEnum):
    """How far this server has become a part of a cluster."""

    BARE = "bare"
    #: some files of a cluster are there, others are missing
    PARTIAL = "partial"
    NODE = "node"
    MASTER = "master"


@dataclass(frozen=True)
class Wish:
    """Needs of the cluster on this server. None: not stated."""

    hypervisors: Mapping[str, Mapping[str, object]] | None = None
    templates: tuple[str, ...] | None = None
    volume_group: str | None = None
    helper: str | None = None
    bridges: tuple[str, ...] = ()
    #: device that carries the address of the cluster
    device: str | None = None


# software ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Library:
    """A library that the programs need."""

    name: str
    #: lowest version, empty when any will do
    lowest: str
    #: None: not installed
    version: str | None
    #: why it cannot be imported; empty when it can
    problem: str = ""


@dataclass(frozen=True)
class Package:
    """A package of Debian."""

    name: str
    version: str
    #: ``db:Status-Abbrev`` of dpkg-query: wanted and actual state, error
    status: str


@dataclass(frozen=True)
class Software:
    python: tuple[int, int, int]
    executable: str
    libraries: tuple[Library, ...] = ()
    packages: tuple[Package, ...] = ()
    #: programs that are in the path
    programs: frozenset[str] = frozenset()
    #: version of the configuration that is here, such as 3000000; None without one
    configuration: int | None = None
    #: version that the cluster says it runs; None without a cluster
    release: str | None = None


# kernel -----------------------------------------------------------------------------------------


class Module(StrEnum):
    """State of a module of the kernel."""

    LOADED = "loaded"
    AVAILABLE = "available"
    MISSING = "missing"


@dataclass(frozen=True)
class Kernel:
    release: str
    modules: Mapping[str, Module] = field(default_factory=dict)
    #: whether the processor shows instructions for virtual machines (vmx or svm)
    virtualization: bool = False
    #: version of the loaded DRBD module; None when it is not loaded
    drbd: str | None = None
    #: why that version is not handled; empty when it is
    drbd_problem: str = ""
    helper: str | None = None
    #: what is missing for a wanted hypervisor, in the words of its driver
    hypervisors: Mapping[str, str | None] = field(default_factory=dict)


# network ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Port:
    """A port that a daemon needs, and the process that holds it."""

    daemon: str
    number: int
    protocol: str
    #: pid and program of another process that holds it; None when it is free, or a daemon of ours
    pid: int | None = None
    program: str = ""
    occupied: bool = False


@dataclass(frozen=True)
class Peer:
    """Another node of the cluster, as seen from here."""

    name: str
    #: address in the configuration
    address: str
    #: address that the name has here; None when it has none
    resolved: str | None
    #: why its node daemon does not answer; empty when it does
    problem: str = ""
    #: seconds that its clock is ahead of this one; None when it did not tell
    ahead: float | None = None


@dataclass(frozen=True)
class Network:
    host: str
    #: address of the host's name; None when it has none
    address: str | None
    #: whether the address is on a device of this server
    own: bool = True
    #: name that the address has; None when it has none
    reverse: str | None = None
    #: address that others would see
    outward: str | None = None
    #: whether this is a node in a directory, where names and addresses of 127/8 are right
    rooted: bool = False
    #: wanted bridges that are missing
    missing_bridges: tuple[str, ...] = ()
    #: whether the device for the address of the cluster is there
    device_exists: bool = True
    ports: tuple[Port, ...] = ()
    #: whether something takes connections on the SSH port
    ssh: bool = True
    peers: tuple[Peer, ...] = ()


# storage ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Space:
    """Room in the file system of a directory."""

    path: str
    #: bytes that root may still write
    free: int
    #: files that can still be made; None where the file system has no limit
    files: int | None
    read_only: bool = False


@dataclass(frozen=True)
class Storage:
    #: free bytes of each volume group; None when LVM cannot tell
    groups: Mapping[str, int] | None = None
    #: why LVM cannot tell
    problem: str = ""
    spaces: tuple[Space, ...] = ()


# the node ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A directory of the daemons, or a file with a secret."""

    path: str
    mode: int
    uid: int
    directory: bool
    #: whether the path should be a directory
    wanted_directory: bool


@dataclass(frozen=True)
class Certificate:
    path: str
    #: ``ok``, ``warning`` or ``error``, as expiry is judged
    level: str
    text: str


@dataclass(frozen=True)
class Membership:
    """The server as a node: users, files, daemons, time."""

    stage: Stage
    #: files of a cluster that are missing, in a partial one
    missing: tuple[str, ...] = ()
    #: commands that create missing users and groups; None where daemons have no users
    users: tuple[str, ...] | None = None
    files: tuple[File, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    #: uid of the user that the daemons belong to
    owner: int = 0
    #: whether a timer or a line of cron starts the watcher; None where none should
    watcher: bool | None = None
    #: until when the watcher is paused (Unix time); None: it is not
    paused: float | None = None
    systemd: bool = False
    #: units that do not start after a reboot
    disabled: tuple[str, ...] = ()
    #: daemons that belong here and do not run
    stopped: tuple[str, ...] = ()
    #: those of them without which the node works
    optional: frozenset[str] = frozenset()
    #: whether the kernel's clock follows a source of time; None when it cannot tell
    synchronized: bool | None = None

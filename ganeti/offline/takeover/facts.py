"""Facts about a node of the other software: plain values, as the module ``look`` reads them."""

from __future__ import annotations

from typing import Any

import msgspec


class Guest(msgspec.Struct, frozen=True, kw_only=True):
    """A guest of QEMU, by its files in the run directory."""

    name: str
    #: its process, None when that has ended
    pid: int | None = None
    #: seconds since 1970
    started: float = 0.0
    #: command line of the process
    argv: tuple[str, ...] = ()
    #: content of its runtime file; None: there is none
    record: str | None = None
    #: whether that is of the other software
    foreign: bool = False
    #: network interface by index of the NIC
    taps: dict[int, str] = {}
    #: whether its control socket is there
    socket: bool = True


class Job(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    ended: bool


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A file that belongs to nobody whom the node knows."""

    path: str
    uid: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    host: str
    #: as the files say, empty: they do not
    cluster: str = ""
    master: str = ""
    #: content of ``config.data``; None on nodes without one
    config: Any = None
    #: why it cannot be read
    config_error: str = ""
    jobs: tuple[Job, ...] = ()
    #: running daemons of the other software -> process
    daemons: dict[str, int] = {}
    #: running daemons of this software -> process
    own_daemons: dict[str, int] = {}
    #: TCP port -> who listens, as ``ganeti-noded (process 812)``
    listeners: dict[int, str] = {}
    guests: tuple[Guest, ...] = ()
    #: network interfaces of the node
    interfaces: tuple[str, ...] = ()
    #: paths of devices and files of disks that are there
    devices: tuple[str, ...] = ()
    #: names of the OS definitions that this software finds here
    systems: tuple[str, ...] = ()
    strangers: tuple[Owner, ...] = ()
    #: whether the data directory is a file system of its own
    mounted: bool = False
    #: exports that lie where only the other software looks for them
    exports: tuple[str, ...] = ()
    #: files that are set aside, as they would do something else here
    scripts: tuple[str, ...] = ()
    #: options of daemons that an administrator has set -> value
    options: dict[str, str] = {}
    #: installed packages of the other software -> version
    packages: dict[str, str] = {}

    @property
    def is_master(self) -> bool:
        return bool(self.master) and self.master == self.host

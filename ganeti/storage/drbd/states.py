"""States of a DRBD device: the words of the kernel, and one observation of a device."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ganeti.model.enums import LocalDisk


class Connection(StrEnum):
    """Connection states in the kernel's order; those from Connected on have a peer."""

    STANDALONE = "StandAlone"
    DISCONNECTING = "Disconnecting"
    UNCONNECTED = "Unconnected"
    TIMEOUT = "Timeout"
    BROKEN_PIPE = "BrokenPipe"
    NETWORK_FAILURE = "NetworkFailure"
    PROTOCOL_ERROR = "ProtocolError"
    TEAR_DOWN = "TearDown"
    WAITING = "WFConnection"
    REPORTING = "WFReportParams"
    CONNECTED = "Connected"
    STARTING_SYNC_S = "StartingSyncS"
    STARTING_SYNC_T = "StartingSyncT"
    BITMAP_S = "WFBitMapS"
    BITMAP_T = "WFBitMapT"
    SYNC_UUID = "WFSyncUUID"
    SYNC_SOURCE = "SyncSource"
    SYNC_TARGET = "SyncTarget"
    VERIFY_S = "VerifyS"
    VERIFY_T = "VerifyT"
    PAUSED_SYNC_S = "PausedSyncS"
    PAUSED_SYNC_T = "PausedSyncT"
    AHEAD = "Ahead"
    BEHIND = "Behind"

    @property
    def has_peer(self) -> bool:
        return _ORDER[self] >= _ORDER[Connection.CONNECTED]

    @property
    def is_resync(self) -> bool:
        """Data is being, or about to be, brought up to date, in one direction or the other."""
        return self.has_peer and self not in (
            Connection.CONNECTED,
            Connection.VERIFY_S,
            Connection.VERIFY_T,
        )

    @property
    def is_paused(self) -> bool:
        return self in (Connection.PAUSED_SYNC_S, Connection.PAUSED_SYNC_T)


_ORDER = {state: position for position, state in enumerate(Connection)}


class DiskState(StrEnum):
    """State of the data of one side."""

    DISKLESS = "Diskless"
    ATTACHING = "Attaching"
    DETACHING = "Detaching"
    FAILED = "Failed"
    NEGOTIATING = "Negotiating"
    INCONSISTENT = "Inconsistent"
    OUTDATED = "Outdated"
    UNKNOWN = "DUnknown"
    CONSISTENT = "Consistent"
    UP_TO_DATE = "UpToDate"

    @property
    def has_disk(self) -> bool:
        return self not in (DiskState.DISKLESS, DiskState.FAILED, DiskState.DETACHING)


class Role(StrEnum):
    PRIMARY = "Primary"
    SECONDARY = "Secondary"
    UNKNOWN = "Unknown"


class Endpoint(NamedTuple):
    """One end of the replication link."""

    address: str
    port: int

    @property
    def word(self) -> str:
        """As drbdsetup takes it."""
        if ":" in self.address:
            return f"ipv6:[{self.address}]:{self.port}"
        return f"ipv4:{self.address}:{self.port}"


@dataclass(frozen=True)
class Live:
    """State of a device at one moment, as the kernel reports it."""

    connection: Connection = Connection.STANDALONE
    role: Role = Role.SECONDARY
    peer_role: Role = Role.UNKNOWN
    disk: DiskState = DiskState.DISKLESS
    peer_disk: DiskState = DiskState.UNKNOWN
    #: KiB that differ from the peer
    out_of_sync: int = 0
    #: percent of a running resync, and seconds and KiB/s as the kernel guesses
    percent: float | None = None
    seconds_left: int | None = None
    rate: int | None = None

    @property
    def is_mirrored(self) -> bool:
        """Both sides have the same, current data and stay so."""
        return (
            self.connection is Connection.CONNECTED
            and self.disk is DiskState.UP_TO_DATE
            and self.peer_disk is DiskState.UP_TO_DATE
        )

    def __str__(self) -> str:
        return (
            f"cs:{self.connection} ro:{self.role}/{self.peer_role} ds:{self.disk}/{self.peer_disk}"
        )


@dataclass(frozen=True)
class Setup:
    """How a device is set up: what was given to the kernel."""

    resource: str
    minor: int
    data: str | None = None
    meta: str | None = None
    local: Endpoint | None = None
    remote: Endpoint | None = None
    secret: str | None = field(default=None, repr=False)
    two_primaries: bool = False


@dataclass(frozen=True)
class Wish:
    """How a device should be set up, whatever it is now."""

    minor: int
    data: str
    meta: str
    #: MiB; 0: as much as the volumes have
    size: int
    local: Endpoint
    remote: Endpoint
    secret: str = field(repr=False)
    protocol: str = "C"
    disk_options: tuple[str, ...] = ()
    net_options: tuple[str, ...] = ()


def judge_local_disk(live: Live) -> LocalDisk:
    """How good the data of this side is."""
    if live.disk is DiskState.UP_TO_DATE:
        return LocalDisk.OKAY
    if live.connection.is_resync and live.disk is DiskState.INCONSISTENT:
        return LocalDisk.SYNCHRONISING
    if live.disk in (DiskState.UNKNOWN, DiskState.ATTACHING, DiskState.NEGOTIATING):
        return LocalDisk.UNKNOWN
    return LocalDisk.FAULTY

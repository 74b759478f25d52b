"""Measurements by nodes of themselves and of their guests, as calls return them."""

from __future__ import annotations

import msgspec


class GuestCounters(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Counters of a guest since it began. Bytes and numbers; None: the driver cannot tell."""

    #: seconds of processor time
    cpu: float
    #: memory that it has now
    memory: int
    disk_read: int | None = None
    disk_write: int | None = None
    disk_read_ops: int | None = None
    disk_write_ops: int | None = None
    #: as the guest sees it
    net_receive: int | None = None
    net_send: int | None = None
    net_receive_ops: int | None = None
    net_send_ops: int | None = None


class HostCounters(GuestCounters, kw_only=True, omit_defaults=True):
    """The same of a node: ``memory`` is what is in use, ``net_*`` and ``disk_*`` are hardware."""

    cpus: int
    memory_total: int
    #: of the last minute
    load: float | None = None


class MirrorSample(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A DRBD device of a node, in the words of the kernel; bytes."""

    minor: int
    connection: str
    disk: str
    peer_disk: str
    out_of_sync: int = 0
    #: percent of a resync that is under way
    percent: float | None = None


class LatestSamples(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The newest measurements of a node."""

    #: Unix time of the measurement; 0: there was none yet
    time: float = 0.0
    host: HostCounters | None = None
    guests: dict[str, GuestCounters] = {}
    mirrors: list[MirrorSample] = []
    #: name of a certificate of this node -> Unix time of its end
    certificates: dict[str, float] = {}
    #: seconds of processor time that measuring has cost since the daemon began
    cost: float = 0.0


class Samples(msgspec.Struct, kw_only=True):
    """Values at equal intervals: ``start`` is the Unix time of the first, ``step`` in seconds."""

    start: int
    step: int
    series: dict[str, list[float | None]] = {}

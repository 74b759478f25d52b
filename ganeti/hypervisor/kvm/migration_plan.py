"""The agreement of two nodes that move a guest, and the meaning of QEMU's figures; pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.kvm.accel import Accelerator
from ganeti.hypervisor.kvm.devices import Processor
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.model.enums import MigrationState
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import MigrationStatus, NodeInstance

#: Ports that are tried from ``migration_port`` on, so that several guests can arrive at a time.
PORTS = 32
TLS_OBJECT = "migration"
_POSTCOPY = "postcopy-ram"

_STATES = {
    "completed": MigrationState.COMPLETED,
    "failed": MigrationState.FAILED,
    "cancelled": MigrationState.CANCELLED,
    "postcopy-paused": MigrationState.FAILED,
}
#: Words of QEMU for a move that has ended, one way or the other.
ENDED = frozenset(_STATES)


class Journey(msgspec.Struct, frozen=True, kw_only=True):
    """A guest as it runs at its source; has the key of the connection, so it is secret."""

    version: int = 1
    #: as it was started, which is not what the configuration says now
    instance: NodeInstance
    machine: str
    accelerator: Accelerator
    places: dict[str, str]
    #: uuids of the disks, in the order of the guest
    drives: tuple[DiskUuid, ...]
    #: MiB
    memory: int
    #: that were added since it was started
    processors: tuple[Processor, ...] = ()
    #: False: it was paused, and stays so
    running: bool
    #: hexadecimal digits
    key: str
    #: whether disks move with it
    with_disks: bool = False


def read_journey(info: Mapping[str, object], instance: NodeInstance) -> Journey:
    """Read the data of a source about an instance.

    Raises:
        HypervisorError: it is of another version or another instance.
    """
    try:
        found = typed.convert(dict(info), Journey)
    except msgspec.ValidationError as err:
        raise errors.HypervisorError(
            f"the description of the running instance {instance.name} cannot be used: {err};"
            " are both nodes of the same version?"
        ) from err
    if found.instance.uuid != instance.uuid:
        raise errors.HypervisorError(
            f"the description is of {found.instance.name} ({found.instance.uuid}), not of"
            f" {instance.name} ({instance.uuid})"
        )
    return found


def order_disks(disks: Sequence[AttachedDisk], trip: Journey) -> list[AttachedDisk]:
    """The disks as the running guest has them.

    Raises:
        HypervisorError: the configuration has others than the running guest.
    """
    known = {disk.disk.uuid: disk for disk in disks}
    if known.keys() != set(trip.drives):
        raise errors.HypervisorError(
            f"the configuration of instance {trip.instance.name} has other disks than the running"
            f" guest ({len(known)} and {len(trip.drives)}); restart it, then move it"
        )
    return [known[uuid] for uuid in trip.drives]


def host_port(host: str, port: int) -> str:
    """``192.0.2.1:8102`` or ``[2001:db8::1]:8102``."""
    return f"[{host}]:{port}" if ipaddress.ip_address(host).version == 6 else f"{host}:{port}"


def destination(target: str, params: KvmParams) -> str:
    """Address with port: that of ``migration_port`` when the target names none.

    Raises:
        HypervisorError: this is not a numeric address.
    """
    host, _, port = target.rpartition(":")
    if not port.isdigit() or not host or (":" in host and not host.startswith("[")):
        host, port = target, str(params.migration_port)
    try:
        return host_port(host.strip("[]"), int(port))
    except ValueError as err:
        raise errors.HypervisorError(
            f"'{target}' is not an address that a guest could be sent to"
        ) from err


def choose_caps(params: KvmParams, *, with_disks: bool) -> KvmParams:
    """The parameters for a guest that moves with its disks, or unchanged for one without.

    QEMU pauses the guest before the switch, so that its last blocks can follow. With post-copy it
    would run at the target before that is on record.
    """
    if not with_disks:
        return params
    names = [name for name in params.migration_caps.split(":") if name and name != _POSTCOPY]
    caps = ":".join([*names, "pause-before-switchover"])
    return msgspec.structs.replace(params, migration_caps=caps)


def capabilities(params: KvmParams) -> list[JsonObject]:
    """For both ends; ``events`` is what the journal needs, and backups go on by the bitmaps."""
    names = dict.fromkeys(
        ["events", "dirty-bitmaps", *filter(None, params.migration_caps.split(":"))]
    )
    return [{"capability": name, "state": True} for name in names]


def uses_postcopy(params: KvmParams) -> bool:
    """Whether the guest shall be switched over before all of its memory is there."""
    return _POSTCOPY in params.migration_caps.split(":")


def limits(params: KvmParams) -> JsonObject:
    """Bandwidth and pause for the source; 0 MiB/s: as fast as it goes."""
    # QEMU takes this for no limit at all.
    unlimited = (1 << 63) - 1
    bandwidth = params.migration_bandwidth << 20 or unlimited
    return {
        "max-bandwidth": bandwidth,
        "max-postcopy-bandwidth": params.migration_bandwidth << 20,
        "downtime-limit": params.migration_downtime,
        "tls-creds": TLS_OBJECT,
    }


def wants_switch(answer: Mapping[str, Any], params: KvmParams) -> bool:
    """Whether all memory was sent once, which is when post-copy is best begun."""
    return (
        uses_postcopy(params)
        and answer.get("status") == "active"
        and (answer.get("ram") or {}).get("dirty-sync-count", 0) >= 2
    )


def status(answer: Mapping[str, Any]) -> MigrationStatus:
    """QEMU's answer to ``query-migrate`` at the source."""
    word = str(answer.get("status", "none"))
    ram = answer.get("ram") or {}
    state = _STATES.get(word, MigrationState.ACTIVE)
    error = answer.get("error-desc")
    if word == "none":
        state, error = MigrationState.FAILED, "no migration of it was begun"
    elif word == "postcopy-paused":
        error = (
            "the connection was lost after the guest had taken over at its target without all of"
            " its memory, so it is lost; shut it down and start it again"
        )
    elif state is MigrationState.FAILED:
        error = error or "QEMU names no reason; the connection was probably lost"
    return MigrationStatus(
        status=state,
        transferred_ram=ram.get("transferred"),
        total_ram=ram.get("total"),
        postcopy_status=True if word.startswith("postcopy") else None,
        remaining_ram=ram.get("remaining"),
        eta=time_left(ram) if state is MigrationState.ACTIVE else None,
        downtime=answer.get("downtime"),
        total_time=answer.get("total-time"),
        error=error,
    )


def time_left(ram: Mapping[str, Any]) -> float | None:
    """Seconds until what remains is sent, at what is sent more than the guest writes; or None."""
    sent = ram.get("mbps", 0) * 1e6 / 8
    written = ram.get("dirty-pages-rate", 0) * ram.get("page-size", 4096)
    gained = sent - written
    if "remaining" not in ram or gained <= 0:
        return None
    return round(float(ram["remaining"]) / float(gained), 1)

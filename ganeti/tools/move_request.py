"""Request of move-instance to the target cluster: the source, changed by options. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject

#: Text of the remote API in place of a secret.
_REDACTED = "<redacted>"


@dataclass(frozen=True)
class Wish:
    """Options for the instance in the target cluster."""

    name: str | None = None
    primary: str | None = None
    secondary: str | None = None
    iallocator: str | None = None
    template: str | None = None
    hypervisor: str | None = None
    hvparams: Mapping[str, Any] = field(default_factory=dict)
    beparams: Mapping[str, Any] = field(default_factory=dict)
    osparams: Mapping[str, Any] = field(default_factory=dict)
    #: index of a NIC to what changes
    nics: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    opportunistic: bool = False


def check_wish(wish: Wish, instances: Sequence[str]) -> None:
    """Refuse what can never work; ParameterError."""
    if wish.name is not None and len(instances) > 1:
        raise errors.ParameterError(
            "--dest-instance-name makes sense with one instance only; name one at a time"
        )
    if len(set(instances)) != len(instances):
        raise errors.ParameterError("an instance is named twice")
    if wish.iallocator is not None and (wish.primary or wish.secondary):
        raise errors.ParameterError(
            "--iallocator chooses the nodes; omit --dest-primary-node and --dest-secondary-node"
        )
    if wish.secondary and not wish.primary:
        raise errors.ParameterError("--dest-secondary-node needs --dest-primary-node")
    if wish.primary and wish.primary == wish.secondary:
        raise errors.ParameterError("the secondary node must be another node than the primary node")
    if wish.opportunistic and wish.primary:
        raise errors.ParameterError(
            "--opportunistic-tries makes sense only when an allocator chooses the nodes"
        )


def make_creation(
    wish: Wish, info: Mapping[str, Any], tags: Sequence[str], *, start: bool
) -> JsonObject:
    """Arguments of ``CreateInstance`` but those of the handshake.

    ``info`` is what OP_INSTANCE_QUERY_DATA returns about the instance.

    Raises:
        ParameterError: a NIC that the instance does not have, or a value that no cluster shows.
    """
    known = info["os_instance"]
    private = {name for name, value in known.items() if value == _REDACTED}
    hidden = sorted(private - wish.osparams.keys())
    if hidden:
        raise errors.ParameterError(
            f"the OS parameters {', '.join(hidden)} are private, so the cluster does not show"
            " them: give them with -O"
        )
    osparams = {**known, **wish.osparams}
    hvparams = info["hv_instance"] if wish.hypervisor in (None, info["hypervisor"]) else {}
    request: JsonObject = {
        "name": wish.name or info["name"],
        "disk_template": wish.template or info["disk_template"],
        "disks": [_make_disk(disk) for disk in info["disks"]],
        "nics": _make_nics(info["nics"], wish.nics),
        "hypervisor": wish.hypervisor or info["hypervisor"],
        "hvparams": {**hvparams, **wish.hvparams},
        "beparams": {**info["be_instance"], **wish.beparams},
        "osparams": {name: osparams[name] for name in osparams.keys() - private},
        "tags": list(tags),
        "start": start,
        "ip_check": False,
        "name_check": False,
        "opportunistic_locking": wish.opportunistic,
    }
    optional = {
        "os": info["os"] or None,
        "pnode": wish.primary,
        "snode": wish.secondary,
        "iallocator": wish.iallocator,
        "osparams_private": {name: osparams[name] for name in private} or None,
    }
    request.update({key: value for key, value in optional.items() if value is not None})
    return request


def _make_disk(disk: Mapping[str, object]) -> JsonObject:
    kept = ("size", "mode", "name", "spindles")
    return {key: disk[key] for key in kept if disk.get(key) is not None}


def _make_nics(
    nics: Sequence[Sequence[object]], changes: Mapping[int, Mapping[str, object]]
) -> list[JsonObject]:
    unknown = sorted(index for index in changes if not 0 <= index < len(nics))
    if unknown:
        raise errors.ParameterError(
            f"--net: the instance has {len(nics)} NICs, so there is none with the number"
            f" {unknown[0]}; NICs are counted from 0"
        )
    return [_make_nic(nic, changes.get(index, {})) for index, nic in enumerate(nics)]


def _make_nic(nic: Sequence[Any], change: Mapping[str, Any]) -> JsonObject:
    """A NIC in a network has mode and link of the connection, others have their own."""
    name, _uuid, ip, mac, mode, link, vlan, _network, network = nic
    values: JsonObject = {"mac": mac, "ip": ip, "name": name}
    if network is not None:
        values["network"] = network["name"]
    else:
        values.update(mode=mode, link=link, vlan=vlan)
    if "network" in change or ({"mode", "link", "vlan"} & change.keys()):
        for key in ("network", "mode", "link", "vlan"):
            values.pop(key, None)
    values.update(change)
    return {key: value for key, value in values.items() if value not in (None, "")}

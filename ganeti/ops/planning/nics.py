"""NICs as they will be, from what was requested.

Reads the configuration and reserves addresses for the job; touches no node.
"""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence

from ganeti import constants, errors
from ganeti.base.json_types import JsonObject
from ganeti.config import parameters
from ganeti.model import address_pool, base
from ganeti.model import params as parameter_sets
from ganeti.model.config import Config
from ganeti.model.enums import NicMode
from ganeti.model.ids import GroupUuid, NetworkUuid
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.model.params import (
    VALUE_AUTO,
    VALUE_GENERATE,
    VALUE_NONE,
    VALUE_POOL,
    drop_defaults,
)
from ganeti.opcodes.devices import NicParams
from ganeti.ops.operation import Context

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
#: Characters of the name of a NIC.
_LONGEST_NAME = 128
#: Values that remove something.
_UNSET = (None, VALUE_NONE, "")


def all_new(
    ctx: Context, wanted: Sequence[NicParams], group: GroupUuid, *, check_conflicts: bool = True
) -> list[Nic]:
    """NICs of a new instance whose primary node is in a node group.

    Raises:
        OpPrereqError, ReservationError: a value cannot be used, an address is taken.
    """
    if len(wanted) > constants.MAX_NICS:
        raise errors.make_invalid_error(
            f"an instance has at most {constants.MAX_NICS} NICs, not {len(wanted)}"
        )
    found = [
        make_nic(ctx, index, item, group, check_conflicts=check_conflicts)
        for index, item in enumerate(wanted)
    ]
    refuse_twice(found)
    return found


def refuse_twice(nics: Iterable[Nic]) -> None:
    """Refuse NICs of one or several new instances that share an address; OpPrereqError."""
    seen: Counter[str] = Counter()
    for nic in nics:
        seen[f"MAC address {nic.mac}"] += 1
        if nic.network and nic.ip:
            seen[f"IP address {nic.ip}"] += 1
    for what, count in seen.items():
        if count > 1:
            raise errors.make_not_unique_error(f"{what} is given to {count} NICs")


def make_nic(
    ctx: Context, index: int, item: NicParams, group: GroupUuid, *, check_conflicts: bool = True
) -> Nic:
    """A NIC that does not exist yet; its MAC address is reserved for the job."""
    blank = Nic(uuid=str(uuid.uuid4()), mac=VALUE_AUTO)
    return change_nic(ctx, index, blank, item, group, check_conflicts=check_conflicts)


def change_nic(
    ctx: Context,
    index: int,
    nic: Nic,
    item: NicParams,
    group: GroupUuid,
    *,
    check_conflicts: bool = True,
) -> Nic:
    """A NIC with other parameters; what is not given stays.

    Raises:
        OpPrereqError, ReservationError: a value cannot be used, an address is taken.
    """
    config = ctx.config
    uuid_ = nic.network if item.network is None else network_of(config, item)
    network = config.networks.get(uuid_) if uuid_ else None
    params = _own_params(index, nic, item, network)
    result = base.replace(
        nic,
        nicparams=params,
        network=None if network is None else network.uuid,
        name=nic.name if item.name is None else _name(index, item.name),
        ip=nic.ip if item.ip is None else (None if item.ip in _UNSET else item.ip),
    )
    _check(ctx.config, index, result, group)
    if (result.ip, result.network) != (nic.ip, nic.network):
        address = _address(ctx, index, result, network, group, check_conflicts)
        result = base.replace(result, ip=address)
    return base.replace(result, mac=_mac(ctx, index, nic, item, network))


def _name(index: int, name: str) -> str | None:
    """The name to record, None for none; OpPrereqError when it cannot be shown on one line."""
    if name in _UNSET:
        return None
    if not name.isprintable() or len(name) > _LONGEST_NAME:
        raise errors.make_invalid_error(
            f"NIC {index}: {name[: _LONGEST_NAME + 10]!r} cannot be its name: up to"
            f" {_LONGEST_NAME} printable characters are allowed"
        )
    return name


def network_of(config: Config, item: NicParams) -> NetworkUuid | None:
    """UUID of the network that a NIC is to be in; OpPrereqError if it is not known."""
    return None if item.network in _UNSET else config.network(str(item.network)).uuid


def _own_params(index: int, nic: Nic, item: NicParams, network: Network | None) -> JsonObject:
    """Own parameters of the NIC; none while it belongs to a network."""
    given = item.own_params()
    own = parameter_sets.check(parameter_sets.NicParams, drop_defaults(given), f"NIC {index}: NIC")
    if network is not None:
        if own:
            verb, them = ("is", "it") if len(own) == 1 else ("are", "them")
            raise errors.make_invalid_error(
                f"NIC {index}: {', '.join(sorted(own))} {verb} set by network {network.name};"
                f" omit {them}, or remove the NIC from the network with network=none"
            )
        return {}
    kept = {key: value for key, value in nic.nicparams.items() if key not in given}
    return {**kept, **own}


def _check(config: Config, index: int, nic: Nic, group: GroupUuid) -> None:
    if nic.network and nic.network not in config.groups[group].networks:
        raise errors.make_state_error(
            f"NIC {index}: network {config.networks[nic.network].name} is not connected"
            f" to node group {config.groups[group].name}; see gnt-network connect"
        )
    params = config.nicparams_for(nic.nicparams, nic.network, group)
    parameters.check_nic(params, f"NIC {index}: ")
    if params["mode"] == NicMode.ROUTED and nic.ip is None:
        raise errors.make_invalid_error(f"NIC {index}: mode routed needs an IP address")


def _mac(ctx: Context, index: int, nic: Nic, item: NicParams, network: Network | None) -> str:
    wanted = (item.mac or nic.mac).lower()
    if wanted == nic.mac and wanted != VALUE_AUTO:
        return wanted
    if wanted not in (VALUE_AUTO, VALUE_GENERATE) and not _MAC.fullmatch(wanted):
        raise errors.make_invalid_error(f"NIC {index}: '{item.mac}' is not a MAC address")
    config = ctx.config
    prefix = (network.mac_prefix if network else None) or config.cluster.mac_prefix
    return ctx.claims.claim_mac(wanted, config, prefix, ctx.job.job_id)


def _address(
    ctx: Context,
    index: int,
    nic: Nic,
    network: Network | None,
    group: GroupUuid,
    check_conflicts: bool,
) -> str | None:
    """The IP address that a NIC gets; one of a network is reserved for the job."""
    if nic.ip is None:
        return None
    if network is not None:
        return _choose_address(ctx, index, nic.ip, network, check_conflicts)
    if nic.ip == VALUE_POOL:
        raise errors.make_invalid_error(
            f"NIC {index}: ip=pool takes an address from a network; name it with network=NAME"
        )
    try:
        ipaddress.ip_address(nic.ip)
    except ValueError as err:
        raise errors.make_invalid_error(f"NIC {index}: '{nic.ip}' is not an IP address") from err
    if check_conflicts:
        _refuse_conflict(ctx.config, index, nic.ip, group)
    return nic.ip


def _choose_address(
    ctx: Context, index: int, wanted: str, network: Network, check_conflicts: bool
) -> str:
    if wanted != VALUE_POOL and not address_pool.contains(network, wanted):
        raise errors.make_invalid_error(
            f"NIC {index}: {wanted} is not an address of network {network.name}"
            f" ({network.network}); give one of it, or ip=pool"
        )
    try:
        return ctx.claims.claim_address(
            wanted,
            network.uuid,
            lambda: ctx.config,
            ctx.job.job_id,
            external=not check_conflicts,
        )
    except errors.AddressPoolError as err:
        raise errors.make_resources_error(f"NIC {index}: {errors.text(err)}") from err


def _refuse_conflict(config: Config, index: int, address: str, group: GroupUuid) -> None:
    """Refuse an address of a network that the group uses, for a NIC that is not in it."""
    for uuid_ in config.groups[group].networks:
        network = config.networks.get(uuid_)
        if network is not None and address_pool.contains(network, address):
            raise errors.make_state_error(
                f"NIC {index}: {address} belongs to network {network.name}, the NIC does"
                f" not; add network={network.name}, or use --no-conflicts-check"
            )

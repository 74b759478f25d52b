"""Names of networks, and the results of their parameters. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config import parameters
from ganeti.model import address_pool, base
from ganeti.model.config import Config
from ganeti.model.ids import NetworkUuid
from ganeti.model.network import Network
from ganeti.model.params import VALUE_NONE
from ganeti.opcodes.network import OpNetworkAdd, OpNetworkSetParams

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MAX_NAME = 255
#: Smallest MTU for IPv4.
_SMALLEST_MTU = 576


def check_name(config: Config, name: str) -> None:
    """Refuse a name that is taken or cannot be one; OpPrereqError."""
    if (
        len(name) > _MAX_NAME
        or name.startswith("-")
        or name == VALUE_NONE
        or not name.isprintable()
        or any(char.isspace() or char in "/,=:" for char in name)
        or _UUID.fullmatch(name)
    ):
        raise errors.make_invalid_error(
            f"'{name[:_MAX_NAME]}' cannot be the name of a network: spaces, '/', ',', '=', ':' and"
            " a '-' at its beginning are not allowed, nor is 'none' or the form of a UUID"
        )
    if any(network.name == name for network in config.networks.values()):
        raise errors.make_exists_error(f"there is a network '{name}' already")


def make_network(config: Config, op: OpNetworkAdd, uuid: NetworkUuid) -> Network:
    """The network of an opcode; what must not be given to instances is reserved.

    With a check of conflicts these are also the addresses of nodes and cluster.

    Raises:
        OpPrereqError: an address or size that cannot be used.
    """
    subnet = ipaddress.IPv4Network(op.network, strict=False)
    if not address_pool.LARGEST <= subnet.prefixlen <= address_pool.SMALLEST:
        raise errors.make_invalid_error(
            f"{op.network}: the prefix length of a network must be from {address_pool.LARGEST}"
            f" (65536 addresses) to {address_pool.SMALLEST} (4 addresses)"
        )
    network = Network(
        uuid=uuid,
        name=op.network_name,
        network=str(subnet),
        gateway=_text(op.gateway),
        network6=_network6(op.network6),
        gateway6=_text(op.gateway6),
        mac_prefix=None if op.mac_prefix is None else parameters.mac_prefix(op.mac_prefix),
        dns=_check_servers(op.dns or ()) or None,
        mtu=_check_mtu(op.mtu),
        reservations="0" * subnet.num_addresses,
        tags=tuple(sorted(set(op.tags))),
    )
    _check_gateways(network)
    reserved = [*_list_fixed_addresses(network), *_check_inside(network, op.add_reserved_ips or ())]
    if op.conflicts_check:
        reserved += list_cluster_addresses(config, network)
    return address_pool.with_external(network, take=reserved)


def list_cluster_addresses(config: Config, network: Network) -> list[str]:
    """Addresses of the network that nodes or the cluster have."""
    used = {config.cluster.master_ip}
    for node in config.nodes.values():
        used.update((node.primary_ip, node.secondary_ip))
    return sorted(ip for ip in used if address_pool.contains(network, ip))


def change_network(network: Network, op: OpNetworkSetParams) -> Network:
    """The network with the parameters of an opcode; what is not given stays.

    Raises:
        OpPrereqError: an address that cannot be used.
    """
    values: JsonObject = {}
    for key in ("gateway", "network6", "gateway6", "mac_prefix"):
        given = getattr(op, key)
        if given is not None:
            values[key] = None if given == VALUE_NONE else str(given)
    if op.dns is not None:
        values["dns"] = _check_servers(op.dns) or None
    if op.mtu is not None:
        values["mtu"] = _check_mtu(op.mtu)
    if values.get("mac_prefix"):
        values["mac_prefix"] = parameters.mac_prefix(values["mac_prefix"])
    if "network6" in values:
        values["network6"] = _network6(values["network6"])
    result = base.replace(network, **values)
    if values.keys() - {"mac_prefix", "dns", "mtu"}:
        _check_gateways(result)
    free = _check_inside(network, op.remove_reserved_ips or ())
    held = set(_list_fixed_addresses(result)) & set(free)
    if held:
        raise errors.make_invalid_error(
            f"{', '.join(sorted(held))} must stay reserved: gateway, first and last address of"
            f" network {network.name}"
        )
    take = _check_inside(network, op.add_reserved_ips or ())
    if result.gateway != network.gateway:
        _check_gateway_is_free(network, result)
        free += _gateway(network)
        take += _gateway(result)
    return address_pool.with_external(result, take=take, free=free)


def notes(network: Network, op: OpNetworkSetParams) -> Iterator[str]:
    """Notes for the user about the addresses of a change."""
    for address in op.add_reserved_ips or ():
        if address_pool.is_external(network, address):
            yield f"IP address {address} is reserved already"
        if address_pool.is_own(network, address):
            yield f"IP address {address} is used by an instance, which keeps it"
    for address in op.remove_reserved_ips or ():
        if not address_pool.is_external(network, address):
            yield f"IP address {address} is not reserved"


def has_parameters(op: OpNetworkSetParams) -> bool:
    """Whether the opcode names any parameter."""
    names = ("gateway", "network6", "gateway6", "mac_prefix", "dns", "mtu")
    lists = ("add_reserved_ips", "remove_reserved_ips")
    return any(getattr(op, name) is not None for name in names) or any(
        getattr(op, name) for name in lists
    )


# parts -------------------------------------------------------------------------------------------


def _text(address: str | None) -> str | None:
    return None if address is None else str(address)


def _check_mtu(given: int | None) -> int | None:
    if given and given < _SMALLEST_MTU:
        raise errors.make_invalid_error(f"the MTU must be {_SMALLEST_MTU} or more, not {given}")
    return given or None


def _check_servers(given: Sequence[str]) -> tuple[str, ...]:
    """Name servers; the word ``none`` alone stands for no one. OpPrereqError."""
    if list(given) == [VALUE_NONE]:
        return ()
    try:
        return tuple(str(ipaddress.ip_address(address)) for address in given)
    except ValueError as err:
        raise errors.make_invalid_error(f"a name server is an address: {err}") from err


def _network6(text: str | None) -> str | None:
    return None if text is None else str(ipaddress.IPv6Network(text, strict=False))


def _list_fixed_addresses(network: Network) -> list[str]:
    """Addresses that no instance can have: the first, the last and the gateway."""
    subnet = address_pool.subnet(network)
    return [str(subnet.network_address), str(subnet.broadcast_address), *_gateway(network)]


def _gateway(network: Network) -> list[str]:
    return [] if network.gateway is None else [network.gateway]


def _check_inside(network: Network, addresses: Iterable[str]) -> list[str]:
    found = [str(address) for address in addresses]
    for address in found:
        if not address_pool.contains(network, address):
            raise errors.make_invalid_error(
                f"{address} is not an address of network {network.name} ({network.network})"
            )
    return found


def _check_gateways(network: Network) -> None:
    subnet = address_pool.subnet(network)
    ends = (str(subnet.network_address), str(subnet.broadcast_address))
    if network.gateway is not None:
        _check_inside(network, [network.gateway])
        if network.gateway in ends:
            raise errors.make_invalid_error(
                f"{network.gateway} cannot be the gateway: it is the first or last address of"
                f" {network.network}"
            )
    if network.gateway6 is None:
        return
    if network.network6 is None:
        raise errors.make_invalid_error(
            f"IPv6 gateway {network.gateway6} needs an IPv6 network; set it, or take the gateway"
            " away"
        )
    if ipaddress.IPv6Address(network.gateway6) not in ipaddress.IPv6Network(network.network6):
        raise errors.make_invalid_error(
            f"IPv6 gateway {network.gateway6} is not in {network.network6}"
        )


def _check_gateway_is_free(before: Network, after: Network) -> None:
    gateway = after.gateway
    if gateway and gateway != before.gateway and address_pool.is_own(before, gateway):
        raise errors.make_state_error(
            f"{gateway} cannot be the gateway of network {before.name}: an instance uses it"
        )

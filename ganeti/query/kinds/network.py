"""Networks and their address pools. Rows are network objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model import address_pool
from ganeti.model.network import Network
from ganeti.query.field import Context, Kind
from ganeti.query.kinds import stamps

TEXT, NUMBER, OTHER = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.OTHER
_TO_MAP = str.maketrans("01", ".X")


class NetworkKind(Kind[Network]):
    name = "network"
    index_fields = frozenset({"name", "uuid"})

    def rows(self, ctx: Context) -> Sequence[Network]:
        return ctx.tables.networks

    def lookup(self, ctx: Context, names: Sequence[Any]) -> Sequence[Network]:
        found, exact = ctx.tables.network_index.find_one, ctx.config.network
        return [found(name) or exact(name) for name in names]

    def candidates(self, ctx: Context, values: set[Any]) -> Sequence[Network]:
        return ctx.tables.network_index.find(values)


KIND = NetworkKind()

stamps.add_fields(KIND, "network")
KIND.attribute("name", "Network", TEXT, "Name of the network", "name")
KIND.attribute("network", "Subnet", TEXT, "IPv4 subnet", "network")


@KIND.value("network6", "IPv6Subnet", OTHER, "IPv6 subnet")
def _network6(network: Network) -> str | None:
    return network.network6


@KIND.value("gateway", "Gateway", OTHER, "IPv4 gateway")
def _gateway(network: Network) -> str | None:
    return network.gateway


@KIND.value("gateway6", "IPv6Gateway", OTHER, "IPv6 gateway")
def _gateway6(network: Network) -> str | None:
    return network.gateway6


@KIND.value("mac_prefix", "MacPrefix", OTHER, "First half of the MAC addresses in this network")
def _mac_prefix(network: Network) -> str | None:
    return network.mac_prefix


@KIND.value("dns", "DNS", OTHER, "Name servers for guests with cloud-init")
def _dns(network: Network) -> list[str]:
    return list(network.dns or ())


@KIND.value("mtu", "MTU", OTHER, "MTU for guests with cloud-init")
def _mtu(network: Network) -> int | None:
    return network.mtu


# address pool --------------------------------------------------------------------------------


def make_map(network: Network) -> str | None:
    """A text of 0 (free) and 1 (taken), one for each address; None without a pool."""
    if network.reservations is None and network.ext_reservations is None:
        return None
    return address_pool.make_used_map(network)


@KIND.value("map", "Map", TEXT, "All addresses of the pool: X for taken and . for free ones")
def _map(network: Network) -> str | None:
    bits = make_map(network)
    return None if bits is None else bits.translate(_TO_MAP)


@KIND.value("free_count", "FreeCount", NUMBER, "Number of free addresses in the pool")
def _count_free(network: Network) -> int | None:
    bits = make_map(network)
    return None if bits is None else bits.count("0")


@KIND.value("reserved_count", "ReservedCount", NUMBER, "Number of taken addresses in the pool")
def _count_reserved(network: Network) -> int | None:
    bits = make_map(network)
    return None if bits is None else bits.count("1")


@KIND.value(
    "external_reservations",
    "ExternalReservations",
    TEXT,
    "Addresses that are taken by something else than an instance",
)
def _list_external_reservations(network: Network) -> str | None:
    if network.ext_reservations is None:
        return None
    return ", ".join(address_pool.addresses(network, address_pool.make_external_map(network)))


# connections ---------------------------------------------------------------------------------


def _connections(ctx: Context) -> dict[str, list[list[str]]]:
    """Network uuid -> ``[group name, mode, link, vlan]`` in natural order of the groups."""
    found: dict[str, list[list[str]]] = {uuid: [] for uuid in ctx.config.networks}
    for group in ctx.tables.groups:
        for uuid, params in group.networks.items():
            if uuid in found:
                values = [params.get(key, "") for key in ("mode", "link", "vlan")]
                found[uuid].append([group.name, *values])
    return found


@KIND.field("group_list", "GroupList", OTHER, "Connected node groups with mode, link and VLAN")
def _group_list(ctx: Context) -> Column[Network]:
    found = ctx.compute_once(_connections)
    return lambda network: (0, found[network.uuid])


@KIND.field("group_cnt", "NodeGroups", NUMBER, "Number of connected node groups")
def _group_cnt(ctx: Context) -> Column[Network]:
    found = ctx.compute_once(_connections)
    return lambda network: (0, len(found[network.uuid]))


@KIND.field("inst_list", "InstanceList", OTHER, "Instances with a NIC in this network")
def _inst_list(ctx: Context) -> Column[Network]:
    names = ctx.tables.network_instances
    return lambda network: (0, names[network.uuid])


@KIND.field("inst_cnt", "Instances", NUMBER, "Number of instances with a NIC in this network")
def _inst_cnt(ctx: Context) -> Column[Network]:
    names = ctx.tables.network_instances

    def column(network: Network) -> Cell:
        return (0, len(names[network.uuid]))

    return column

"""gnt-network: what networks there are, and who uses their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ganeti.base.json_types import JsonObject
from ganeti.cli import info, listing, output, selection, tags
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many
from ganeti.cli.programs import NETWORK

_LIST_FIELDS = ("name", "network", "gateway", "mac_prefix", "group_list", "tags")
_INFO_FIELDS = (
    "name",
    "uuid",
    "serial_no",
    "network",
    "gateway",
    "network6",
    "gateway6",
    "mac_prefix",
    "dns",
    "mtu",
    "free_count",
    "reserved_count",
    "map",
    "external_reservations",
    "group_list",
    "inst_list",
)
_TITLES = (
    ("Network name", "name"),
    ("UUID", "uuid"),
    ("Serial number", "serial_no"),
    ("Subnet", "network"),
    ("Gateway", "gateway"),
    ("IPv6 Subnet", "network6"),
    ("IPv6 Gateway", "gateway6"),
    ("Mac Prefix", "mac_prefix"),
    ("Name servers", "dns"),
    ("MTU", "mtu"),
    ("Free", "free_count"),
    ("Usage map", "map"),
    ("externally reserved IPs", "external_reservations"),
)
#: Addresses in one line of a map.
_LINE = 64

tags.add_commands(NETWORK, "network", "network")


def _groups(value: Any) -> str:
    """``group (mode, link, vlan)`` of each connection in one cell."""
    return ", ".join(f"{name} ({', '.join(params)})" for name, *params in value)


@NETWORK.command(
    "list",
    take_many("network"),
    options=(o.NO_HEADERS, o.SEPARATOR, o.FIELDS, o.VERBOSE, o.FILTER, o.FORMAT),
)
def list_networks(call: Call) -> int:
    """List networks.

    Arguments are names, patterns, or one filter such as 'free_count < 10'.
    """
    formats = {**dict.fromkeys(("inst_list", "tags"), output.join_items), "group_list": _groups}
    return listing.show_list(call, "network", _LIST_FIELDS, texts=formats)


@NETWORK.command("list-fields", take_many("field"), options=o.LIST_FIELDS_OPTIONS)
def list_fields(call: Call) -> int:
    """List the fields that gnt-network list can show."""
    return listing.show_fields(call, "network")


@NETWORK.command("info", take_many("network"), aliases=("show",), options=(o.INFO_FORMAT,))
def show_info(call: Call) -> None:
    """Show networks with their maps of addresses and who uses them (all without arguments).

    The text is for people; programs use --format json or yaml.
    """
    if call.args:
        known = call.client.query_networks([], ("name", "uuid"))
        selection.refuse_unknown(call.client, "network", call.args, known)
    rows = call.client.query_networks(call.args, _INFO_FIELDS)
    networks = [dict(zip(_INFO_FIELDS, row, strict=True)) for row in rows]
    if call.opts.format != "text":
        info.show(call, [_all_of(call, network) for network in networks])
        return
    for network in networks:
        output.print_lines([*_facts(network), *_pool(network), *_connections(network)])
        output.print_lines(list(_instances(call, network)))


def _all_of(call: Call, network: JsonObject) -> list[info.Pair]:
    """Return the titles of the text form of a network, with the values of the master."""
    groups = [
        dict(zip(("group", "mode", "link", "vlan"), entry, strict=True))
        for entry in network["group_list"]
    ]
    found = [(title, network[key]) for title, key in _TITLES]
    return [*found, ("Node groups", groups), ("Instances", dict(_users(call, network)))]


def _facts(network: Mapping[str, Any]) -> list[str]:
    return [
        f"Network name: {network['name']}",
        f"UUID: {network['uuid']}",
        f"Serial number: {network['serial_no']}",
        f"  Subnet: {network['network']}",
        f"  Gateway: {network['gateway']}",
        f"  IPv6 Subnet: {network['network6']}",
        f"  IPv6 Gateway: {network['gateway6']}",
        f"  Mac Prefix: {network['mac_prefix']}",
        # unknown to Ganeti, so shown only where they are set
        *([f"  Name servers: {', '.join(network['dns'])}"] if network["dns"] else []),
        *([f"  MTU: {network['mtu']}"] if network["mtu"] else []),
    ]


def _pool(network: JsonObject) -> Iterator[str]:
    shown = network["map"]
    if not shown:
        return
    free = network["free_count"]
    yield f"  Size: {len(shown)}"
    yield f"  Free: {free} ({free / len(shown):.2%})"
    yield "  Usage map:"
    for start in range(0, len(shown), _LINE):
        part = shown[start : start + _LINE]
        yield f"    {start:5} {part} {start + len(part) - 1}"
    yield "          (X) used    (.) free"
    if network["external_reservations"]:
        yield "  externally reserved IPs:"
        yield f"    {network['external_reservations']}"


def _connections(network: JsonObject) -> Iterator[str]:
    if not network["group_list"]:
        yield "  not connected to any node group"
        return
    yield "  connected to node groups:"
    for name, mode, link, vlan in network["group_list"]:
        yield f"    {name} (mode: {mode}, link: {link}, vlan: {vlan})"


def _instances(call: Call, network: JsonObject) -> Iterator[str]:
    """Instances with a NIC in the network, and the addresses of these NICs."""
    names = network["inst_list"]
    if not names:
        yield "  not used by any instances"
        return
    yield f"  used by {len(names)} instances:"
    for name, own in _users(call, network):
        yield f"    {name}: {', '.join(f'{index}:{address}' for index, address in own.items())}"


def _users(call: Call, network: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Instances in the network: the address of each of their NICs that are in it."""
    if not network["inst_list"]:
        return
    fields = ("name", "nic.networks", "nic.ips")
    for name, uuids, addresses in call.client.query_instances(network["inst_list"], fields):
        yield (
            name,
            {
                str(index): address
                for index, (uuid, address) in enumerate(zip(uuids, addresses, strict=True))
                if uuid == network["uuid"]
            },
        )

"""NICs of instances, as lists and one by one (``nic.ip/0``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ganeti.constants import MAX_NICS
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.enums import NicMode
from ganeti.model.instance import Instance
from ganeti.model.nic import Nic
from ganeti.query.field import UNAVAIL, Context, Field, Getter, Kind

TEXT, OTHER = FieldKind.TEXT, FieldKind.OTHER

#: Value of a NIC; made once per query.
NicValue = Callable[[Instance, Nic], Any]


def add_fields(kind: Kind[Instance]) -> None:
    """Give a kind the fields of all NICs."""
    kind.value("nic.count", "NICs", FieldKind.NUMBER, "Number of NICs")(
        lambda instance: len(instance.nics)
    )
    kind.value(
        "custom_nicparams",
        "CustomNicParameters",
        OTHER,
        "Parameters set for each NIC itself",
    )(lambda instance: [nic.nicparams for nic in instance.nics])
    for one, title, many, titles, noun, make in _VALUES:
        doc = f"{noun} of each NIC"
        kind.add(Field(f"nic.{many}", titles, OTHER, doc, _all(make)))
        for index in range(MAX_NICS):
            doc = f"{noun} of NIC {index}"
            getter = _make_single_getter(make, index)
            kind.add(Field(f"nic.{one}/{index}", f"{title}/{index}", TEXT, doc, getter))


def _all(make: Callable[[Context], NicValue]) -> Getter[Instance]:
    def getter(ctx: Context) -> Column[Instance]:
        value = make(ctx)
        return lambda instance: (0, [value(instance, nic) for nic in instance.nics])

    return getter


def _make_single_getter(make: Callable[[Context], NicValue], index: int) -> Getter[Instance]:
    def getter(ctx: Context) -> Column[Instance]:
        value = make(ctx)

        def column(instance: Instance) -> Cell:
            nics = instance.nics
            found = value(instance, nics[index]) if index < len(nics) else None
            return UNAVAIL if found is None else (0, found)

        return column

    return getter


def _make_filler(ctx: Context) -> Callable[[Instance, Nic], Mapping[str, object]]:
    """Complete parameters of a NIC; those of its network depend on the primary node's group."""
    config = ctx.config
    nodes = config.nodes
    # Most NICs have nothing of their own, so that all in one network and group are alike.
    inherited: dict[tuple[str | None, str | None], Mapping[str, object]] = {}

    def fill_params(instance: Instance, nic: Nic) -> Mapping[str, object]:
        node = nodes.get(instance.primary_node) if nic.network else None
        group = node.group if node else None
        if nic.nicparams:
            return config.nicparams_for(nic.nicparams, nic.network, group)
        known = inherited.get((nic.network, group))
        if known is None:
            known = config.nicparams_for({}, nic.network, group)
            inherited[nic.network, group] = known
        return known

    return fill_params


def _attribute(name: str) -> Callable[[Context], NicValue]:
    return lambda _: lambda _, nic: getattr(nic, name)


def _param(name: str, only_mode: NicMode | None = None) -> Callable[[Context], NicValue]:
    """A parameter of a NIC; None for NICs of another mode than ``only_mode``."""

    def make(ctx: Context) -> NicValue:
        filled = ctx.compute_once(_make_filler)

        def value(instance: Instance, nic: Nic) -> object:
            params = filled(instance, nic)
            if only_mode is not None and params.get("mode") != only_mode:
                return None
            return params.get(name)

        return value

    return make


def _network_name(ctx: Context) -> NicValue:
    names = ctx.tables.network_names
    return lambda _, nic: names.get(nic.network) if nic.network else None


#: name of one, title of one, name of all, title of all, noun, value
_VALUES = (
    (
        "bridge",
        "NicBridge",
        "bridges",
        "NIC_bridges",
        "Bridge, for bridged mode only,",
        _param("link", NicMode.BRIDGED),
    ),
    ("ip", "NicIP", "ips", "NIC_IPs", "Address", _attribute("ip")),
    ("link", "NicLink", "links", "NIC_links", "Link", _param("link")),
    ("mac", "NicMAC", "macs", "NIC_MACs", "MAC address", _attribute("mac")),
    ("mode", "NicMode", "modes", "NIC_modes", "Mode", _param("mode")),
    ("name", "NicName", "names", "NIC_Names", "Name", _attribute("name")),
    ("network", "NicNetwork", "networks", "NIC_networks", "Network", _attribute("network")),
    (
        "network.name",
        "NicNetworkName",
        "networks.names",
        "NIC_networks_names",
        "Name of the network",
        _network_name,
    ),
    ("uuid", "NicUUID", "uuids", "NIC_UUIDs", "Identity", _attribute("uuid")),
    (
        "vlan",
        "NicVLAN",
        "vlans",
        "NIC_VLANs",
        "VLAN, for Open vSwitch mode only,",
        _param("vlan", NicMode.OPENVSWITCH),
    ),
)

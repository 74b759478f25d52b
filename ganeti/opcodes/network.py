"""Opcodes for networks."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from ganeti.opcodes import params as p
from ganeti.opcodes.addresses import (
    Ipv4Address,
    Ipv4AddressOrNone,
    Ipv4Network,
    Ipv6Address,
    Ipv6AddressOrNone,
    Ipv6Network,
    Ipv6NetworkOrNone,
)
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import NICMode
from ganeti.opcodes.scalars import NonEmpty, doc

Dns = Annotated[list[NonEmpty] | None, doc("Name servers for guests with cloud-init")]
Mtu = Annotated[int, Meta(ge=0, lt=65536)]

AddReservedIps = Annotated[list[Ipv4Address] | None, doc("Addresses that instances never get")]


class OpNetworkAdd(OpCode, tag="OP_NETWORK_ADD", kw_only=True):
    """Create a network whose addresses instances can use."""

    summary_field: ClassVar[str | None] = "network_name"
    rest: ClassVar[tuple[str, ...]] = ("POST /2/networks",)
    result_type: ClassVar[str] = "null"

    network_name: p.NetworkName
    network: Annotated[Ipv4Network, doc("IPv4 network with its prefix length")]
    gateway: Annotated[Ipv4Address | None, doc("IPv4 gateway")] = None
    network6: Annotated[Ipv6Network | None, doc("IPv6 network with its prefix length")] = None
    gateway6: Annotated[Ipv6Address | None, doc("IPv6 gateway")] = None
    mac_prefix: p.MacPrefix = None
    dns: Dns = None
    mtu: Annotated[Mtu | None, doc("MTU for guests with cloud-init")] = None
    add_reserved_ips: AddReservedIps = None
    conflicts_check: p.ConflictsCheck = True
    tags: p.Tags = []


class OpNetworkRemove(OpCode, tag="OP_NETWORK_REMOVE", kw_only=True):
    """Remove a network that no node group uses."""

    summary_field: ClassVar[str | None] = "network_name"
    rest: ClassVar[tuple[str, ...]] = ("DELETE /2/networks/{network_name}",)
    result_type: ClassVar[str] = "null"

    network_name: p.NetworkName
    force: p.Force = False


class OpNetworkRename(OpCode, tag="OP_NETWORK_RENAME", kw_only=True):
    """Rename a network."""

    rest: ClassVar[tuple[str, ...]] = ("PUT /2/networks/{network_name}/rename",)
    result_type: ClassVar[str] = "nestr"

    network_name: p.NetworkName
    new_name: p.NewName


class OpNetworkSetParams(OpCode, tag="OP_NETWORK_SET_PARAMS", kw_only=True):
    """Change settings of a network; what is not given stays."""

    summary_field: ClassVar[str | None] = "network_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/networks/{network_name}/modify",)
    result_type: ClassVar[str] = "null"

    network_name: p.NetworkName
    gateway: Annotated[Ipv4AddressOrNone | None, doc("IPv4 gateway; none removes it")] = None
    network6: Annotated[Ipv6NetworkOrNone | None, doc("IPv6 network; none removes it")] = None
    gateway6: Annotated[Ipv6AddressOrNone | None, doc("IPv6 gateway; none removes it")] = None
    mac_prefix: p.MacPrefix = None
    dns: Dns = None
    mtu: Annotated[Mtu | None, doc("MTU for guests with cloud-init; 0 removes it")] = None
    add_reserved_ips: AddReservedIps = None
    remove_reserved_ips: Annotated[
        list[Ipv4Address] | None, doc("Addresses that instances may get again")
    ] = None


class OpNetworkConnect(OpCode, tag="OP_NETWORK_CONNECT", kw_only=True):
    """Connect a network to a node group."""

    summary_field: ClassVar[str | None] = "network_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/networks/{network_name}/connect",)
    result_type: ClassVar[str] = "null"

    group_name: p.GroupName
    network_name: p.NetworkName
    network_mode: Annotated[NICMode, doc("How NICs reach the network in this group")]
    network_link: Annotated[NonEmpty, doc("Bridge, switch or routing table of the nodes")]
    network_vlan: Annotated[str, doc("VLAN on the link; empty for none")] = ""
    conflicts_check: p.ConflictsCheck = True


class OpNetworkDisconnect(OpCode, tag="OP_NETWORK_DISCONNECT", kw_only=True):
    """Disconnect a network from a node group."""

    summary_field: ClassVar[str | None] = "network_name"
    rest: ClassVar[tuple[str, ...]] = ("PUT /2/networks/{network_name}/disconnect",)
    result_type: ClassVar[str] = "null"

    group_name: p.GroupName
    network_name: p.NetworkName

"""Commands and variables for NICs on the node's side; pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ganeti import constants, errors
from ganeti.hypervisor.kvm.runtime import Card
from ganeti.model.enums import NicMode
from ganeti.rpc.objects import NodeNic

_VLAN = re.compile(r"(?:\.?(?P<access>\d+))?(?P<trunk>(?::\d+)*)")


@dataclass(frozen=True)
class Vlan:
    """``n`` or ``.n``: untagged member; ``:n:m``: tagged ones; ``.n:m``: both."""

    access: int | None
    trunk: tuple[int, ...]


def attach_plan(card: Card, nic: NodeNic, *, mtu: str | None = None) -> Iterator[list[str]]:
    """Commands that put a tap in its place; pure."""
    tap = card.tap or ""
    if is_communication(card):
        yield from _communication(tap, nic)
        return
    vlan = parse_vlan(str(nic.nicparams.get("vlan") or ""))
    settings = [] if mtu is None else ["mtu", mtu]
    before_up: list[list[str]] = []
    if card.mode == NicMode.BRIDGED:
        settings += ["master", card.link]
        before_up += _bridge_vlan(tap, vlan)
    elif card.mode == NicMode.OPENVSWITCH:
        before_up.append(["ovs-vsctl", "--", "add-port", card.link, tap, *_switch_vlan(vlan)])
    if before_up and settings:
        yield ["ip", "link", "set", "dev", tap, *settings]
        settings = []
    yield from before_up
    yield ["ip", "link", "set", "dev", tap, *settings, "up"]
    if card.mode == NicMode.ROUTED and nic.ip:
        table = ["table", card.link] if card.link else []
        family = _family(nic.ip)
        if card.link:
            yield ["ip", family, "rule", "add", "dev", tap, *table]
        yield ["ip", family, "route", "replace", nic.ip, *table, "proto", "static", "dev", tap]


def detach_plan(card: Card) -> Iterator[list[str]]:
    """Commands that remove what a vanished tap leaves behind; pure."""
    tap = card.tap or ""
    if card.mode == NicMode.OPENVSWITCH:
        yield ["ovs-vsctl", "--if-exists", "del-port", card.link, tap]
    elif card.mode == NicMode.ROUTED and card.link and not is_communication(card):
        for family in ("-4", "-6"):
            yield ["ip", family, "rule", "del", "dev", tap, "table", card.link]


def release_plan(card: Card, nic: NodeNic) -> Iterator[list[str]]:
    """Commands that take a tap which stays from its place, before :func:`detach_plan`; pure."""
    tap = card.tap or ""
    if card.mode == NicMode.BRIDGED:
        # Its VLANs are those of the port, which vanishes.
        yield ["ip", "link", "set", "dev", tap, "nomaster"]
    elif card.mode == NicMode.ROUTED and nic.ip:
        table = ["table", card.link] if card.link and not is_communication(card) else []
        yield ["ip", _family(nic.ip), "route", "del", nic.ip, *table, "dev", tap]


def sysctl_plan(tap: str, nic: NodeNic) -> Iterator[tuple[str, str]]:
    """Files below /proc/sys/net and values: the node answers for the guest and forwards.

    Where the guest only talks to its node, nothing is forwarded, and packets with the address of
    another guest are dropped.
    """
    if tap.startswith(constants.COMMUNICATION_INTERFACE):
        for name, value in (("rp_filter", "1"), ("forwarding", "0"), ("accept_redirects", "0")):
            yield f"ipv4/conf/{tap}/{name}", value
        yield f"ipv6/conf/{tap}/disable_ipv6", "1"
        return
    if not nic.ip:
        return
    if _family(nic.ip) == "-4":
        yield f"ipv4/conf/{tap}/proxy_arp", "1"
        yield f"ipv4/conf/{tap}/forwarding", "1"
    else:
        yield f"ipv6/conf/{tap}/proxy_ndp", "1"
        yield f"ipv6/conf/{tap}/forwarding", "1"


def parse_vlan(text: str) -> Vlan:
    """The parameter ``vlan`` of a card.

    Raises:
        HypervisorError: none of the known forms.
    """
    match = _VLAN.fullmatch(text)
    if not match:
        raise errors.HypervisorError(
            f"vlan '{text}' is not one of the forms 5, .5 (untagged), :6:7 (tagged), .5:6:7 (both)"
        )
    access = match["access"]
    return Vlan(
        access=int(access) if access else None,
        trunk=tuple(int(number) for number in match["trunk"].split(":") if number),
    )


def is_communication(card: Card) -> bool:
    """Whether a tap is for talks between a guest and its node only. Pure."""
    return (card.tap or "").startswith(constants.COMMUNICATION_INTERFACE)


def _communication(tap: str, nic: NodeNic) -> Iterator[list[str]]:
    """The node has the address of its server on the tap; the guest is alone there."""
    yield ["ip", "address", "replace", f"{constants.METADATA_ADDRESS}/32", "dev", tap]
    yield ["ip", "link", "set", "dev", tap, "up"]
    if nic.ip:
        yield ["ip", _family(nic.ip), "route", "replace", nic.ip, "proto", "static", "dev", tap]


def _bridge_vlan(tap: str, vlan: Vlan) -> Iterator[list[str]]:
    if vlan.access is None and not vlan.trunk:
        return
    # A new port is in VLAN 1.
    yield ["bridge", "vlan", "del", "dev", tap, "vid", "1"]
    if vlan.access is not None:
        yield ["bridge", "vlan", "add", "dev", tap, "vid", str(vlan.access), "pvid", "untagged"]
    for number in vlan.trunk:
        yield ["bridge", "vlan", "add", "dev", tap, "vid", str(number)]


def _switch_vlan(vlan: Vlan) -> list[str]:
    words = []
    if vlan.access is not None:
        words.append(f"tag={vlan.access}")
    if vlan.trunk:
        words.append(f"trunks={','.join(map(str, vlan.trunk))}")
    if vlan.access is not None and vlan.trunk:
        words.append("vlan_mode=native-untagged")
    return words


def _family(ip: str) -> str:
    return f"-{ipaddress.ip_interface(ip).version}"

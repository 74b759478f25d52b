"""The network of a copy, and whether its guest has accepted a connection."""

from __future__ import annotations

import ipaddress

import pytest

from ganeti.hypervisor.kvm.devices import Device, describe_own_network
from ganeti.hypervisor.kvm.probing import find_forward, is_accepted
from ganeti.rpc.objects import NodeNic

#: What QEMU 7.2 prints.
SAID = """Hub -1 (net0):
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
  TCP[{state}]       8       127.0.0.1 37059       10.9.8.77    22     0     0
  TCP[HOST_FORWARD]   3       127.0.0.1 37059       10.9.8.77    22     0     0
  UDP[236 sec]        9       10.9.8.77    68       10.9.8.2     67     0     0
"""


def test_only_the_guest_can_answer() -> None:
    assert find_forward(SAID.format(state="SYN_SENT"), 22) == 37059
    assert find_forward(SAID.format(state="SYN_SENT"), 80) is None
    assert not is_accepted(SAID.format(state="SYN_SENT"), 37059)
    assert not is_accepted("", 37059)
    for state in ("ESTABLISHED", "CLOSE_WAIT", "FIN_WAIT_2"):
        assert is_accepted(SAID.format(state=state), 37059)
        assert not is_accepted(SAID.format(state=state), 37060)


def describe(ip: str | None, link: str = "qemu-isolated", **network: str) -> Device:
    return describe_own_network(
        NodeNic(
            uuid="u",
            mac="aa:00:00:00:00:01",
            ip=ip,
            nicparams={"mode": "ext", "link": link},
            netinfo=dict(network) or None,
        )
    )


def test_an_isolated_network_is_the_one_that_the_guest_expects() -> None:
    assert describe("10.1.2.7", network="10.1.0.0/16", gateway="10.1.0.1") == {
        "restrict": "on",
        "net": "10.1.0.0/16",
        "host": "10.1.0.1",
        "dns": "10.1.0.2",
        "dhcpstart": "10.1.2.7",
    }
    assert describe("10.1.2.2")["net"] == "10.1.2.0/24"


@pytest.mark.parametrize("ip", ["10.1.2.1", "10.1.2.2", "10.1.2.3", "10.1.2.254"])
@pytest.mark.parametrize("gateway", [None, "10.1.2.1", "10.1.2.254"])
@pytest.mark.parametrize("length", [16, 24])
def test_no_two_of_it_have_one_address(ip: str, gateway: str | None, length: int) -> None:
    more = {"gateway": gateway} if gateway and gateway != ip else {}
    found = describe(ip, network=f"10.1.0.0/{length}" if length == 16 else "10.1.2.0/24", **more)
    names = [found["host"], found["dns"], found["dhcpstart"]]
    assert len(set(names)) == 3
    assert all(ipaddress.ip_address(n) in ipaddress.ip_network(found["net"]) for n in names)


@pytest.mark.parametrize(
    ("ip", "network"),
    [
        (None, None),
        ("fe80::1", None),
        ("10.1.2.3", "10.9.0.0/24"),
        ("10.1.2.1", "10.1.2.0/30"),
        ("10.1.2.1", "10.1.2.1/32"),
    ],
)
def test_another_address_is_given_by_dhcp(ip: str | None, network: str | None) -> None:
    assert describe(ip, **({"network": network} if network else {})) == {"restrict": "on"}


def test_the_network_of_a_user_is_as_it_was() -> None:
    assert describe("10.1.2.3", link="qemu-user") == {}

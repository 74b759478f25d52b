"""NICs on the node's side: commands, variables, addresses, taps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.hypervisor import nic_scripts
from ganeti.hypervisor.kvm import network, network_plan, params
from ganeti.hypervisor.kvm.runtime import Card
from ganeti.rpc.objects import NodeInstance, NodeNic


def nic(mode: str = "bridged", link: str = "br0", vlan: str = "", **changes: Any) -> NodeNic:
    facts = {"mode": mode, "link": link, "vlan": vlan}
    return NodeNic(uuid="nic-uuid", mac="aa:00:00:00:00:01", nicparams=facts, **changes)


def card(mode: str = "bridged", link: str = "br0") -> Card:
    return Card(uuid="nic-uuid", tap="tap0", mode=mode, link=link)


def plan(one: NodeNic, mtu: str | None = None) -> list[str]:
    made = card(one.nicparams["mode"], one.nicparams["link"])
    return [" ".join(argv) for argv in network_plan.attach_plan(made, one, mtu=mtu)]


def test_bridge() -> None:
    assert plan(nic(), mtu="9000") == ["ip link set dev tap0 mtu 9000 master br0 up"]


def test_a_tap_is_up_only_with_its_vlans() -> None:
    assert plan(nic(vlan=".5"), mtu="9000") == [
        "ip link set dev tap0 mtu 9000 master br0",
        "bridge vlan del dev tap0 vid 1",
        "bridge vlan add dev tap0 vid 5 pvid untagged",
        "ip link set dev tap0 up",
    ]


@pytest.mark.parametrize("text", ["5", ".5"])
def test_bridge_with_an_untagged_vlan(text: str) -> None:
    assert plan(nic(vlan=text))[1:3] == [
        "bridge vlan del dev tap0 vid 1",
        "bridge vlan add dev tap0 vid 5 pvid untagged",
    ]


def test_bridge_with_tagged_vlans() -> None:
    assert plan(nic(vlan=":6:7"))[1:4] == [
        "bridge vlan del dev tap0 vid 1",
        "bridge vlan add dev tap0 vid 6",
        "bridge vlan add dev tap0 vid 7",
    ]


@pytest.mark.parametrize(
    ("vlan", "words"),
    [
        ("", ""),
        (".5", " tag=5"),
        (":6:7", " trunks=6,7"),
        (".5:6", " tag=5 trunks=6 vlan_mode=native-untagged"),
    ],
)
def test_virtual_switch(vlan: str, words: str) -> None:
    assert plan(nic("openvswitch", "sw0", vlan))[0] == f"ovs-vsctl -- add-port sw0 tap0{words}"
    gone = list(network_plan.detach_plan(card("openvswitch", "sw0")))
    assert gone == [["ovs-vsctl", "--if-exists", "del-port", "sw0", "tap0"]]


def test_routed_with_and_without_a_table() -> None:
    assert plan(nic("routed", "100", ip="192.0.2.5")) == [
        "ip link set dev tap0 up",
        "ip -4 rule add dev tap0 table 100",
        "ip -4 route replace 192.0.2.5 table 100 proto static dev tap0",
    ]
    assert plan(nic("routed", "", ip="2001:db8::5")) == [
        "ip link set dev tap0 up",
        "ip -6 route replace 2001:db8::5 proto static dev tap0",
    ]
    assert len(list(network_plan.detach_plan(card("routed", "100")))) == 2
    assert list(network_plan.detach_plan(card("routed", ""))) == []
    assert list(network_plan.detach_plan(card("bridged", "br0"))) == []


def test_a_tap_that_stays_is_released() -> None:
    assert list(network_plan.release_plan(card("bridged", "br0"), nic())) == [
        ["ip", "link", "set", "dev", "tap0", "nomaster"]
    ]
    assert list(network_plan.release_plan(card("routed", "100"), nic(ip="192.0.2.5"))) == [
        ["ip", "-4", "route", "del", "192.0.2.5", "table", "100", "dev", "tap0"]
    ]
    assert list(network_plan.release_plan(card("openvswitch", "sw0"), nic())) == []


def test_a_guest_and_its_node_talk_alone() -> None:
    tap = Card(uuid="u", tap="gnt.com.3", mode="routed", link="communication_rt")
    talks = nic("routed", "communication_rt", ip="169.254.0.5")
    assert [" ".join(argv) for argv in network_plan.attach_plan(tap, talks)] == [
        "ip address replace 169.254.169.254/32 dev gnt.com.3",
        "ip link set dev gnt.com.3 up",
        "ip -4 route replace 169.254.0.5 proto static dev gnt.com.3",
    ]
    settings = dict(network_plan.sysctl_plan("gnt.com.3", talks))
    assert settings["ipv4/conf/gnt.com.3/forwarding"] == "0"
    assert settings["ipv4/conf/gnt.com.3/rp_filter"] == "1"
    assert settings["ipv6/conf/gnt.com.3/disable_ipv6"] == "1"
    assert list(network_plan.detach_plan(tap)) == []
    assert [" ".join(argv) for argv in network_plan.release_plan(tap, talks)] == [
        "ip -4 route del 169.254.0.5 dev gnt.com.3"
    ]


def test_node_answers_for_a_routed_guest() -> None:
    assert dict(network_plan.sysctl_plan("tap0", nic(ip="192.0.2.5"))) == {
        "ipv4/conf/tap0/proxy_arp": "1",
        "ipv4/conf/tap0/forwarding": "1",
    }
    assert "ipv6/conf/tap0/proxy_ndp" in dict(network_plan.sysctl_plan("tap0", nic(ip="::5")))
    assert list(network_plan.sysctl_plan("tap0", nic())) == []


@pytest.mark.parametrize("text", ["x", "5:", "5,6", ":", "..5", "-1", "5;rm"])
def test_wrong_vlans_are_refused(text: str) -> None:
    with pytest.raises(errors.HypervisorError, match="vlan"):
        network_plan.parse_vlan(text)


def test_variables_of_a_script() -> None:
    netinfo = {"name": "net1", "uuid": "net-uuid", "network": "192.0.2.0/24", "tags": ["a", "b"]}
    instance = NodeInstance(
        uuid="u", name="web1", primary_node="n", hypervisor="kvm", tags=("blue", "new")
    )
    one = nic(ip="192.0.2.5", name="first", netinfo=netinfo)
    found = nic_scripts.script_environment(instance, 2, one, "tap7")
    wanted = {
        "INSTANCE": "web1",
        "TAGS": "blue new",
        "INTERFACE": "tap7",
        "INTERFACE_INDEX": "2",
        "INTERFACE_NAME": "first",
        "MODE": "bridged",
        "LINK": "br0",
        "BRIDGE": "br0",
        "IP": "192.0.2.5",
        "NETWORK_NAME": "net1",
        "NETWORK_SUBNET": "192.0.2.0/24",
        "NETWORK_TAGS": "a b",
    }
    assert wanted.items() <= found.items()
    assert "NETWORK_GATEWAY" not in found
    routed = nic_scripts.script_environment(instance, 0, nic("routed", ""), "tap7")
    assert "BRIDGE" not in routed


def test_addresses_of_an_interface() -> None:
    assert network.interface_address("lo") == "127.0.0.1"
    assert network.interface_address("lo", 4) == "127.0.0.1"
    addresses = Path("/proc/net/if_inet6")
    if addresses.exists() and addresses.read_text().startswith("0" * 31 + "1 "):
        assert network.interface_address("lo", 6) == "::1"
    for version in (0, 4, 6):
        with pytest.raises(errors.HypervisorError, match="no-such-if"):
            network.interface_address("no-such-if", version)


def open_nic(one: NodeNic, conf: Path, **chosen: Any) -> list[network.OpenCard]:
    instance = NodeInstance(uuid="u", name="web1", primary_node="n", hypervisor="kvm", nics=(one,))
    found: list[network.OpenCard] = []
    try:
        network.open_cards(instance, params.load(chosen), network.Scripts(conf), found)
    finally:
        network.close(found)
    return found


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (nic(mode="carrier-pigeon"), "unknown mode"),
        (nic(mode="ext", link="any"), "kvm-vif-bridge that should attach it is missing"),
        (nic(link="no-such-br"), "ip link add name no-such-br type bridge"),
    ],
)
def test_cards_that_cannot_be(one: NodeNic, text: str, tmp_path: Path) -> None:
    with pytest.raises(errors.HypervisorError, match=text):
        open_nic(one, tmp_path)


def test_card_on_qemus_own_network_needs_nothing(tmp_path: Path) -> None:
    found = open_nic(nic(mode="ext", link="qemu-user"), tmp_path)
    assert found[0].nic.fds == ()
    assert found[0].card.tap is None


@pytest.mark.root
def test_queues_offloads_and_the_kernels_mover(tmp_path: Path) -> None:
    if os.geteuid() or not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("taps can only be made by root")
    script = tmp_path / "kvm-ifup-os"
    script.write_text(f"#!/bin/sh\ncat /sys/class/net/$INTERFACE/tun_flags >> {tmp_path}/flags\n")
    script.chmod(0o755)
    mover = os.path.exists("/dev/vhost-net")
    for chosen, queues, vhost in (
        ({}, 1, mover),
        ({"vhost_net": False}, 1, False),
        ({"virtio_net_queues": 3}, 3, mover),
        ({"virtio_net_queues": 3, "nic_type": "e1000"}, 1, False),
        ({"vnet_hdr": False}, 1, mover),
    ):
        found = open_nic(nic(mode="ext", link="any"), tmp_path, **chosen)[0].nic
        assert len(found.fds) == queues
        assert len(found.vhost_fds) == (queues if vhost else 0)
    flags = [int(line, 16) for line in (tmp_path / "flags").read_text().split()]
    header = [bool(value & 0x4000) for value in flags]
    assert header == [True, True, True, False, False]
    assert [bool(value & 0x0100) for value in flags] == [False, False, True, False, False]

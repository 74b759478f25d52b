"""Networks, from gnt-network and the cards of instances to hooks and the remote API."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from local_cluster import Cluster

#: Instances that have cards; the fake hypervisor makes none on the node.
ADD = "instance add -n node2 -o noop -t diskless --no-start"


@pytest.fixture(scope="module")
def connected_network(cluster: Cluster) -> Iterator[None]:
    """A connected network of 16 addresses; .0, .1 (the gateway), .5 and .15 are reserved."""
    cluster.ok(
        "network add --network=198.51.100.0/28 --gateway=198.51.100.1"
        " --add-reserved-ips=198.51.100.5 -m aa:bb:cc",
        "net1",
    )
    for words, said in (
        ("net1 bridged br100", "Mode and link are given as -N mode=bridged,link=br100"),
        ("net1 default no-such", "There is no node group 'no-such'"),
    ):
        assert said in cluster.gnt(f"network connect {words}").err
    assert cluster.cells("network list -o group_list") == [[""]]
    cluster.ok("network connect -N mode=bridged,link=br100 net1")
    yield
    cluster.ok("network disconnect net1")
    cluster.ok("network remove net1")
    cluster.ok("cluster verify")


@pytest.fixture
def net1(cluster: Cluster, connected_network: None) -> Iterator[None]:
    """The network, without instances afterwards."""
    yield
    for [name] in cluster.cells("instance list -o name"):
        cluster.ok("instance remove -f", name)
    assert show_map(cluster) == "XX...X.........X"


def addresses(cluster: Cluster, name: str) -> list[str]:
    [[found]] = cluster.cells("instance list -o nic.ips", name)
    return found.split(",")


def show_map(cluster: Cluster) -> str:
    [[found]] = cluster.cells("network list -o map", "net1")
    return found


def test_the_addresses_of_an_instance_through_its_life(cluster: Cluster, net1: None) -> None:
    cluster.ok(
        ADD,
        "--net",
        "0:network=net1,ip=pool",
        "--net",
        "1:network=net1,ip=198.51.100.4",
        "web1.example.com",
    )
    assert addresses(cluster, "web1") == ["198.51.100.2", "198.51.100.4"]
    assert show_map(cluster) == "XXX.XX.........X"
    cells = cluster.cells("instance list -o nic.mode/0,nic.link/0,nic.network.name/0,nic.mac/0")
    assert cells[0][:3] == ["bridged", "br100", "net1"]
    assert cells[0][3].startswith("aa:bb:cc:")
    cluster.ok("instance modify --net 0:ip=pool --net 1:ip=198.51.100.9 web1")
    assert addresses(cluster, "web1") == ["198.51.100.3", "198.51.100.9"]
    assert show_map(cluster) == "XX.X.X...X.....X"
    cluster.ok("instance modify --net add:network=net1,ip=pool --net 1:remove web1")
    assert addresses(cluster, "web1") == ["198.51.100.3", "198.51.100.2"]
    assert show_map(cluster) == "XXXX.X.........X"
    cluster.ok("instance modify --net 0:network=none,ip=none web1")
    assert show_map(cluster) == "XXX..X.........X"
    cluster.ok("cluster verify")


def test_the_address_of_a_reserved_instance_is_taken(cluster: Cluster, net1: None) -> None:
    cluster.ok(f"{ADD} --forthcoming --net 0:network=net1,ip=pool web1.example.com")
    assert show_map(cluster) == "XXX..X.........X"
    cluster.ok(f"{ADD} --net 0:network=net1,ip=pool web2.example.com")
    refused = cluster.gnt(f"{ADD} --net 0:network=net1,ip=198.51.100.2 web3.example.com")
    assert "used by instance web1.example.com" in refused.err
    disconnected = cluster.gnt("network disconnect net1 default")
    assert "web1.example.com" in disconnected.err
    cluster.ok(f"{ADD} --commit web1.example.com")
    assert addresses(cluster, "web1") == ["198.51.100.2"]
    assert addresses(cluster, "web2") == ["198.51.100.3"]
    cluster.ok("cluster verify")


@pytest.mark.usefixtures("net1")
def test_refused_cards(cluster: Cluster) -> None:
    cluster.ok("network add --network=203.0.113.0/30 net2")
    cluster.ok(ADD, "--net", "0:network=net1,ip=198.51.100.2", "web1.example.com")
    cluster.ok(f"{ADD} --no-nics web3.example.com")
    before = cluster.config()
    for number, (net, text) in enumerate(
        (
            ("network=net1,ip=192.0.2.7", "is not an address of network net1 (198.51.100.0/28)"),
            ("network=net1,ip=198.51.100.5", "reserved for something outside"),
            ("network=net1,ip=198.51.100.2", "used by instance web1.example.com"),
            ("network=net1,ip=pool,link=br0", "link is set by network net1"),
            ("network=nosuch,ip=pool", "'nosuch' is not known"),
            ("ip=pool", "name it with network=NAME"),
            ("ip=198.51.100.9", "belongs to network net1"),
            ("network=net2,ip=pool", "not connected to node group default"),
        )
    ):
        words = f"{ADD} --net 0:{net} web2.example.com"
        ran = cluster.gnt(words if number % 2 else f"instance modify --net add:{net} web3")
        assert ran.code == 1, ran
        assert text in ran.err
    assert cluster.config() == before
    cluster.ok("network remove net2")


def test_without_the_check_of_conflicts(cluster: Cluster, net1: None) -> None:
    cluster.ok(
        f"{ADD} --no-conflicts-check",
        "--net",
        "0:ip=198.51.100.9",
        "--net",
        "1:network=net1,ip=198.51.100.5",
        "web1.example.com",
    )
    # the first card is not in the network, so it has no place in its pool
    assert show_map(cluster) == "XX...X.........X"
    refused = cluster.gnt("network disconnect net1")
    assert refused.code == 1
    assert "web1.example.com" in refused.err


def test_a_pool_that_is_exhausted(cluster: Cluster) -> None:
    cluster.ok("network add --network=203.0.113.0/30 --gateway=203.0.113.1 tiny")
    cluster.ok("network connect -N mode=routed,link=7 tiny default")
    try:
        cluster.ok(ADD, "--net", "0:network=tiny,ip=pool", "web1.example.com")
        assert addresses(cluster, "web1") == ["203.0.113.2"]
        refused = cluster.gnt(f"{ADD} --net 0:network=tiny,ip=pool web2.example.com")
        assert refused.code == 1
        assert "no free address left" in refused.err
        cluster.ok("instance remove -f web1")
    finally:
        cluster.ok("network remove -f tiny")


def test_what_is_shown(cluster: Cluster, net1: None) -> None:
    cluster.ok(ADD, "--net", "0:network=net1,ip=pool", "web1.example.com")
    assert cluster.cells("network list", "net1") == [
        ["net1", "198.51.100.0/28", "198.51.100.1", "aa:bb:cc", "default (bridged, br100, )", ""]
    ]
    lines = cluster.ok("network info net1").lines
    assert lines[0] == "Network name: net1"
    assert lines[3:] == [
        "  Subnet: 198.51.100.0/28",
        "  Gateway: 198.51.100.1",
        "  IPv6 Subnet: None",
        "  IPv6 Gateway: None",
        "  Mac Prefix: aa:bb:cc",
        "  Size: 16",
        "  Free: 11 (68.75%)",
        "  Usage map:",
        "        0 XXX..X.........X 15",
        "          (X) used    (.) free",
        "  externally reserved IPs:",
        "    198.51.100.0, 198.51.100.1, 198.51.100.5, 198.51.100.15",
        "  connected to node groups:",
        "    default (mode: bridged, link: br100, vlan: )",
        "  used by 1 instances:",
        "    web1.example.com: 0:198.51.100.2",
    ]


def test_settings(cluster: Cluster) -> None:
    def show_fields() -> list[str]:
        return cluster.cells("network list -o gateway,network6,gateway6,mac_prefix,map", "net5")[0]

    cluster.ok("network add --network=203.0.113.0/29 --gateway=203.0.113.1 net5")
    assert show_fields() == ["203.0.113.1", "-", "-", "-", "XX.....X"]
    cluster.ok(
        "network modify --gateway=203.0.113.2 --network6=2001:db8::/64"
        " --gateway6=2001:db8::1 -m 02:00:00 --add-reserved-ips=203.0.113.5 net5"
    )
    assert show_fields() == ["203.0.113.2", "2001:db8::/64", "2001:db8::1", "02:00:00", "X.X..X.X"]
    cluster.ok(
        "network modify --gateway=none --network6=none --gateway6=none -m none"
        " --remove-reserved-ips=203.0.113.5 net5"
    )
    assert show_fields() == ["-", "-", "-", "-", "X......X"]
    said = cluster.ok("network modify --add-reserved-ips=203.0.113.0 net5").out
    assert "203.0.113.0 is reserved already" in said
    cluster.ok("network rename net5 other")
    cluster.ok("network add-tags other b a")
    assert cluster.ok("network list-tags other").lines == ["a", "b"]
    assert "other" in cluster.paths("node3").ssconf("networks").read_text()
    cluster.ok("network remove other")


@pytest.mark.usefixtures("connected_network")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("add net9", "--network="),
        ("add --network=192.0.2.0 net9", "192.0.2.0/24"),
        ("add --network=192.0.2.0/24 --tags=a$b net9", "is not a tag"),
        ("add --network=192.0.2.0/24 net1", "already"),
        ("modify net1", "Nothing to change"),
        ("modify --gateway=10.0.0.1 net1", "10.0.0.1 is not an address"),
        ("remove net1", "connected to node group default"),
        ("rename nosuch net2", "nosuch"),
        ("connect -N mode=pool,link=x net1 default", "'pool'"),
        ("connect -N mode=routed,link=x,vlan=5 net1 default", "NIC mode routed has no VLAN"),
        ("connect -N colour=red net1 default", "unknown key 'colour'"),
        ("connect -N mode=routed,link=x net1 default", "with mode=bridged, link=br100"),
        ("connect net1 nosuch", "nosuch"),
        ("info nosuch", "nosuch"),
    ],
)
def test_refused(cluster: Cluster, words: str, text: str) -> None:
    before = cluster.config()
    ran = cluster.gnt(f"network {words}")
    assert ran.code == 1, ran
    assert text in ran.err
    assert cluster.config() == before


def test_addresses_of_others_are_found(cluster: Cluster) -> None:
    cluster.ok(f"{ADD} --net 0:ip=203.0.113.9 web1.example.com")
    [[node]] = cluster.cells("node list -o pip", "node1")
    try:
        said = cluster.ok(f"network add --network={node}/24 near").out
        assert f"Reserved {node}" in said
        assert node in cluster.cells("network list -o external_reservations", "near")[0][0]
        cluster.ok("network add --network=203.0.113.0/28 net3")
        refused = cluster.gnt("network connect net3 default")
        assert refused.code == 1
        assert "web1.example.com/0" in refused.err
        cluster.ok("network connect --no-conflicts-check net3 default")
        assert "already" in cluster.ok("network connect net3 default").out
    finally:
        cluster.ok("instance remove -f web1")
        cluster.ok("network remove -f net3")
        cluster.ok("network remove near")


@pytest.mark.usefixtures("connected_network")
def test_dry_run_changes_nothing(cluster: Cluster) -> None:
    before = cluster.config()
    for words in ("add --network=192.0.2.0/24 net9", "remove -f net1"):
        verb, *rest = words.split()
        assert "nothing was changed" in cluster.ok(f"network {verb} --dry-run", *rest).out
    assert cluster.config() == before


def test_a_group_without_the_network_takes_no_instance_of_it(cluster: Cluster, net1: None) -> None:
    cluster.ok("group add rack1")
    cluster.ok("group assign-nodes rack1 node3")
    try:
        cluster.ok("cluster modify --enabled-disk-templates file,sharedfile,diskless")
        cluster.ok(
            "instance add -n node2 -o noop -t sharedfile --disk 0:size=8M --no-start"
            " --net 0:network=net1,ip=pool web1.example.com"
        )
        refused = cluster.gnt("instance failover -f -n node3 web1")
        assert refused.code == 1
        assert "needs network net1" in refused.err
        refused = cluster.gnt("group assign-nodes rack1 node2")
        assert refused.code == 1
        assert "not connected to node group 'rack1'" in refused.err
        cluster.ok("network connect -N mode=routed,link=12 net1 rack1")
        cluster.ok("instance failover -f -n node3 web1")
        assert cluster.cells("instance list -o nic.mode/0,nic.link/0") == [["routed", "12"]]
        cluster.ok("instance remove -f web1")
    finally:
        cluster.ok("network disconnect net1 rack1")
        cluster.ok("group assign-nodes default node3")
        cluster.ok("group remove rack1")


def test_hooks_and_scripts_see_the_network(cluster: Cluster, net1: None) -> None:
    said = cluster.directory / "said"
    cluster.ok("network add-tags net1 blue")
    wanted = "env | grep -E 'NETWORK|NIC0_' | grep -v -E '_MAC=|UUID|POST_' | sort"
    for verb in ("network-connect", "network-disconnect", "network-add", "instance-add"):
        for node in ("node1", "node2"):
            hook = cluster.paths(node).hooks / f"{verb}-post.d" / "tell"
            hook.parent.mkdir(parents=True, exist_ok=True)
            hook.write_text(f"#!/bin/sh\n{wanted} >{said}.{node}.{verb}\n")
            hook.chmod(0o755)
    cluster.ok("network add --network=192.0.2.0/24 --network6=2001:db8::/64 net2")
    cluster.ok("network connect -N mode=openvswitch,link=sw,vlan=7 net2 default")
    cluster.ok("network disconnect net2 default")
    cluster.ok("network remove net2")
    cluster.ok(ADD, "--net", "0:network=net1,ip=pool", "web1.example.com")

    def env(verb: str, node: str = "node1") -> dict[str, str]:
        text = (said.parent / f"said.{node}.{verb}").read_text()
        return dict(line.removeprefix("GANETI_").split("=", 1) for line in text.splitlines())

    assert env("network-add") == {
        "NETWORK_NAME": "net2",
        "NETWORK_SUBNET": "192.0.2.0/24",
        "NETWORK_SUBNET6": "2001:db8::/64",
        "NETWORK_TAGS": "",
        "OBJECT_TYPE": "NETWORK",
        "OP_CODE": "OP_NETWORK_ADD",
    }
    for verb in ("network-connect", "network-disconnect"):
        assert (
            env(verb, "node2").items()
            >= {
                "GROUP_NETWORK_MODE": "openvswitch",
                "GROUP_NETWORK_LINK": "sw",
                "GROUP_NETWORK_VLAN": "7",
            }.items()
        )
    assert (
        env("instance-add", "node2").items()
        >= {
            "INSTANCE_NIC0_IP": "198.51.100.2",
            "INSTANCE_NIC0_MODE": "bridged",
            "INSTANCE_NIC0_LINK": "br100",
            "INSTANCE_NIC0_NETWORK_NAME": "net1",
            "INSTANCE_NIC0_NETWORK_SUBNET": "198.51.100.0/28",
            "INSTANCE_NIC0_NETWORK_GATEWAY": "198.51.100.1",
            "INSTANCE_NIC0_NETWORK_MAC_PREFIX": "aa:bb:cc",
            "INSTANCE_NIC0_NETWORK_TAGS": "blue",
        }.items()
    )
    for verb in ("network-connect", "network-disconnect", "network-add", "instance-add"):
        for node in ("node1", "node2"):
            (cluster.paths(node).hooks / f"{verb}-post.d" / "tell").unlink()


def test_many_at_once_get_addresses_of_their_own(cluster: Cluster, net1: None) -> None:
    names = [f"web{number}.example.com" for number in range(5)]
    for name in names:
        cluster.ok(f"{ADD} --submit --net 0:network=net1,ip=pool", name)
    jobs = [row[0] for row in cluster.cells("job list -o id --pending")]
    for job in jobs:
        cluster.ok("job wait", job)
    found = [addresses(cluster, name)[0] for name in names]
    assert len(set(found)) == len(names)
    assert set(found).isdisjoint({"198.51.100.1", "198.51.100.5"})


def read_metadata(cluster: Cluster, node: str) -> dict[str, object]:
    """What a node has for its guests to read: address -> public and private parameters."""
    directory = cluster.paths(node).metadata
    found = {path.name: json.loads(path.read_text()) for path in directory.glob("*")}
    return {
        address: (item["osparams_public"], item["osparams_private"])
        for address, item in found.items()
    }


def check_what_nodes_keep(cluster: Cluster) -> None:
    assert read_metadata(cluster, "node2") == {}
    cluster.ok("instance start web1")
    assert read_metadata(cluster, "node2") == {"169.254.0.1": ({}, {})}
    text = {"greeting": "hello"}
    cluster.ok("instance modify --os-type bootsector+beat -O greeting=hello web1")
    assert read_metadata(cluster, "node2") == {"169.254.0.1": (text, {})}
    cluster.ok("instance modify -c no web1")
    assert read_metadata(cluster, "node2") == {}
    cluster.ok("instance modify -c yes web1")
    [address] = read_metadata(cluster, "node2")
    assert address.startswith("169.254.0.")
    cluster.ok("instance stop web1")
    assert read_metadata(cluster, "node2") == {}


def test_the_network_between_guests_and_nodes(cluster: Cluster) -> None:
    refused = cluster.gnt(f"{ADD} --no-nics -c yes web1.example.com")
    assert refused.code == 1
    assert "--instance-communication-network" in refused.err
    cluster.ok("cluster modify --instance-communication-network com")
    try:
        cluster.ok(f"{ADD} --no-nics -c yes web1.example.com")
        assert cluster.cells("instance list -o nic.name/0,nic.ip/0,nic.mode/0,nic.link/0") == [
            [
                "ganeti:communication:web1.example.com",
                "169.254.0.1",
                "routed",
                "communication_rt",
            ]
        ]
        check_what_nodes_keep(cluster)
        cluster.ok("instance modify -c no web1")
        assert cluster.cells("instance list -o nic.count", "web1") == [["0"]]
        cluster.ok("instance modify -c yes web1")
        assert cluster.cells("instance list -o nic.mac/0", "web1")[0][0].startswith("52:54:00:")
        cluster.ok("group add rack1")
        assert "rack1" in cluster.cells("network list -o group_list", "com")[0][0]
    finally:
        cluster.ok("instance remove -f web1")
        cluster.ok("cluster modify --instance-communication-network=")
        cluster.ok("network remove -f com")
        cluster.ok("group remove rack1")


@pytest.mark.usefixtures("connected_network")
def test_lists_for_programs(cluster: Cluster) -> None:
    ran = cluster.ok("network list --format json -o name,free_count,group_list")
    assert json.loads(ran.out) == [
        {"name": "net1", "free_count": 12, "group_list": [["default", "bridged", "br100", ""]]}
    ]
    assert "external_reservations" in cluster.ok("network list-fields").out
    assert cluster.cells("network list -o name", "free_count < 5") == []

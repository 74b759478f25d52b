"""Each defect of a configuration is told, in one sentence, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import cluster, config, data, disk, instance, node

from ganeti.config import verify
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.group import NodeGroup
from ganeti.model.network import Network
from ganeti.model.nic import Nic

OWN = disk("disk-1", "web1.example.com")
MASTER = node(1, master_candidate=True)
WEB1 = instance(1, disks=("disk-1",))


def with_disks(*disks: Disk, **more: Any) -> Config:
    return config(disks={each.uuid: each for each in (OWN, *disks)}, **more)


def with_nodes(*nodes: Any, **more: Any) -> Config:
    return config(nodes={each.uuid: each for each in nodes}, **more)


def with_instances(*items: Any, **more: Any) -> Config:
    return config(instances={each.uuid: each for each in items}, **more)


def volume(uuid: str, name: str = "data", **more: Any) -> Disk:
    place = ("xenvg", name)
    kind = DiskTemplate.PLAIN
    return disk(uuid, "x", dev_type=kind, logical_id=place, nodes=("node-2",), **more)


def mirror(uuid: str, *logical_id: Any, **more: Any) -> Disk:
    place = logical_id or ("node-1", "node-2", 11000, 0, 0, "secret")
    nodes = tuple(dict.fromkeys(place[:2]))
    return disk(uuid, "x", dev_type=DiskTemplate.DRBD, logical_id=place, nodes=nodes, **more)


def test_a_sound_configuration_has_no_defect() -> None:
    assert verify.problems(config()) == []


# cluster and nodes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            config(cluster=cluster(master_node="gone")),
            ["master node gone is not in the list of nodes"],
        ),
        (
            with_nodes(node(1), node(2)),
            ["master node node1.example.com is not a master candidate"],
        ),
        (
            config(cluster=cluster(enabled_hypervisors=(), hvparams={})),
            [
                "no hypervisor is enabled",
                "instance web1.example.com uses hypervisor fake, which is not enabled",
            ],
        ),
        (
            config(cluster=cluster(enabled_hypervisors=("fake", "kvm"))),
            ["hypervisor kvm is enabled but has no parameters"],
        ),
        (
            config(cluster=cluster(enabled_disk_templates=())),
            ["no disk template is enabled"],
        ),
        (
            config(cluster=cluster(candidate_certs={"node-1": "a", "gone": "b"})),
            ["certificate of node gone, which does not exist, is accepted"],
        ),
        (
            config(cluster=cluster(candidate_certs={})),
            ["master candidate node1.example.com has no accepted certificate"],
        ),
        (
            with_nodes(MASTER, node(2), nodegroups={}),
            [
                "there is no node group",
                "node node1.example.com belongs to the missing node group group-1",
                "node node2.example.com belongs to the missing node group group-1",
            ],
        ),
        (
            with_nodes(MASTER, node(2, group="gone")),
            ["node node2.example.com belongs to the missing node group gone"],
        ),
        *(
            (
                with_nodes(MASTER, node(2, **facts)),
                ["node node2.example.com is more than one of master candidate, drained and offline"]
                * (len(facts) > 1)
                + ["master candidate node2.example.com has no accepted certificate"]
                * ("master_candidate" in facts),
            )
            for facts in (
                {"drained": True},
                {"offline": True},
                {"master_candidate": True},
                {"drained": True, "offline": True},
                {"master_candidate": True, "drained": True},
                {"master_candidate": True, "offline": True},
            )
        ),
        (
            with_nodes(MASTER, node(2, uuid="b"), node(2, uuid="c")),
            ["node name node2.example.com is used 2 times"],
        ),
    ],
)
def test_clusters_and_nodes(found: Config, expected: list[str]) -> None:
    assert verify.problems(found) == expected


def test_lost_nodes_and_instances_are_told_by_name() -> None:
    lost = with_nodes(MASTER, node(2, group="gone"))
    assert verify.find_lost_nodes(lost) == {"node2.example.com": "gone"}
    assert verify.defects(lost) == []
    lost = with_instances(instance(2, primary_node="gone"), disks={})
    assert verify.find_lost_instances(lost) == {"web2.example.com": "gone"}
    assert verify.defects(lost) == []


# instances ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (config(disks={}), ["instance web1.example.com has the missing disk disk-1"]),
        (
            with_instances(instance(1, disks=("disk-1", "disk-1"))),
            [
                "instance web1.example.com: disk disk-1 is number 1 but is called disk/0",
                "instance web1.example.com has disk disk-1 twice",
            ],
        ),
        (with_instances(base.replace(WEB1, name="")), ["instance inst-1 has no name"]),
        (
            with_instances(instance(1, primary_node="gone")),
            ["instance web1.example.com has the missing primary node gone"],
        ),
        (
            with_instances(base.replace(WEB1, primary_node="")),
            [
                "disk disk-1 does not lie on the primary node of web1.example.com",
                "instance web1.example.com has the missing primary node (none)",
            ],
        ),
        (
            with_instances(base.replace(WEB1, hypervisor=None)),
            ["instance web1.example.com has no hypervisor"],
        ),
        (
            with_instances(base.replace(WEB1, hypervisor="kvm")),
            ["instance web1.example.com uses hypervisor kvm, which is not enabled"],
        ),
        (
            config(disks={"disk-1": base.replace(OWN, iv_name="disk/3")}),
            ["instance web1.example.com: disk disk-1 is number 0 but is called disk/3"],
        ),
        (
            with_instances(WEB1, instance(2, name="web1.example.com")),
            ["instance name web1.example.com is used 2 times"],
        ),
        (
            with_instances(WEB1, instance(2, nics=WEB1.nics)),
            ["MAC address aa:00:00:00:00:01 is used 2 times"],
        ),
        (
            with_instances(WEB1, instance(2, network_port=11000), instance(3, network_port=11000)),
            ["TCP port 11000 is used 2 times"],
        ),
        (
            with_instances(
                base.replace(WEB1, network_port=11000),
                cluster=cluster(tcpudp_port_pool=(11000, 11001)),
            ),
            ["TCP port 11000 is used and in the pool of free ports"],
        ),
        (
            with_instances(WEB1, instance(2, network_port=11000), instance(3, network_port=11001)),
            [],
        ),
    ],
)
def test_instances(found: Config, expected: list[str]) -> None:
    assert verify.problems(found) == expected


def test_a_promise_may_lack_what_a_real_instance_needs() -> None:
    promise = {"forthcoming": True, "hypervisor": None, "name": "", "nics": (), "primary_node": ""}
    assert verify.problems(with_instances(WEB1, instance(2, **promise))) == []
    assert (
        verify.problems(with_instances(WEB1, instance(2, **promise), instance(3, **promise))) == []
    )
    lost = with_instances(WEB1, instance(2, **{**promise, "primary_node": "gone"}))
    assert verify.problems(lost) == ["instance inst-2 has the missing primary node gone"]


# disks --------------------------------------------------------------------------------------------


def make_disk(**more: Any) -> Disk:
    return disk("d", "x", **more)


def make_shared_disk(uuid: str, nodes: tuple[str, ...] = ()) -> Disk:
    kind = DiskTemplate.SHAREDFILE
    return disk(uuid, "x", dev_type=kind, nodes=nodes, logical_id=("loop", "/x"))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            with_instances(WEB1, instance(2, disks=("disk-1",))),
            ["disk disk-1 is attached to 2 instances: web1.example.com, web2.example.com"],
        ),
        (
            config(disks={"disk-1": OWN, "other": make_disk()}),
            ["disk d is listed under the uuid other"],
        ),
        (with_disks(make_disk(logical_id=())), ["disk d has no type or no logical id"]),
        (with_disks(make_disk(dev_type=None)), ["disk d has no type or no logical id"]),
        (with_disks(make_disk(logical_id=(), dev_type=None, forthcoming=True)), []),
        (
            with_disks(make_disk(logical_id=("loop", ["x"]))),
            ["disk d has a logical id that is not a place of a file disk"],
        ),
        (
            with_disks(mirror("d", "node-1", "node-2", "port", 0, 0, "s")),
            ["disk d has a logical id that is not a place of a drbd disk"],
        ),
        (
            with_disks(mirror("d", children=(volume("v", name=None),))),  # type: ignore[arg-type]
            ["disk d has a logical id that is not a place of a drbd disk"],
        ),
        (with_disks(make_disk(nodes=("node-2", "gone"))), ["disk d lies on the missing node gone"]),
        (
            config(disks={"disk-1": base.replace(OWN, nodes=("node-2",))}),
            ["disk disk-1 does not lie on the primary node of web1.example.com"],
        ),
        (config(disks={"disk-1": base.replace(OWN, nodes=("node-2", "node-1"))}), []),
        (config(disks={"disk-1": base.replace(OWN, nodes=())}), []),
        (
            with_disks(make_disk(logical_id=OWN.logical_id)),
            [f"2 disks of type file use the same place {OWN.logical_id}"],
        ),
        (with_disks(make_disk(logical_id=OWN.logical_id, nodes=("node-2",))), []),
        (
            with_disks(make_shared_disk("d"), make_shared_disk("e", nodes=("node-2",))),
            ["2 disks of type sharedfile use the same place ('loop', '/x')"],
        ),
        (with_disks(volume("v"), make_disk(logical_id=("xenvg", "data"))), []),
        (
            with_disks(volume("v"), mirror("d", children=(volume("a"), volume("b", "meta")))),
            ["2 disks of type plain use the same place ('xenvg', 'data')"],
        ),
        (with_disks(mirror("d", children=(volume("a"), volume("b", "meta")))), []),
    ],
)
def test_disks(found: Config, expected: list[str]) -> None:
    assert verify.problems(found) == expected


@pytest.mark.parametrize(
    ("disks", "expected"),
    [
        ([("node-1", "node-2", 11000, 0, 0, "a"), ("node-1", "node-2", 11001, 1, 1, "b")], []),
        ([("node-1", "node-2", 11000, 0, 1, "a"), ("node-2", "node-1", 11001, 2, 1, "b")], []),
        (
            [("node-1", "node-2", 11000, 0, 0, "a"), ("node-3", "node-1", 11001, 1, 0, "b")],
            ["DRBD minor 0 of node node1.example.com belongs to disks d0, d1"],
        ),
        (
            [("gone", "node-2", 11000, 0, 0, "a"), ("gone", "node-3", 11001, 0, 0, "b")],
            [
                "disk d0 lies on the missing node gone",
                "disk d1 lies on the missing node gone",
                "DRBD minor 0 of node gone belongs to disks d0, d1",
            ],
        ),
        (
            [("node-1", "node-2", 11000, 0, 0, "a"), ("node-1", "node-2", 11001, 1, 1, "a")],
            [f"disk d{n} has the same DRBD secret as another disk" for n in (0, 1)],
        ),
        (
            [("node-1", "node-1", 11000, 0, 1, "a"), ("node-1", "node-2", 11001, 2, 1, "b")],
            ["both sides of disk d0 are on one node"],
        ),
        (
            [("node-1", "node-2", 11000, 0, 0, "a"), ("node-1", "node-2", 11000, 1, 1, "b")],
            ["TCP port 11000 is used 2 times"],
        ),
        ([("node-1", "node-2", 0, 0, 0, "a"), ("node-1", "node-2", 0, 1, 1, "b")], []),
    ],
)
def test_mirrors(disks: list[tuple[Any, ...]], expected: list[str]) -> None:
    made = [mirror(f"d{n}", *place) for n, place in enumerate(disks)]
    assert verify.problems(with_disks(*made)) == expected


# networks -----------------------------------------------------------------------------------------

LAN = Network(uuid="lan-1", name="lan", network="198.51.100.0/29", reservations="0" * 8)


def networked(*nics: Nic, network: Network = LAN, connected: bool = True, **more: Any) -> Config:
    """``web1`` with these NICs; the only group is connected to the network or not."""
    group = NodeGroup(uuid="group-1", name="default", networks={"lan-1": {}} if connected else {})
    values = {"nodegroups": {"group-1": group}, "networks": {network.uuid: network}, **more}
    return with_instances(base.replace(WEB1, nics=nics), **values)


def nic(number: int, ip: str | None, network: str | None = "lan-1") -> Nic:
    return Nic(uuid=f"nic-{number}", mac=f"aa:00:00:00:01:{number:02x}", ip=ip, network=network)


def reserve(*last: int, **more: Any) -> Network:
    bits = "".join("1" if number in last else "0" for number in range(8))
    return base.replace(LAN, reservations=bits, **more)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (networked(), []),
        (networked(nic(1, "198.51.100.3"), network=reserve(3)), []),
        (networked(nic(1, None)), []),
        (networked(nic(1, "198.51.100.3", None)), []),
        (networked(network=base.replace(LAN, reservations=None)), []),
        (
            networked(networks={}),
            ["node group default is connected to the missing network lan-1"],
        ),
        (
            networked(nic(1, None), nic(2, None, "gone")),
            ["NIC 1 of instance web1.example.com is in the missing network gone"],
        ),
        (
            networked(nic(1, None), connected=False),
            [
                "NIC 0 of instance web1.example.com is in network lan, which is not connected to"
                " node group default"
            ],
        ),
        (
            networked(network=base.replace(LAN, network="here and there")),
            ["network lan has an invalid address: 'here and there'"],
        ),
        (
            networked(network=base.replace(LAN, network="x" * 99)),
            [f"network lan has an invalid address: '{'x' * 60}'"],
        ),
        *(
            (
                networked(nic(1, "198.51.100.3"), network=base.replace(LAN, **{key: "0" * 7})),
                ["the map of addresses of network lan has not one place for each"],
            )
            for key in ("reservations", "ext_reservations")
        ),
        (
            networked(nic(1, "198.51.100.3"), nic(2, "198.51.100.3"), network=reserve(3)),
            ["address 198.51.100.3 of network lan is used by 2 NICs"],
        ),
        (
            networked(nic(1, "192.0.2.1")),
            ["192.0.2.1 is used in network lan (198.51.100.0/29)"],
        ),
        (
            networked(nic(1, "198.51.100.3")),
            ["address 198.51.100.3 of network lan is used by an instance but free in the pool"],
        ),
        (
            networked(nic(1, "198.51.100.3"), network=reserve(3, 5)),
            ["address 198.51.100.5 of network lan is taken, but no instance uses it"],
        ),
        (
            networked(networks={"lan-1": LAN, "lan-2": base.replace(LAN, uuid="lan-2")}),
            ["network name lan is used 2 times"],
        ),
    ],
)
def test_networks(found: Config, expected: list[str]) -> None:
    assert verify.problems(found) == expected


def test_a_nic_of_an_instance_without_a_node_is_in_no_wrong_network() -> None:
    promise = instance(
        2, forthcoming=True, primary_node="", name="", nics=(nic(1, None), nic(2, None, "gone"))
    )
    found = networked(connected=False)
    found = config(
        nodegroups=found.groups,
        networks=found.networks,
        instances={**data().instances, "inst-2": promise},
    )
    assert verify.problems(found) == ["NIC 1 of instance inst-2 is in the missing network gone"]

"""The whole configuration: look-ups, inheritance of parameters, the next state."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.model import base
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate, HypervisorName, NodeRole
from ganeti.model.group import NodeGroup
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node


def node(uuid: str, name: str, **facts: Any) -> Node:
    facts = {"group": "g1", "primary_ip": "192.0.2.1", "secondary_ip": "192.0.2.1", **facts}
    return Node(uuid=uuid, name=name, **facts)


def instance(uuid: str, name: str, **facts: Any) -> Instance:
    facts = {"primary_node": "n1", "hypervisor": HypervisorName.KVM, **facts}
    return Instance(uuid=uuid, name=name, **facts)


def config(*objects: Any, **facts: Any) -> Config:
    """A cluster with one group, two nodes and what is given."""
    cluster = Cluster(
        uuid="c",
        cluster_name="cluster.example.com",
        master_node=NodeUuid("n1"),
        master_ip="192.0.2.9",
        master_netdev="lo",
        master_netmask=32,
        **facts,
    )
    some: list[Any] = [
        NodeGroup(uuid="g1", name="default"),
        node("n1", "node1.example.com", master_candidate=True),
        node("n2", "node2.example.com", offline=True),
        *objects,
    ]
    containers: dict[str, dict[str, Any]] = {
        name: {obj.uuid: obj for obj in some if isinstance(obj, kind)}
        for name, kind in (
            ("nodegroups", NodeGroup),
            ("nodes", Node),
            ("instances", Instance),
            ("disks", Disk),
        )
    }
    return Config(ConfigData(version=1, cluster=cluster, **containers))


# names


def test_nodes_and_instances_have_short_names() -> None:
    found = config(instance("i1", "web.example.com"), instance("i2", "web2.example.com"))
    for name in ("node1", "node1.example", "node1.example.com", "n1", "NODE1", "Node1.Example.Com"):
        assert found.node(name).uuid == "n1"
    for name in ("web", "i1", "Web.EXAMPLE"):
        assert found.instance(name).uuid == "i1"


def test_a_whole_name_counts_more_than_a_part() -> None:
    found = config(
        instance("i1", "web"), instance("i2", "web.example.com"), instance("i3", "WEB.example.org")
    )
    assert found.instance("web").uuid == "i1"
    assert found.instance("Web").uuid == "i1"
    assert found.instance("web.example.ORG").uuid == "i3"


def test_an_ambiguous_name_is_refused_with_all_it_could_be() -> None:
    found = config(instance("i1", "web.a.org"), instance("i2", "web.b.org"))
    with pytest.raises(errors.OpPrereqError) as caught:
        found.instance("web")
    assert caught.value.args[0] == "instance name 'web' is ambiguous: web.a.org, web.b.org"
    assert caught.value.args[1] == errors.ErrorCode.INVAL


@pytest.mark.parametrize(
    "name", ["", ".", "node1.", "node", "node11", "ode1", "1", "node1.example.co"]
)
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(errors.OpPrereqError, match="is not known") as caught:
        config().node(name)
    assert caught.value.args[1] == errors.ErrorCode.NOENT


def test_a_close_name_is_suggested() -> None:
    with pytest.raises(errors.OpPrereqError, match=r"did you mean web\.example\.com\?"):
        config(instance("i1", "web.example.com")).instance("wbe.example.com")


def test_groups_have_no_short_names() -> None:
    found = config(NodeGroup(uuid="g2", name="rack.two"))
    assert found.group("rack.two").uuid == found.group("g2").uuid == "g2"
    for name in ("rack", "RACK.TWO"):
        with pytest.raises(errors.OpPrereqError, match="node group"):
            found.group(name)


# relations


def test_disks_and_nodes_of_an_instance() -> None:
    drbd = Disk(uuid="d1", dev_type=DiskTemplate.DRBD, nodes=("n1", "n2"))
    file = Disk(uuid="d2", dev_type=DiskTemplate.FILE, nodes=("n1",))
    both = instance("i1", "a", disks=("d2", "d1"))
    one = instance("i2", "b", disks=("d2",))
    none = instance("i3", "c", primary_node="n2")
    found = config(drbd, file, both, one, none)
    assert [disk.uuid for disk in found.disks_of(both)] == ["d2", "d1"]
    assert found.disk_template(both) == "mixed"
    assert found.disk_template(one) == "file"
    assert found.disk_template(none) == "diskless"
    assert found.instance_nodes(both) == ["n1", "n2"]
    assert found.instance_nodes(one) == ["n1"]
    assert [item.uuid for item in found.primaries["n1"]] == ["i1", "i2"]
    assert [item.uuid for item in found.secondaries["n2"]] == ["i1"]
    assert found.secondaries["n1"] == []


@pytest.mark.parametrize(
    ("facts", "role"),
    [
        ({}, NodeRole.REGULAR),
        ({"offline": True}, NodeRole.OFFLINE),
        ({"drained": True, "offline": True}, NodeRole.DRAINED),
        ({"master_candidate": True}, NodeRole.CANDIDATE),
    ],
)
def test_roles_of_nodes(facts: dict[str, bool], role: NodeRole) -> None:
    item = node("n3", "x", **facts)
    assert item.role("n1") is role
    assert item.role("n3") is NodeRole.MASTER


def test_nodes_by_what_they_are() -> None:
    found = config(node("n3", "other", group="g2"))
    assert found.master.uuid == "n1"
    assert [item.uuid for item in found.online_nodes()] == ["n1", "n3"]
    assert [item.uuid for item in found.candidates()] == ["n1"]
    assert [item.uuid for item in found.group_nodes("g1")] == ["n1", "n2"]


# inheritance

ALL = {"a": 0, "b": 0, "c": 0, "d": 0}


def test_hypervisor_parameters_come_from_cluster_os_variant_and_instance() -> None:
    found = config(
        hvparams={"kvm": ALL, "fake": {"a": "other"}},
        os_hvp={
            "debian": {"kvm": {"b": 1, "c": 1, "d": 1}, "fake": {"a": 9}},
            "debian+minimal": {"kvm": {"c": 2, "d": 2}},
        },
    )
    web = instance("i1", "web", os="debian+minimal", hvparams={"d": 3})
    assert found.hvparams(web) == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert found.hvparams_for("kvm", "debian", {}) == {"a": 0, "b": 1, "c": 1, "d": 1}
    assert found.hvparams_for("kvm", "other", {}) == ALL
    assert found.hvparams_for("unknown", "other", {"x": 1}) == {"x": 1}


def test_backend_parameters_come_from_cluster_and_instance() -> None:
    found = config(beparams={"default": {"vcpus": 1, "maxmem": 128}})
    web = instance("i1", "web", beparams={"maxmem": 512})
    assert found.beparams(web) == {"vcpus": 1, "maxmem": 512}


def test_nic_parameters_come_from_cluster_network_and_nic() -> None:
    found = config(
        NodeGroup(uuid="g2", name="two", networks={"net": {"mode": "routed", "link": "100"}}),
        nicparams={"default": {"mode": "bridged", "link": "br0", "vlan": ""}},
    )
    bridged = {"mode": "bridged", "link": "br0", "vlan": ""}
    assert found.nicparams_for({}) == bridged
    assert found.nicparams_for({}, "net", "g1") == bridged
    routed = {"mode": "routed", "link": "7", "vlan": ""}
    assert found.nicparams_for({"link": "7"}, "net", "g2") == routed


def test_node_parameters_come_from_cluster_group_and_node_but_some_not_from_the_node() -> None:
    group = NodeGroup(uuid="g2", name="two", ndparams={"ssh_port": 23, "spindle_count": 2})
    found = config(group, ndparams={"ssh_port": 22, "spindle_count": 1, "exclusive_storage": False})
    item = node("n3", "x", group="g2", ndparams={"spindle_count": 5, "exclusive_storage": True})
    assert found.ndparams(item) == {
        "ssh_port": 23,
        "spindle_count": 5,
        "exclusive_storage": False,
    }
    assert found.ndparams(node("n4", "y", group="gone"))["ssh_port"] == 22


def test_os_parameters_come_from_os_variant_and_instance() -> None:
    found = config(osparams={"debian": {"a": "1", "b": "1"}, "debian+min": {"b": "2", "c": "2"}})
    assert found.osparams_for("debian+min", {"c": "3"}) == {"a": "1", "b": "2", "c": "3"}
    assert found.osparams_for("debian", {}) == {"a": "1", "b": "1"}


def test_disk_parameters_and_policy_come_from_cluster_and_group() -> None:
    group = NodeGroup(
        uuid="g2",
        name="two",
        diskparams={"plain": {"stripes": 2}},
        ipolicy={"minmax": [], "vcpu-ratio": 2.0},
    )
    found = config(
        group,
        diskparams={"plain": {"stripes": 1, "x": 1}},
        ipolicy={"minmax": [{"min": {}, "max": {}}], "vcpu-ratio": 4.0, "spindle-ratio": 32.0},
    )
    assert found.diskparams("plain", "g2") == {"stripes": 2, "x": 1}
    assert found.diskparams("plain", "gone") == {"stripes": 1, "x": 1}
    assert found.ipolicy("g2") == {"minmax": [], "vcpu-ratio": 2.0, "spindle-ratio": 32.0}


def test_filled_parameters_are_the_callers_own() -> None:
    found = config(beparams={"default": {"vcpus": 1}})
    found.beparams_for({})["vcpus"] = 99
    assert found.beparams_for({}) == {"vcpus": 1}


# the next state


def test_a_change_makes_a_new_state_and_leaves_the_old_one() -> None:
    before = config(instance("i1", "web"))
    changed = base.replace(before.node("n1"), offline=True)
    after = before.apply(
        [("nodes", "n1", changed), ("instances", "i2", instance("i2", "db"))],
        [("instances", "i1"), ("instances", "never-there")],
        None,
        mtime=7.0,
    )
    assert (before.node("n1").offline, after.node("n1").offline) == (False, True)
    assert (set(before.instances), set(after.instances)) == ({"i1"}, {"i2"})
    assert after.data.serial_no == before.data.serial_no + 1
    assert after.data.mtime == 7.0
    assert after.cluster is before.cluster
    assert after.groups is before.groups
    with pytest.raises(errors.OpPrereqError):
        after.instance("web")


def test_the_cluster_object_can_be_changed() -> None:
    before = config()
    cluster = base.replace(before.cluster, cluster_name="other.example.com")
    assert before.apply([], [], cluster, mtime=1.0).cluster.cluster_name == "other.example.com"

"""What parameters of the cluster change: a job is run, and the nodes are looked at.

Store, operations, node handlers and files are real (see ``one_process``). That a value is kept and
shown is tested elsewhere; here it must make a difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.opcodes import registry, wire
from ganeti.rpc.calls import NodeCalls

WEB = "web.example.com"


def do(cluster: OneProcess, op_id: str, **params: Any) -> Any:
    return cluster.run(wire.decode(registry.find(op_id), params))


def change(cluster: OneProcess, **params: Any) -> None:
    do(cluster, "OP_CLUSTER_SET_PARAMS", **params)


def add(cluster: OneProcess, name: str = WEB, **params: Any) -> None:
    usual: dict[str, Any] = {
        "mode": "create",
        "os_type": "noop",
        "disk_template": "sharedfile",
        "disks": [{"size": 1}],
        "nics": [],
        "pnode": "node2.example.com",
    }
    do(cluster, "OP_INSTANCE_CREATE", instance_name=name, **{**usual, **params})


def check_refused(cluster: OneProcess, text: str, **params: Any) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        add(cluster, "other.example.com", **params)


def guest(cluster: OneProcess, name: str = WEB) -> Any:
    """What the hypervisor of its node says of a guest."""
    [instance] = [item for item in cluster.config.instances.values() if item.name == name]
    node = cluster.config.nodes[instance.primary_node]
    return cluster.call_one(node, NodeCalls.instance_info, name, "fake", {})


def hook(cluster: OneProcess, path: str, variable: str) -> Path:
    """A hook on the master that writes down a variable."""
    directory = cluster.paths["node1"].hooks / f"{path}-post.d"
    directory.mkdir(parents=True)
    told = cluster.root / "told"
    (directory / "tell").write_text(f'#!/bin/sh\necho "${variable}" >>{told}\n')
    (directory / "tell").chmod(0o755)
    return told


def test_beparams_are_what_a_new_guest_gets(cluster: OneProcess) -> None:
    change(cluster, beparams={"maxmem": 96, "minmem": 96, "vcpus": 2})
    add(cluster)
    assert (guest(cluster)["memory"], guest(cluster)["vcpus"]) == (96, 2)


def test_hvparams_migration_mode_says_how_guests_are_moved(cluster: OneProcess) -> None:
    told = hook(cluster, "instance-migrate", "GANETI_MIGRATE_LIVE")
    add(cluster)
    move = {"instance_name": WEB, "target_node": "node3.example.com"}
    do(cluster, "OP_INSTANCE_MIGRATE", **move)
    change(cluster, hvparams={"fake": {"migration_mode": "non-live"}})
    do(cluster, "OP_INSTANCE_MIGRATE", **{**move, "target_node": "node2.example.com"})
    assert told.read_text() == "True\nFalse\n"


def test_always_failover_stops_the_guest_to_move_it(cluster: OneProcess) -> None:
    add(cluster, beparams={"always_failover": True})
    move = {"instance_name": WEB, "target_node": "node3.example.com"}
    do(cluster, "OP_INSTANCE_MIGRATE", **move)
    assert "Failing over instead of migrating: its backend parameter always_failover is set" in (
        cluster.log
    )
    assert not any("* migrating" in line for line in cluster.log)
    do(cluster, "OP_INSTANCE_SET_PARAMS", instance_name=WEB, beparams={"always_failover": False})
    before = len(cluster.log)
    do(cluster, "OP_INSTANCE_MIGRATE", **{**move, "target_node": "node2.example.com"})
    assert not any("Failing over" in line for line in cluster.log[before:])


def test_candidate_pool_size_makes_and_unmakes_candidates(cluster: OneProcess) -> None:
    def candidates() -> int:
        return sum(node.master_candidate for node in cluster.config.nodes.values())

    assert candidates() == 1
    change(cluster, candidate_pool_size=2)
    assert candidates() == 2
    change(cluster, candidate_pool_size=3)
    assert candidates() == 3
    change(cluster, candidate_pool_size=1)
    assert candidates() == 1


def test_compression_tools_are_those_that_a_move_may_use(cluster: OneProcess) -> None:
    add(cluster, disk_template="file")
    move = {"instance_name": WEB, "target_node": "node3.example.com"}
    change(cluster, compression_tools=["gzip"])
    with pytest.raises(errors.OpPrereqError, match="compress; choose from none, gzip, or"):
        do(cluster, "OP_INSTANCE_MOVE", **move, compress="gzip-fast")
    do(cluster, "OP_INSTANCE_MOVE", **move, compress="gzip")
    change(cluster, compression_tools=["gzip", "gzip-fast"])
    back = {**move, "target_node": "node2.example.com"}
    do(cluster, "OP_INSTANCE_MOVE", **back, compress="gzip-fast")


def test_blacklisted_os_is_not_installed(cluster: OneProcess) -> None:
    change(cluster, blacklisted_os=[["add", "noop"]])
    check_refused(cluster, "noop")
    change(cluster, blacklisted_os=[["remove", "noop"]])
    add(cluster)


def test_osparams_and_private_ones_reach_the_scripts_of_the_os(cluster: OneProcess) -> None:
    told = cluster.root / "os-told"
    for paths in cluster.paths.values():
        definition = paths.os_search_path[0]
        if definition.is_symlink():
            definition.unlink()
        mine = definition / "mine"
        mine.mkdir(parents=True)
        (mine / "ganeti_api_version").write_text("20\n")
        (mine / "parameters.list").write_text("size How large\npassword Of root\n")
        (mine / "variants.list").write_text("")
        for script in ("export", "import", "rename", "verify"):
            (mine / script).write_text("#!/bin/sh\n")
        (mine / "create").write_text(f'#!/bin/sh\necho "$OSP_SIZE $OSP_PASSWORD" >{told}\n')
        for script in ("create", "export", "import", "rename", "verify"):
            (mine / script).chmod(0o755)
    change(cluster, osparams={"mine": {"size": "5"}})
    change(cluster, osparams_private_cluster={"mine": {"password": "secret"}})
    add(cluster, os_type="mine")
    assert told.read_text() == "5 secret\n"


def test_shared_file_storage_dir_is_where_new_disks_are(cluster: OneProcess) -> None:
    add(cluster)
    change(cluster, shared_file_storage_dir="/srv/ganeti/shared-file-storage/new")
    for paths in cluster.paths.values():
        paths.under("/srv/ganeti/shared-file-storage/new").mkdir(exist_ok=True)
    add(cluster, "other.example.com")
    places = [str(disk.logical_id[1]) for disk in cluster.config.disks.values()]
    assert sum("/shared-file-storage/new/" in place for place in places) == 1


@pytest.mark.parametrize(
    ("policy", "params", "text"),
    [
        ({"disk-templates": ["sharedfile"]}, {"disk_template": "file"}, "template file is not"),
        ({"minmax": [{"max": {"memory-size": 128}}]}, {"beparams": {"maxmem": 256}}, "memory-size"),
        ({"minmax": [{"max": {"cpu-count": 1}}]}, {"beparams": {"vcpus": 2}}, "cpu-count"),
    ],
)
def test_ipolicy_of_cluster_and_group(
    cluster: OneProcess, policy: dict[str, Any], params: dict[str, Any], text: str
) -> None:
    change(cluster, ipolicy=policy)
    check_refused(cluster, text, **params)
    do(cluster, "OP_GROUP_ADD", group_name="free")
    # The group has the last word.
    change(cluster, ipolicy=dict.fromkeys(policy, "default"))
    do(cluster, "OP_GROUP_SET_PARAMS", group_name="default", ipolicy=policy)
    check_refused(cluster, text, **params)


def test_default_iallocator_params_are_given_to_the_allocator(cluster: OneProcess) -> None:
    told = cluster.root / "allocator-told"
    where = cluster.paths["node1"].iallocator_search_path[0]
    where.mkdir(parents=True, exist_ok=True)
    answer = '{"success": false, "info": "full", "result": []}'
    (where / "mine").write_text(f"#!/bin/sh\necho \"$@\" >{told}\necho '{answer}'\n")
    (where / "mine").chmod(0o755)
    change(cluster, default_iallocator="mine", default_iallocator_params={"weight": "3"})
    check_refused(cluster, "full", pnode=None)
    assert "--weight=3" in told.read_text()


@pytest.fixture
def switch(cluster: OneProcess, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ovs-vsctl; what it was asked for."""
    root = cluster.paths["node2"].root
    monkeypatch.setenv("GANETI_ROOTDIR", str(root))
    where = root / "usr/local/sbin"
    where.mkdir(parents=True)
    told = cluster.root / "switch-told"
    (where / "ovs-vsctl").write_text(f'#!/bin/sh\necho "$@" >>{told}\n')
    (where / "ovs-vsctl").chmod(0o755)
    return told


def test_ovs_makes_a_virtual_switch_on_the_node(cluster: OneProcess, switch: Path) -> None:
    name = "node2.example.com"
    wanted = {"ovs": True, "ovs_name": "sw7", "ovs_link": "eth7"}
    do(cluster, "OP_NODE_SET_PARAMS", node_name=name, ndparams=wanted)
    words = "-- --may-exist add-br sw7 -- --may-exist add-port sw7 eth7\n"
    assert switch.read_text() == words
    # Nothing is asked of a node that has what it is to have.
    do(cluster, "OP_NODE_SET_PARAMS", node_name=name, ndparams={"spindle_count": 3})
    assert switch.read_text() == words
    do(cluster, "OP_NODE_SET_PARAMS", node_name=name, ndparams={"ovs_link": "eth8"})
    assert switch.read_text().endswith("add-port sw7 eth8\n")


def test_ndparams_of_cluster_and_group_reach_all_nodes(cluster: OneProcess, switch: Path) -> None:
    change(cluster, ndparams={"ovs": True})
    assert switch.read_text() == "-- --may-exist add-br switch1\n" * 3
    do(cluster, "OP_GROUP_SET_PARAMS", group_name="default", ndparams={"ovs_name": "sw1"})
    assert switch.read_text().count("add-br sw1\n") == 3


def test_a_switch_that_cannot_be_made_is_told_and_the_change_stays(cluster: OneProcess) -> None:
    name = "node2.example.com"
    do(cluster, "OP_NODE_SET_PARAMS", node_name=name, ndparams={"ovs": True, "ovs_name": "a b"})
    assert any("the virtual switch a b could not be made on node node2" in x for x in cluster.log)

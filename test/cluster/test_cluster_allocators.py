"""Places chosen by allocators: for new instances, for many at once, for all of a node."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from local_cluster import REPOSITORY, Cluster

ADD = "instance add -o noop -t sharedfile --disk 0:size=8M --no-nics"


def free(cluster: Cluster, **memory: int) -> None:
    """What each node says of its free memory, in MiB."""
    for node, amount in memory.items():
        rules = {"node_info": {"*": {"lie": {"memory_free": amount, "memory_total": 10000}}}}
        (cluster.paths(node).conf / "fake-hypervisor.json").write_text(json.dumps(rules))


def allocator(cluster: Cluster, name: str, text: str) -> Path:
    """A program of the administrator on the master, in Python."""
    directory = cluster.root() / "usr/lib/ganeti/iallocators"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/usr/bin/env python3\nimport json, sys\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def empty(cluster: Cluster) -> Iterator[None]:
    free(cluster, node1=3000, node2=9000, node3=6000)
    yield
    for (name,) in cluster.cells("instance list -o name"):
        cluster.ok("instance remove -f", name)


def places(cluster: Cluster) -> dict[str, str]:
    rows = cluster.cells("instance list -o name,pnode")
    return {name.partition(".")[0]: node.partition(".")[0] for name, node in rows}


def test_a_new_instance_goes_where_most_is_free(cluster: Cluster) -> None:
    out = cluster.ok(f"{ADD} -I most-free", "web1.example.com").out
    assert "Selected nodes for instance web1.example.com via iallocator most-free: node2" in out
    free(cluster, node2=500)
    cluster.ok(ADD, "web2.example.com")
    cluster.ok("cluster modify --default-iallocator", "")
    assert places(cluster) == {"web1": "node2", "web2": "node3"}
    nowhere = cluster.gnt(ADD, "web3.example.com")
    assert nowhere.code == 1
    assert "say where to create the instance with --node" in nowhere.err
    assert "gnt-cluster modify --default-iallocator=hail" in nowhere.err
    cluster.ok("cluster modify --default-iallocator=hail")


def test_no_place_says_why_for_each_node(cluster: Cluster) -> None:
    free(cluster, node1=10, node2=10, node3=10)
    ran = cluster.gnt(f"{ADD} -I most-free", "web1.example.com")
    assert ran.code == 1
    assert "node2.example.com: memory: needs 64 MiB, free 10" in ran.err
    assert places(cluster) == {}


def test_programs_are_told_of_places_that_others_just_chose(cluster: Cluster) -> None:
    """Two instances of which each node has memory for one; without it both go to node2."""
    path = allocator(
        cluster,
        "slow",
        """
import time
told = json.load(open(sys.argv[1]))
free = {name: node["free_memory"] for name, node in told["nodes"].items()}
for item in told["instances"].values():
    free[item["nodes"][0]] -= 5000
time.sleep(1)
best = max(sorted(free), key=free.get)
print(json.dumps({"success": True, "info": "", "result": [best]}))
""",
    )
    try:
        with ThreadPoolExecutor() as pool:
            names = ("web1.example.com", "web2.example.com")
            list(pool.map(lambda name: cluster.ok(f"{ADD} -I slow", name), names))
    finally:
        path.unlink()
    assert set(places(cluster).values()) == {"node2", "node3"}


def test_many_at_once(cluster: Cluster, tmp_path: Path) -> None:
    item = {"disk_template": "sharedfile", "disks": [{"size": 8}], "nics": [], "os_type": "noop"}
    names = [f"many{n}.example.com" for n in range(4)]
    large = {**item, "instance_name": "large.example.com", "beparams": {"memory": 20000}}
    file = tmp_path / "instances.json"
    file.write_text(json.dumps([{**item, "instance_name": name} for name in names]))
    cluster.ok("instance batch-create -I most-free", str(file))
    assert set(places(cluster).values()) == {"node2"}
    file.write_text(json.dumps([large, {**item, "instance_name": "small.example.com"}]))
    ran = cluster.gnt("instance batch-create -I most-free", str(file))
    assert ran.code == 1
    assert "No nodes can be allocated for instance large.example.com" in ran.err
    assert "small" in places(cluster)


def test_a_node_is_evacuated_and_migrated(cluster: Cluster) -> None:
    for name in ("web1.example.com", "web2.example.com"):
        cluster.ok(f"{ADD} -n node2", name)
    assert cluster.add("fixed.example.com").code == 0
    ran = cluster.gnt("node evacuate -f -I most-free node2")
    assert ran.code == 1
    assert "no place was found for fixed.example.com (its disks are on one node" in ran.err
    assert set(places(cluster).values()) == {"node2"}
    ran = cluster.gnt("node evacuate --dry-run -I most-free node2")
    assert (ran.code, ran.out) == (1, "")
    assert "no place was found for fixed.example.com" in ran.err
    cluster.ok("instance remove -f", "fixed.example.com")
    jobs, config = len(cluster.cells("job list -o id")), cluster.config()
    ran = cluster.ok("node evacuate --dry-run -I most-free node2")
    assert ran.lines == [
        f"web{number}.example.com: migrate to node(s) node3.example.com" for number in (1, 2)
    ]
    assert "Dry run: nothing was changed" in ran.err
    assert set(places(cluster).values()) == {"node2"}
    assert (len(cluster.cells("job list -o id")), cluster.config()) == (jobs + 1, config)
    cluster.ok("node evacuate -f -I most-free node2")
    assert places(cluster) == {"web1": "node3", "web2": "node3"}
    cluster.ok("node migrate -f -n node1 node3")
    assert places(cluster) == {"web1": "node1", "web2": "node1"}
    cluster.ok("node failover -f -I most-free node1")
    assert set(places(cluster).values()) == {"node2"}
    assert {row[0] for row in cluster.cells("instance list -o status")} == {"running"}


def test_to_another_group(cluster: Cluster) -> None:
    cluster.ok(f"{ADD} -n node2", "web1.example.com")
    alone = cluster.gnt("instance change-group -I most-free", "web1.example.com")
    assert "there is no other node group" in alone.err
    cluster.ok("group add", "far")
    cluster.ok("group assign-nodes", "far", "node1")
    try:
        cluster.ok("instance change-group -I most-free", "web1.example.com")
        assert places(cluster) == {"web1": "node1"}
        cluster.ok("instance change-group -I most-free --to default", "web1.example.com")
        assert places(cluster) == {"web1": "node2"}
        there = cluster.gnt("instance change-group -I most-free --to default", "web1.example.com")
        assert "is in group default already" in there.err
    finally:
        cluster.ok("group assign-nodes", "default", "node1")
        cluster.ok("group remove", "far")


BAD = {
    "silent": ("pass", "it is not JSON"),
    "poor": ("print(json.dumps({'success': True}))", "the key 'info' is missing"),
    "strange": (
        "print(json.dumps({'success': True, 'info': '', 'result': ['nosuch.example.com']}))",
        "there is no node nosuch.example.com",
    ),
    "short": (
        "print(json.dumps({'success': True, 'info': '', 'result': []}))",
        "1 different node(s) were requested",
    ),
    "broken": ("sys.exit('no licence')", "no licence"),
}


@pytest.mark.parametrize("name", BAD)
def test_answers_that_cannot_be_used(cluster: Cluster, name: str) -> None:
    text, said = BAD[name]
    allocator(cluster, name, text)
    ran = cluster.gnt(f"{ADD} -I {name}", "web1.example.com")
    assert ran.code == 1
    assert f"allocator '{name}'" in ran.err
    assert said in ran.err
    assert places(cluster) == {}


def test_allocators_do_nothing_but_move(cluster: Cluster) -> None:
    cluster.ok(f"{ADD} -n node2", "web1.example.com")
    jobs = [[{"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": "web1.example.com"}]]
    allocator(
        cluster,
        "evil",
        f"print(json.dumps({{'success': True, 'info': '', 'result': [[], [], {jobs!r}]}}))",
    )
    ran = cluster.gnt("node evacuate -f -I evil node2")
    assert ran.code == 1
    assert "'OP_INSTANCE_REMOVE' is not a way to move an instance" in ran.err
    assert "web1" in places(cluster)


def test_requests_can_be_looked_at(cluster: Cluster) -> None:
    cluster.ok(f"{ADD} -n node2", "web1.example.com")
    asked = json.loads(cluster.ok("debug iallocator -m node-evacuate", "web1.example.com").out)
    assert asked["request"] == {
        "type": "node-evacuate",
        "instances": ["web1.example.com"],
        "evac_mode": "all",
    }
    assert asked["nodes"]["node2.example.com"]["free_memory"] == 9000
    assert asked["nodes"]["node2.example.com"]["i_pri_up_memory"] == 64
    assert asked["instances"]["web1.example.com"]["disk_space_total"] == 8
    answer = json.loads(
        cluster.ok(
            "debug iallocator --dir out -I most-free -m allocate -t diskless --disks 4",
            "new.example.com",
        ).out
    )
    assert answer["result"] == ["node2.example.com"]


# power -------------------------------------------------------------------------------------------


def helper(cluster: Cluster, text: str) -> str:
    path = cluster.directory / "oob"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_power_and_health(cluster: Cluster) -> None:
    log = cluster.directory / "oob.log"
    program = helper(
        cluster,
        f"""echo "$1 $2" >> {log}
case "$1" in
power-status) echo '{{"powered": true}}';;
health) echo '[["fan1", "OK"], ["disk0", "WARNING"]]';;
esac""",
    )
    without = cluster.gnt("node power status", "node3")
    assert "gnt-node modify --node-parameters oob_program=PATH" in without.err
    nowhere = cluster.ok("node health")
    assert "None of these nodes has an out-of-band helper" in nowhere.err
    cluster.ok(f"node modify --node-parameters oob_program={program} node3")
    assert "powered" in cluster.ok("node power status", "node3").out
    assert "fan1=OK, disk0=WARNING" in cluster.ok("node health", "node3").out
    cluster.ok("node power -f --power-delay 0 off", "node3")
    assert cluster.cells("node list -o offline,powered", "node3") == [["Y", "N"]]
    cluster.ok("node power --power-delay 0 on", "node3")
    cluster.ok("node modify --offline no", "node3")
    assert cluster.cells("node list -o offline,powered", "node3") == [["N", "Y"]]
    assert "power-off node3.example.com" in log.read_text()
    helper(cluster, "echo nonsense")
    assert "cannot be used" in cluster.gnt("node health", "node3").out
    master = cluster.gnt("node power -f off", "node1")
    assert master.code == 1


def stations(cluster: Cluster, *nodes: str) -> Path:
    """Out-of-band helper that ends and starts the node daemon; returns what it writes."""
    log = cluster.directory / "stations.log"
    starts = "\n".join(
        f"""{node}.example.com)
          GANETI_ROOTDIR={cluster.root(node)} GANETI_HOSTNAME={node}.example.com \\
          PYTHONPATH={REPOSITORY} {sys.executable} -m ganeti.node.daemon >/dev/null 2>&1 ;;"""
        for node in nodes
    )
    program = helper(
        cluster,
        f"""echo "$1 $2" >> {log}
case "$1" in
power-off) kill -9 $(cat "{cluster.directory}/${{2%%.*}}/var/run/ganeti/ganeti-noded.pid") ;;
power-on) case "$2" in
{starts}
esac ;;
esac""",
    )
    for node in nodes:
        cluster.ok(f"node modify --node-parameters oob_program={program} {node}")
    return log


def test_emergency_power_off_and_back(cluster: Cluster) -> None:
    log = stations(cluster, "node2", "node3")
    for node in ("node1", "node2"):
        cluster.ok(f"{ADD} -n {node}", f"{node}-web.example.com")
    cluster.ok(f"{ADD} -n node2 --no-start", "idle.example.com")
    refused = cluster.gnt("cluster epo -f", "node1", "node2")
    assert (refused.code, "node1.example.com is the master" in refused.err) == (1, True)
    off = cluster.ok("cluster epo -f --all")
    assert "node1.example.com is still on; switch it off by hand" in off.out
    assert sorted(log.read_text().splitlines()) == [
        "power-off node2.example.com",
        "power-off node3.example.com",
    ]
    rows = cluster.cells("node list -o name,offline,powered")
    assert [row[1:] for row in rows] == [["N", "-"], ["Y", "N"], ["Y", "N"]]
    states = dict(cluster.cells("instance list -o name,admin_state"))
    assert states["node2-web.example.com"] == states["node1-web.example.com"] == "up"
    assert (cluster.paths("node1").fake_hypervisor / "node1-web.example.com").exists() is False
    again = cluster.ok("cluster epo -f", "node2", "node3")
    assert "node2.example.com is off already" in again.out
    cluster.ok("cluster epo --on -f --all --power-delay 0")
    rows = cluster.cells("node list -o name,offline,powered,role")
    assert [row[1:] for row in rows] == [["N", "-", "M"], ["N", "Y", "C"], ["N", "Y", "C"]]
    states = dict(cluster.cells("instance list -o name,status"))
    assert states == {
        "idle.example.com": "ADMIN_down",
        "node1-web.example.com": "running",
        "node2-web.example.com": "running",
    }


def test_a_node_in_a_directory_is_no_host_to_restart(cluster: Cluster) -> None:
    ran = cluster.gnt("node powercycle --yes", "node3")
    assert ran.code == 1
    assert "has no host of its own" in ran.err

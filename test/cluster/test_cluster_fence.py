"""A dead node: nothing starts elsewhere without proof, and with proof all that may does."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from local_cluster import Cluster, tool
from storage_nodes import StorageNodes
from waiting import wait_for

from ganeti import constants
from ganeti.base import process
from ganeti.luxi.client import Client
from ganeti.model.repair_tags import PREFIX

WEB, DB, FILES = "web1.example.com", "db1.example.com", "files1.example.com"
Both = tuple[Cluster, StorageNodes]


@pytest.fixture(scope="module")
def cluster(storage_cluster: Both) -> Cluster:
    """web1 and db1 are mirrored on node2 and node3, files1 is only on node2."""
    made, _nodes = storage_cluster
    for name in (WEB, DB):
        made.ok("instance add -n node2:node3 -o noop -t drbd --disk 0:size=16M --no-nics", name)
    made.ok("instance add -n node2 -o noop -t plain --disk 0:size=16M --no-nics", FILES)
    made.ok("instance add-tags", WEB, f"{PREFIX}failover")
    return made


@pytest.fixture
def nodes(storage_cluster: Both) -> StorageNodes:
    return storage_cluster[1]


def helper(cluster: Cluster, status: str) -> Path:
    """Out-of-band helper of node2 that notes what it is told; returns its notes."""
    program, log = cluster.directory / "oob", cluster.directory / "oob.log"
    program.write_text(
        f'#!/bin/sh\necho "$1" >> {log}\ncase "$1" in power-status) {status};; esac\n'
    )
    program.chmod(0o755)
    log.unlink(missing_ok=True)
    cluster.ok(f"node modify --node-parameters oob_program={program} node2")
    return log


def cut_power(cluster: Cluster, nodes: StorageNodes) -> None:
    """Nothing of node2 runs any more, its guests neither."""
    assert tool("kill-node", cluster.directory, "node2").code == 0
    nodes.power_cut("node2")
    for guest in cluster.paths("node2").fake_hypervisor.iterdir():
        guest.unlink()


def count_states(cluster: Cluster) -> dict[str, float]:
    """Instances of dead nodes that should run, by state, as the metric tells."""
    with Client(cluster.paths().luxi_socket) as client:
        rows = client.query_metrics()["ganeti_recovery_instances"]
    assert {state for [state], _count in rows} >= {"failed", "waiting", "left"}
    return {state: count for [state], count in rows if count}


OFF = "echo '{\"powered\": false}'"
ON = "echo '{\"powered\": true}'"


def places(cluster: Cluster) -> dict[str, tuple[str, str]]:
    rows = cluster.cells("instance list -o name,pnode,status")
    return {name: (node.partition(".")[0], status) for name, node, status in rows}


def test_a_node_that_answers_is_not_fenced(cluster: Cluster) -> None:
    log = helper(cluster, OFF)
    ran = cluster.gnt("node fence -f node2")
    assert ran.code == 1
    assert "node node2.example.com answers, so it is not dead" in ran.out + ran.err
    assert not log.exists()
    assert "is the master" in cluster.gnt("node fence -f --confirm node1").err


def test_silence_alone_starts_nothing(cluster: Cluster, nodes: StorageNodes) -> None:
    before = places(cluster)
    cut_power(cluster, nodes)
    cluster.ok("node modify --node-parameters oob_program=default node2")
    ran = cluster.gnt("node fence -f node2")
    assert ran.code == 1
    assert "repeat with --confirm" in ran.out + ran.err
    for answer, said in (
        (ON, "says that it is still on"),
        ("exit 1", "nothing proves"),
        ("echo perhaps", "cannot be used"),
    ):
        helper(cluster, answer)
        ran = cluster.gnt("node fence -f node2")
        assert ran.code == 1
        assert said in ran.out + ran.err
    assert cluster.cells("node list -o offline", "node2") == [["N"]]
    assert {name: node for name, (node, _status) in places(cluster).items()} == {
        name: node for name, (node, _status) in before.items()
    }


def test_a_dry_run_says_who_fails_over_and_who_does_not(cluster: Cluster) -> None:
    log = helper(cluster, OFF)
    ran = cluster.ok("node fence --dry-run node2")
    assert f"{WEB} fails over" in ran.out
    assert f"{DB} stays: tag {PREFIX}failover is missing" in ran.out
    assert f"{FILES} stays: its disks (plain) are only on that node" in ran.out
    assert not log.exists()


def test_the_plan_of_a_death_names_places_and_reasons(cluster: Cluster) -> None:
    plan = cluster.ok("cluster recovery plan node2").out
    assert plan.startswith("If node2.example.com died now:\n  after 0 s: nothing more by itself")
    assert f"  {WEB} on node3.example.com (order 500)\n" in plan
    assert f"These stay:\n  {DB}: tag {PREFIX}failover is missing" in plan
    assert cluster.cells("node list -o offline", "node2") == [["N"]]
    assert "node 'node9' is not known" in cluster.gnt("cluster recovery plan node9").err


def test_a_node_that_is_proven_dead_is_replaced(cluster: Cluster) -> None:
    log = helper(cluster, OFF)
    cluster.ok("node fence -f node2", timeout=120)
    assert log.read_text().split() == ["power-off", "power-status"]
    found = places(cluster)
    assert found[WEB] == ("node3", "running")
    assert found[DB][0] == "node2"
    assert cluster.cells("node list -o offline,powered", "node2") == [["Y", "N"]]
    status = cluster.ok("cluster recovery status").out
    assert "is offline, since its death was proven" in status
    assert f"{WEB} was started on node3.example.com (job " in status
    assert f"{DB} stays: tag {PREFIX}failover is missing" in status
    assert count_states(cluster) == {"recovered": 1, "left": 2}
    cluster.ok("instance shutdown --ignore-offline", FILES)
    assert count_states(cluster) == {"recovered": 1, "left": 1}
    # The rest follows when an administrator wants it.
    cluster.ok("node fence -f --confirm --all-instances node2", timeout=120)
    assert places(cluster)[DB] == ("node3", "running")


def test_a_silent_node_is_fenced_by_the_master(cluster: Cluster, nodes: StorageNodes) -> None:
    nodes.boot("node2")
    refused = cluster.gnt("node modify --offline=no node2")
    assert "it does not answer" in refused.err
    assert "recorded as switched off: gnt-node power on switches it on" in refused.err
    assert tool("start-node", cluster.directory, "node2").code == 0
    both = cluster.gnt("node modify --offline=no --node-powered=no node2")
    assert "cannot be online and switched off at the same time" in both.err
    cluster.ok("node modify --offline=no node2")
    assert cluster.cells("node list -o offline,powered", "node2") == [["N", "Y"]]
    cluster.ok("instance activate-disks", WEB)
    cluster.ok("instance migrate -f", WEB, timeout=120)
    assert places(cluster)[WEB] == ("node2", "running")
    log = helper(cluster, OFF)
    ran = cluster.ok("cluster modify --auto-fence-after=30")
    assert "never fenced: node1.example.com, node3.example.com" in ran.out
    status = cluster.ok("cluster recovery status").out
    assert "node2.example.com died before" in status
    assert "; it came back at " in status
    assert re.search(
        r"node2.example.com +\d+s +\d+s out-of-band helper \S+ +(answers|is fenced in)", status
    )
    assert re.search(r"node3.example.com .* is never fenced: nothing can prove its death", status)
    assert cluster.ok("cluster recovery pause 1h").out.startswith("Recovery pauses until ")
    status = cluster.ok("cluster recovery status").out
    assert "Recovery pauses until " in status
    assert "is not fenced: recovery pauses" in status
    cluster.ok("cluster recovery continue")
    cut_power(cluster, nodes)
    wait_for(lambda: places(cluster)[WEB] == ("node3", "running"), "web1 on node3", 150, pause=1)
    assert log.read_text().split() == ["power-off", "power-status"]
    assert ["NODE_FENCE(node2.example.com)", "success"] in cluster.cells(
        "job list -o summary,status"
    )


def read_lease(cluster: Cluster, node: str) -> float:
    """Seconds of the lease that a node has now; 0 when it needs none."""
    try:
        return float(json.loads(cluster.paths(node).node_lease.read_text())["seconds"])
    except FileNotFoundError:
        return -1.0


def stop_master(cluster: Cluster) -> str:
    """What it logged since it was told to stop."""
    log = cluster.paths().log / "master-daemon.log"
    before = len(log.read_text())
    pid = cluster.pid(constants.MASTERD)
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    process.wait_exit(pid, 60)
    return log.read_text()[before:]


def test_a_master_that_is_stopped_needs_no_node_to_end_its_guests(cluster: Cluster) -> None:
    """Nobody starts them elsewhere meanwhile. A node that does not answer is named."""
    wait_for(lambda: read_lease(cluster, "node3") == 30, "a lease of node3", 30)
    assert "were not told" not in stop_master(cluster)
    assert [read_lease(cluster, node) for node in ("node1", "node3")] == [0, 0]
    assert cluster.start_master().code == 0
    wait_for(lambda: read_lease(cluster, "node3") == 30, "a new lease of node3", 30)
    pid = cluster.pid(constants.NODED, "node3")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert re.search(
        "not told that this master stops: .*: node3.example.com$", stop_master(cluster), re.M
    )
    assert [read_lease(cluster, node) for node in ("node1", "node3")] == [0, 30]
    assert tool("start-node", cluster.directory, "node3").code == 0
    assert cluster.start_master().code == 0

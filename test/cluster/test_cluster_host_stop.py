"""A host that is shut down: its guests stop in their order, or move, and start again later."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from local_cluster import Cluster, Ran
from test_cluster_watcher import watch
from waiting import wait_for

from ganeti import constants
from ganeti.luxi.client import Client

pytestmark = pytest.mark.long

DNS, WEB, SHARED = "dns.example.com", "web.example.com", "shared.example.com"


def empty(cluster: Cluster, *words: str, node: str = "node2") -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "ganeti.node.host_stop", *words],
        env=cluster.env(node),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)


def running(cluster: Cluster, node: str = "node2") -> list[str]:
    directory = cluster.paths(node).fake_hypervisor
    return sorted(path.name for path in directory.iterdir() if path.name[0] != ".")


def jobs(cluster: Cluster, kind: str) -> list[list[Any]]:
    """Summary, begin and end of jobs of a kind, by their begin."""
    rows = cluster.cells("job list -o summary,start_ts,end_ts")
    found = [[row[0], *map(json.loads, row[1:])] for row in rows if row[0].startswith(kind)]
    return sorted(found, key=lambda row: row[1])


@pytest.fixture(scope="module", autouse=True)
def guests(cluster: Cluster) -> None:
    for name in (DNS, WEB):
        assert cluster.add(name).code == 0
    cluster.ok("instance add-tags", DNS, "ganeti:order:1")


@pytest.fixture(autouse=True)
def host_runs(cluster: Cluster) -> Iterator[None]:
    yield
    assert empty(cluster, "start").code == 0
    for name in (DNS, WEB):
        cluster.ok("instance startup", name)


def test_guests_stop_in_their_order_and_start_when_the_host_is_back(cluster: Cluster) -> None:
    with Client(cluster.paths().luxi_socket) as client:
        before = client.wait_for_events(None, 0)["last"]
    done = empty(cluster, "stop", "--always")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"ganeti-guests: the master stops or moves: {WEB}, {DNS}\n"
    assert running(cluster) == []
    web, dns = jobs(cluster, "INSTANCE_SHUTDOWN")
    assert (web[0], dns[0]) == (f"INSTANCE_SHUTDOWN({WEB})", f"INSTANCE_SHUTDOWN({DNS})")
    assert web[2] <= dns[1]
    states = cluster.cells("instance list -o name,admin_state")
    assert states == [[DNS, "up"], [WEB, "up"]]
    with Client(cluster.paths().luxi_socket) as client:
        seen = client.wait_for_events(before, 0, {"kind": ["instance"]})["events"]
    assert "ended" not in {event["change"] for event in seen}
    refused = cluster.gnt("instance startup", WEB)
    assert refused.code == 1
    assert "this host is being shut down" in refused.err
    assert empty(cluster, "start").code == 0
    assert watch(cluster).code == 0
    wait_for(lambda: running(cluster) == [DNS, WEB], "they run again")


def test_without_a_master_they_are_stopped_here(cluster: Cluster) -> None:
    cluster.kill_master()
    done = empty(cluster, "stop", "--always")
    assert done.code == 0
    assert "the master does not help" in done.err
    assert f"stopping here: {DNS}, {WEB}" in done.out
    assert running(cluster) == []
    assert cluster.start_master().code == 0


def test_one_whose_job_does_not_come_is_stopped_here(cluster: Cluster) -> None:
    script = cluster.paths("node2").conf / "fake-hypervisor.json"
    cluster.ok("cluster queue drain")
    script.write_text(json.dumps({"stop": {WEB: {"delay": 0.1}}}))
    done = empty(cluster, "stop", "--always", "--timeout", "1")
    script.unlink()
    cluster.ok("cluster queue undrain")
    assert done.code == 0
    assert running(cluster) == []


def test_guests_whose_disks_are_elsewhere_too_are_migrated(cluster: Cluster) -> None:
    cluster.ok("instance add -n node2 -o noop -t sharedfile --disk 0:size=8M --no-nics", SHARED)
    done = empty(cluster, "stop", "--always", "--migrate")
    assert done.code == 0
    assert running(cluster) == []
    [[node, status]] = cluster.cells("instance list -o pnode,status", SHARED)
    assert (node != "node2.example.com", status) == (True, "running")
    cluster.ok("instance remove -f", SHARED)


def test_it_does_nothing_while_the_host_runs(cluster: Cluster) -> None:
    done = empty(cluster, "stop")
    assert done.code == 0
    assert "not being shut down; nothing to do" in done.out
    assert running(cluster) == [DNS, WEB]
    assert cluster.pid(constants.NODED, "node2") is not None

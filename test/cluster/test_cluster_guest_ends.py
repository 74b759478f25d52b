"""A guest that ends by itself is started at once, without a run of the regular watcher."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_cluster import Cluster, copy_cluster
from needs import needs_programs
from test_cluster_watcher import kill, watch
from waiting import wait_for

from ganeti import constants, errors
from ganeti.base import process
from ganeti.base.files import FileLock
from ganeti.luxi.client import Client
from ganeti.net.tls.contexts import Identity
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

pytestmark = pytest.mark.long

WEB, SHOP = "web1.example.com", "shop.example.com"


@pytest.fixture(scope="module", autouse=True)
def guests(cluster: Cluster) -> None:
    assert cluster.add(WEB).code == 0
    assert cluster.add(SHOP, node="node3").code == 0


@pytest.fixture(autouse=True)
def rested(cluster: Cluster) -> Iterator[None]:
    """All runs, and no attempt is remembered."""
    yield
    for path in memories(cluster):
        path.unlink()
    for name in (WEB, SHOP):
        cluster.ok("instance startup", name)


def memories(cluster: Cluster) -> list[Path]:
    return list(cluster.paths().data.glob("watcher.*.data"))


def guest(cluster: Cluster, name: str = WEB, node: str = "node2") -> Path:
    return cluster.paths(node).fake_hypervisor / name


def log(cluster: Cluster) -> str:
    path = cluster.paths().log / "node-daemon.log"
    return path.read_text() if path.exists() else ""


def starts(cluster: Cluster, name: str = WEB) -> list[str]:
    """Jobs that start an instance."""
    rows = cluster.cells("job list -o id,summary")
    return [job for job, summary in rows if summary == f"INSTANCE_STARTUP({name})"]


def wait_for_guest(path: Path) -> None:
    wait_for(path.exists, f"{path.name} is started again", 60)


def events(cluster: Cluster, after: str) -> list[dict[str, Any]]:
    with Client(cluster.paths().luxi_socket) as client:
        return list(client.wait_for_events(after, 0, {"kind": ["instance"]})["events"])


def position(cluster: Cluster) -> str:
    with Client(cluster.paths().luxi_socket) as client:
        return str(client.wait_for_events(None, 0)["last"])


def test_it_is_back_by_a_job_of_the_watcher_and_an_event_tells(cluster: Cluster) -> None:
    known, before = starts(cluster), position(cluster)
    guest(cluster).unlink()
    wait_for_guest(guest(cluster))
    [job] = [job for job in starts(cluster) if job not in known]
    cluster.ok("job watch", job)
    assert "gnt:watcher" in cluster.ok("job info", job).out
    [event] = [event for event in events(cluster, before) if event["change"] == "ended"]
    assert event["object"] == WEB
    assert event["data"] == {"node": "node2.example.com", "status": "ERROR_down"}


def test_what_jobs_do_to_a_guest_is_no_end_by_itself(cluster: Cluster) -> None:
    before = position(cluster)
    cluster.ok("instance reboot --type=hard", WEB)
    cluster.ok("instance shutdown --no-remember", WEB)
    cluster.ok("instance startup", WEB)
    known = starts(cluster)
    # A guest that does end afterwards is told after all that came before.
    guest(cluster, SHOP, "node3").unlink()
    wait_for_guest(guest(cluster, SHOP, "node3"))
    assert starts(cluster) == known
    ended = [event["object"] for event in events(cluster, before) if event["change"] == "ended"]
    assert ended == [SHOP]


def test_one_that_ends_again_waits_and_is_given_up_at_last(cluster: Cluster) -> None:
    guest(cluster).unlink()
    wait_for_guest(guest(cluster))
    known = starts(cluster)
    guest(cluster).unlink()
    wait_for(lambda: log(cluster).count("was tried a moment ago") > 0, "it waits")
    assert not guest(cluster).exists()
    [path] = memories(cluster)
    with FileLock(cluster.paths().watcher_memory_lock).hold():  # a watcher may be at work
        memory = json.loads(path.read_text())
        memory["instance"][WEB]["restart_when"] -= 60
        path.write_text(json.dumps(memory))
    wait_for_guest(guest(cluster))
    assert len(starts(cluster)) == len(known) + 1
    memory = json.loads(path.read_text())
    assert memory["instance"][WEB]["restart_count"] == 2
    # The same memory holds for the regular watcher, although it has seen the guest run.
    assert watch(cluster).code == 0
    assert json.loads(path.read_text())["instance"][WEB]["restart_count"] == 2
    memory["instance"][WEB]["restart_count"] = 5
    path.write_text(json.dumps(memory))
    known = starts(cluster)
    guest(cluster).unlink()
    wait_for(lambda: f"{WEB} is down and was started 5 times" in log(cluster), "it is given up")
    assert watch(cluster).code == 0
    assert starts(cluster) == known


def test_nothing_is_done_while_the_watcher_is_paused(cluster: Cluster) -> None:
    cluster.ok("cluster watcher pause 1h")
    guest(cluster).unlink()
    wait_for(lambda: f"paused; left alone: node2.example.com:{WEB}" in log(cluster), "it is told")
    assert not guest(cluster).exists()
    cluster.ok("cluster watcher continue")
    assert watch(cluster).code == 0
    wait_for_guest(guest(cluster))


def test_a_job_that_works_on_the_instance_goes_first(cluster: Cluster) -> None:
    script = cluster.paths("node2").conf / "fake-hypervisor.json"
    script.write_text(json.dumps({"plug_nic": {WEB: {"delay": 3}}}))
    known = starts(cluster)
    cluster.ok("instance modify --submit --hotplug --net add", WEB)
    wait_for(lambda: _is_locked(cluster), "the job works")
    guest(cluster).unlink()
    wait_for_guest(guest(cluster))
    script.unlink()
    assert len(starts(cluster)) == len(known) + 1


def _is_locked(cluster: Cluster) -> bool:
    with Client(cluster.paths().luxi_socket) as client:
        rows = client.query("lock", ["name", "mode"], None).data
    return any(name == f"instance/{WEB}" and mode for (_n, name), (_m, mode) in rows)


def test_its_user_shut_it_down(cluster: Cluster) -> None:
    cluster.ok("cluster modify --user-shutdown yes")
    script = cluster.paths("node2").conf / "fake-hypervisor.json"
    known = starts(cluster)
    rules = {"info": {WEB: {"lie": {"state": 1}}}, "stop": {WEB: {"delay": 3}}}
    script.write_text(json.dumps(rules))
    guest(cluster).unlink()
    wait_for(lambda: f"shutdown {WEB} (the user" in log(cluster), "it is recorded")
    script.unlink()
    [[wanted, source]] = _settle_fields(cluster, "admin_state,admin_state_source")
    assert (wanted, source) == ("down", "user")
    assert starts(cluster) == known
    cluster.ok("cluster modify --user-shutdown no")


def _settle_fields(cluster: Cluster, fields: str) -> list[list[str]]:
    """Fields of the instance when all jobs have ended."""
    wait_for(
        lambda: (
            not {"queued", "waiting", "running"}
            & {s for [s] in cluster.cells("job list -o status")}
        ),
        "all jobs end",
    )
    return cluster.cells(f"instance list -o {fields}", WEB)


def test_it_comes_back_when_the_master_daemon_does(cluster: Cluster) -> None:
    node_log = cluster.paths().log / "node-daemon.log"
    told = f"guests ended on node node2.example.com: {WEB}"
    known = node_log.read_text().count(told)
    cluster.kill_master()
    guest(cluster).unlink()
    wait_for(lambda: node_log.read_text().count(told) > known, "it is told")
    assert cluster.start_master().code == 0
    wait_for_guest(guest(cluster))


def test_a_report_waits_for_the_node_daemon_of_the_master(cluster: Cluster) -> None:
    kill(cluster, constants.NODED)
    guest(cluster).unlink()
    node_log = cluster.paths("node2").log / "node-daemon.log"
    wait_for(lambda: "the master was not told" in node_log.read_text(), "the report fails")
    assert cluster.start_daemon(constants.NODED).code == 0
    wait_for_guest(guest(cluster))


def test_what_no_node_daemon_saw_is_found_by_the_watcher(cluster: Cluster) -> None:
    kill(cluster, constants.NODED, "node2")
    guest(cluster).unlink()
    assert cluster.start_daemon(constants.NODED, "node2").code == 0
    assert not guest(cluster).exists()
    assert watch(cluster).code == 0
    wait_for_guest(guest(cluster))


def test_what_should_run_starts_when_its_node_says_that_it_is_up(cluster: Cluster) -> None:
    """As after a boot: guests of two nodes ended, and nobody saw it. The group starts in order."""
    cluster.ok("instance add-tags", SHOP, "ganeti:order:10")
    for node in ("node2", "node3"):
        kill(cluster, constants.NODED, node)
    known = cluster.cells("job list -o id")
    guest(cluster).unlink()
    guest(cluster, SHOP, "node3").unlink()
    assert cluster.start_daemon(constants.NODED, "node2").code == 0
    assert cluster.start_daemon(constants.NODED, "node3", "--tell-master").code == 0
    wait_for_guest(guest(cluster))
    wait_for_guest(guest(cluster, SHOP, "node3"))
    rows = cluster.cells("job list -o id,summary")
    assert [what for job, what in rows if [job] not in known] == [
        f"INSTANCE_STARTUP({SHOP})",
        f"INSTANCE_STARTUP({WEB})",
    ]
    cluster.ok("instance remove-tags", SHOP, "ganeti:order:10")


def test_a_node_that_is_up_before_its_master_is_served_when_that_is(cluster: Cluster) -> None:
    kill(cluster, constants.MASTERD)
    kill(cluster, constants.NODED, "node2")
    guest(cluster).unlink()
    assert cluster.start_daemon(constants.NODED, "node2", "--tell-master").code == 0
    node_log = cluster.paths().log / "node-daemon.log"
    wait_for(lambda: "node node2.example.com is up" in node_log.read_text(), "node2 tells")
    assert cluster.start_master().code == 0
    wait_for_guest(guest(cluster))


def test_a_node_daemon_that_was_restarted_knows_what_runs(cluster: Cluster) -> None:
    kill(cluster, constants.NODED, "node2")
    assert cluster.start_daemon(constants.NODED, "node2").code == 0
    guest(cluster).unlink()
    wait_for_guest(guest(cluster))


def report(cluster: Cluster, node: str, *names: str) -> None:
    """What a node daemon sends, with the certificate of a node."""
    where = cluster.paths(node)
    rpc = NodeRpc(Identity(where.client_cert, where.ca_cert).client_context())
    [address] = [
        line.split()[1]
        for line in where.ssconf("node_primary_ips").read_text().splitlines()
        if line.startswith("node1.")
    ]
    try:
        rpc.call_address(address, "node1.example.com", NodeCalls.guests_ended, list(names))
    finally:
        rpc.stop()


def test_a_node_that_is_no_candidate_may_tell_of_its_own_guests_only(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANETI_ROOTDIR", str(cluster.root()))
    cluster.ok("node modify -C no node3")
    known = starts(cluster)
    cluster.ok("cluster watcher pause 1h")
    guest(cluster).unlink()
    wait_for(lambda: log(cluster).count("paused; left alone") > 1, "its own node told")
    cluster.ok("cluster watcher continue")
    report(cluster, "node3", WEB, "nobody.example.com")
    guest(cluster, SHOP, "node3").unlink()
    wait_for_guest(guest(cluster, SHOP, "node3"))
    assert starts(cluster) == known
    report(cluster, "node2", WEB)
    wait_for_guest(guest(cluster))
    with pytest.raises(errors.ParameterError, match="not an instance name"):
        report(cluster, "node2", "../web1")
    cluster.ok("node modify -C yes node3")


@pytest.mark.qemu
@needs_programs("qemu-system-x86_64")
def test_a_real_guest_that_was_killed_runs_again_and_one_that_moved_does_not() -> None:
    with copy_cluster(2, "kvm") as cluster:
        cluster.ok(
            "instance add -n node1 -o bootsector+beat -t sharedfile --disk 0:size=4M --no-nics", WEB
        )
        path = cluster.paths("node1").kvm / "pid" / WEB
        first = int(path.read_text())
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: _number(path) not in (None, first), "QEMU runs again", 60)
        second = _number(path)
        assert second is not None
        cluster.ok("job watch", starts(cluster)[-1])
        cluster.ok("instance migrate -f", WEB, timeout=120)
        process.wait_exit(second, 10)
        there = cluster.paths("node2").kvm / "pid" / WEB
        assert _number(there) is not None
        assert len(starts(cluster)) == 1
        assert "node1.example.com" in (cluster.paths().log / "node-daemon.log").read_text()
        # At its new place it is watched, too.
        moved = int(there.read_text())
        for memory in memories(cluster):
            memory.unlink()
        os.kill(moved, signal.SIGKILL)
        wait_for(lambda: _number(there) not in (None, moved), "QEMU runs again", 60)
        assert len(starts(cluster)) == 2


def _number(path: Path) -> int | None:
    """The process in a pid file, if it lives."""
    try:
        pid = int(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return pid if process.is_alive(pid) else None

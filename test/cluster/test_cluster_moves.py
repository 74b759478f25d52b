"""Instances migrate, fail over and move; whatever fails, each runs on exactly one node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from local_cluster import Cluster, tool
from waiting import wait_for

from ganeti import constants
from ganeti.base import process

WEB = "web1.example.com"


def script(cluster: Cluster, node: str, **rules: Any) -> None:
    """What the hypervisor of a node does wrong from now on; nothing without rules."""
    conf = cluster.paths(node).conf
    fresh = conf / "fresh"
    fresh.write_text(json.dumps(rules))
    fresh.rename(conf / "fake-hypervisor.json")


def kill_noded(cluster: Cluster, node: str) -> None:
    pid = cluster.pid(constants.NODED, node)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    process.wait_exit(pid, 10)


def runs_on(cluster: Cluster, name: str = WEB) -> list[str]:
    """Nodes whose hypervisor runs a guest, whatever anybody has on record."""
    nodes = [name.partition(".")[0] for name in cluster.names]
    return [node for node in nodes if (cluster.paths(node).fake_hypervisor / name).exists()]


def read_primary(cluster: Cluster, name: str = WEB) -> str:
    return cluster.cells("instance list -o pnode", name)[0][0].partition(".")[0]


def list_unsettled(cluster: Cluster) -> list[str]:
    return [
        f"{node} {right['state']}"
        for node in ("node1", "node2", "node3")
        for path in cluster.paths(node).run_rights.glob("[0-9a-f]*")
        if (right := json.loads(path.read_text()))["state"] in ("leaving", "arriving")
    ]


@pytest.fixture
def web(cluster: Cluster) -> Iterator[str]:
    """A running instance on node2 whose disk all nodes see."""
    added = cluster.gnt(
        "instance add -n node2 -o noop -t sharedfile --disk 0:size=8M --no-nics", WEB
    )
    assert added.code == 0, added.err
    yield WEB
    for node in ("node2", "node3"):
        script(cluster, node)
        if cluster.pid(constants.NODED, node) is None:
            assert tool("start-node", cluster.directory, node).code == 0
        cluster.ok(f"node modify --offline no {node}")
    cluster.ok("instance remove -f --ignore-failures", WEB)
    assert list_unsettled(cluster) == []


def begin(cluster: Cluster, *words: str) -> subprocess.Popen[str]:
    """Begin a migration from node2 to node3 that does not get to its end by itself."""
    script(
        cluster,
        "node2",
        migration_status={
            "*": {"delay": 0.2, "lie": {"status": "active", "remaining_ram": 1 << 19}}
        },
    )
    child = subprocess.Popen(
        cluster.argv("instance", "migrate", "-f", "-n", "node3", *words, WEB),
        env=cluster.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    away = cluster.paths("node2").fake_hypervisor / f".away-{WEB}"
    wait_for(away.exists, "the migration to begin")
    return child


def await_failure(child: subprocess.Popen[str]) -> str:
    """All that it said, when it has failed."""
    out, err = child.communicate(timeout=60)
    assert child.returncode != 0, out
    return out + err


# when nothing fails ------------------------------------------------------------------------------


def test_there_and_back(cluster: Cluster, web: str) -> None:
    out = cluster.ok("instance migrate -f -n node3", web).out
    assert "migrating instance to node3.example.com" in out
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")
    cluster.ok("instance failover -f -n node1", web)
    assert (runs_on(cluster), read_primary(cluster)) == (["node1"], "node1")
    assert cluster.ok("cluster verify").code == 0
    cluster.ok("instance shutdown", web)
    cluster.ok("instance failover -f -n node2", web)
    assert (runs_on(cluster), read_primary(cluster)) == ([], "node2")
    refused = cluster.gnt("instance migrate -f -n node3", web)
    assert refused.code == 1
    assert "it does not run; gnt-instance failover" in refused.err
    cluster.ok("instance migrate -f --allow-failover -n node3", web)
    cluster.ok("instance startup", web)
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")


def test_dry_run_moves_nothing(cluster: Cluster, web: str) -> None:
    before = cluster.config()
    cluster.ok("instance migrate -f --dry-run -n node3", web)
    cluster.ok("instance failover -f --dry-run -n node3", web)
    assert cluster.config() == before
    assert runs_on(cluster) == ["node2"]


def test_refusals_say_what_to_do(cluster: Cluster, web: str) -> None:
    cluster.ok("cluster modify --default-iallocator", "")
    nowhere = cluster.gnt("instance migrate -f", web)
    cluster.ok("cluster modify --default-iallocator most-free")
    assert nowhere.code == 1
    assert "name a node with --target-node" in nowhere.err
    assert "default-iallocator" in nowhere.err
    same = cluster.gnt("instance failover -f -n node2", web)
    assert "is on node node2.example.com already" in same.err
    assert cluster.add("fixed.example.com").code == 0
    for verb in ("migrate -f", "failover -f -n node3"):
        fixed = cluster.gnt(f"instance {verb}", "fixed.example.com")
        assert fixed.code == 1
        assert "gnt-instance move copies them" in fixed.err
    cluster.ok("instance remove -f", "fixed.example.com")
    script(cluster, "node3", node_info={"*": {"lie": {"memory_free": 10}}})
    full = cluster.gnt("instance migrate -f -n node3", web)
    assert "not enough memory on node node3.example.com" in full.err
    full = cluster.gnt("instance failover -f -n node3", web)
    assert "not enough memory on node node3.example.com" in full.err
    script(cluster, "node3", node_info={"*": {"lie": {"hv_version": [9, 0]}}})
    other = cluster.gnt("instance migrate -f -n node3", web)
    assert "hypervisor versions differ" in other.err
    assert runs_on(cluster) == ["node2"]


def test_the_guest_gives_memory_back_when_it_must_fit(cluster: Cluster) -> None:
    name = "large.example.com"
    cluster.ok(
        "instance add -n node2 -t diskless -o noop --no-install --no-nics -B minmem=64,maxmem=256",
        name,
    )
    cluster.ok("instance startup", name)
    script(cluster, "node3", node_info={"*": {"lie": {"memory_free": 100}}})
    refused = cluster.gnt("instance migrate -f --no-runtime-changes -n node3", name)
    assert "without --no-runtime-changes it would be shrunk" in refused.err
    out = cluster.ok("instance migrate -f -n node3", name).out
    assert "shrinking the memory of the instance from 256 to 100 MiB" in out
    guest = cluster.paths("node3").fake_hypervisor / name
    assert guest.read_text().split()[1] == "100"
    script(cluster, "node3")
    cluster.ok("instance remove -f", name)


def test_hooks_of_a_migration(cluster: Cluster, web: str) -> None:
    directory = cluster.paths("node3").hooks / "instance-migrate-post.d"
    directory.mkdir(parents=True)
    told = cluster.directory / "told"
    (directory / "tell").write_text(f"#!/bin/sh\nenv > {told}\n")
    (directory / "tell").chmod(0o755)
    try:
        cluster.ok("instance migrate -f -n node3", web)
    finally:
        (directory / "tell").unlink()
        directory.rmdir()
    env = dict(line.split("=", 1) for line in told.read_text().splitlines())
    assert env["GANETI_OLD_PRIMARY"] == "node2.example.com"
    assert env["GANETI_NEW_PRIMARY"] == "node3.example.com"
    assert env["GANETI_MIGRATE_LIVE"] == "True"
    assert env["GANETI_POST_INSTANCE_PRIMARY"] == "node3.example.com"


# what fails --------------------------------------------------------------------------------------

FAULTS = [
    ("node2", "migration_info", ""),
    ("node3", "accept", ""),
    ("node2", "migrate", ""),
    ("node2", "migration_status", ""),
    ("node3", "check_arrived", "--non-live"),
]


@pytest.mark.parametrize(("node", "method", "how"), FAULTS)
def test_a_hypervisor_that_fails(
    cluster: Cluster, web: str, node: str, method: str, how: str
) -> None:
    script(cluster, node, **{method: {"*": {"fail": "no more of it"}}})
    ran = cluster.gnt(f"instance migrate -f -n node3 {how}", web)
    assert ran.code == 1
    assert "no more of it" in ran.err
    assert "it runs on node node2.example.com" in ran.err
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    assert list_unsettled(cluster) == []
    script(cluster, node)
    cluster.ok(f"instance migrate -f -n node3 {how}", web)


def test_a_source_that_dies_on_the_way(cluster: Cluster, web: str) -> None:
    child = begin(cluster)
    (cluster.paths("node2").fake_hypervisor / f".away-{WEB}").unlink()
    script(cluster, "node2")
    said = await_failure(child)
    assert "it ended meanwhile and belongs to node node2.example.com" in said
    assert "starting it again on node node2.example.com" in said
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")


def test_canceled_it_goes_on_where_it_was(cluster: Cluster, web: str) -> None:
    child = begin(cluster)
    number = cluster.cells("job list --running -o id")[0][0]
    cluster.ok("job cancel", number)
    await_failure(child)
    assert cluster.cells("job list -o status", number) == [["canceled"]]
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    assert list_unsettled(cluster) == []


def test_a_target_that_does_not_answer(cluster: Cluster, web: str) -> None:
    child = begin(cluster)
    kill_noded(cluster, "node3")
    script(cluster, "node2")
    said = await_failure(child)
    assert "node node3.example.com does not say whether" in said
    assert runs_on(cluster) == []
    again = cluster.gnt("instance startup", web)
    assert again.code == 1
    assert f"gnt-instance migrate --cleanup {WEB}" in again.err
    assert tool("start-node", cluster.directory, "node3").code == 0
    verify = cluster.gnt("cluster verify")
    assert verify.code == 1
    assert f"to repair it: gnt-instance migrate --cleanup {WEB}" in verify.out
    cluster.ok("instance migrate -f --cleanup", web)
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    assert cluster.ok("cluster verify").code == 0


def test_a_target_that_is_switched_off_for_good(cluster: Cluster, web: str) -> None:
    child = begin(cluster)
    kill_noded(cluster, "node3")
    (cluster.paths("node3").fake_hypervisor / f".awaited-{WEB}").unlink()
    script(cluster, "node2")
    await_failure(child)
    cluster.ok("node modify --offline yes node3")
    # All had been sent, so the copy there may have run: the old memory must not go on.
    cluster.ok("instance migrate -f --cleanup", web)
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    assert tool("start-node", cluster.directory, "node3").code == 0
    cluster.ok("node modify --offline no node3")
    cluster.ok("instance migrate -f --cleanup", web)


def test_a_master_that_dies_on_the_way_is_followed_by_one_that_settles_it(
    cluster: Cluster, web: str
) -> None:
    child = begin(cluster)
    cluster.kill_master()
    child.kill()
    child.communicate()
    script(cluster, "node2")
    assert runs_on(cluster) == []
    assert cluster.start_master().code == 0
    wait_for(lambda: runs_on(cluster), "the new master to settle it")
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    wait_for(lambda: not list_unsettled(cluster), "the record")
    rows = cluster.cells("job list -o summary,status")
    assert ["INSTANCE_MIGRATE(web1.example.com)", "success"] in rows
    cluster.ok("instance migrate -f -n node3", web)


def test_a_master_that_dies_after_the_guest_has_arrived(cluster: Cluster, web: str) -> None:
    """The target is committed and runs the guest, but the record is not written yet."""
    script(cluster, "node2", info={"*": {"delay": 3}})
    child = subprocess.Popen(
        cluster.argv("instance", "migrate", "-f", "-n", "node3", WEB),
        env=cluster.env(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: runs_on(cluster) == ["node3"], "the guest to arrive")
    cluster.kill_master()
    child.kill()
    child.wait()
    script(cluster, "node2")
    assert cluster.start_master().code == 0
    wait_for(lambda: not list_unsettled(cluster), "the new master to settle it")
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")


# failing over ------------------------------------------------------------------------------------


def test_failover_from_a_node_that_does_not_answer(cluster: Cluster, web: str) -> None:
    kill_noded(cluster, "node2")
    refused = cluster.gnt("instance failover -f -n node3", web)
    assert refused.code == 1
    assert "may still run on node2.example.com" in refused.err
    assert "gnt-node modify --offline yes node2.example.com" in refused.err
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    cluster.ok("node modify --offline yes node2")
    cluster.ok("instance failover -f -n node3", web)
    assert read_primary(cluster) == "node3"
    # The administrator was wrong: the guest on node2 had never stopped.
    assert runs_on(cluster) == ["node2", "node3"]
    assert tool("start-node", cluster.directory, "node2").code == 0
    cluster.ok("node modify --offline no node2")
    verify = cluster.gnt("cluster verify")
    assert "runs on node node2.example.com too, but belongs to node3.example.com" in verify.out
    repair = f"failover --cleanup --ignore-consistency {WEB}"
    assert f"gnt-instance {repair}" in verify.out
    careful = cluster.gnt("instance migrate -f --cleanup", web)
    assert careful.code == 1
    assert repair in careful.err
    cluster.ok(f"instance failover -f {repair.removeprefix('failover ')}")
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")
    assert cluster.ok("cluster verify").code == 0


def test_a_second_copy_on_a_node_that_has_no_disk_of_it_any_more(cluster: Cluster) -> None:
    name = "web9.example.com"
    cluster.ok("instance add -n node2 -o noop -t file --disk 0:size=8M --no-nics", name)
    kill_noded(cluster, "node2")
    cluster.ok("node modify --offline yes node2")
    refused = cluster.gnt("instance failover -f", name)
    assert refused.code == 1
    assert f"gnt-instance recreate-disks -n NODE {name}" in refused.err
    cluster.ok("instance recreate-disks -n node3", name)
    cluster.ok("instance startup", name)
    assert tool("start-node", cluster.directory, "node2").code == 0
    cluster.ok("node modify --offline no node2")
    repair = f"failover --cleanup --ignore-consistency {name}"
    assert f"gnt-instance {repair}" in cluster.gnt("cluster verify").out
    ended = cluster.ok(f"instance failover -f {repair.removeprefix('failover ')}")
    assert f"ending the copy of {name} on node2.example.com" in ended.out
    assert f"{name}: runs on" not in cluster.gnt("cluster verify").out
    cluster.ok("instance remove -f", name)


def test_a_guest_that_cannot_be_ended_is_not_started_elsewhere(cluster: Cluster, web: str) -> None:
    script(cluster, "node2", stop={"*": {"lie": True}})
    ran = cluster.gnt("instance failover -f --shutdown-timeout 1 -n node3", web)
    assert ran.code == 1
    assert "still runs" in ran.err
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")


def test_a_target_that_cannot_start_it(cluster: Cluster, web: str) -> None:
    script(cluster, "node3", start={"*": {"fail": "no more memory"}})
    ran = cluster.gnt("instance failover -f -n node3", web)
    assert ran.code == 1
    assert "was failed over to node node3.example.com but could not be started there" in ran.err
    assert (runs_on(cluster), read_primary(cluster)) == ([], "node3")
    script(cluster, "node3")
    cluster.ok("instance startup", web)
    assert runs_on(cluster) == ["node3"]


def test_it_runs_elsewhere_than_recorded(cluster: Cluster, web: str) -> None:
    """As after a restore of an old configuration."""
    here = cluster.paths("node2").fake_hypervisor / WEB
    there = cluster.paths("node3").fake_hypervisor
    there.mkdir(exist_ok=True)
    here.rename(there / WEB)
    verify = cluster.gnt("cluster verify")
    assert "runs on node node3.example.com, but belongs to node2.example.com" in verify.out
    assert f"gnt-instance migrate --cleanup {WEB}" in verify.out
    ran = cluster.gnt("instance startup", web)
    assert ran.code == 1
    assert "runs on node node3.example.com already" in ran.err
    cluster.ok("instance migrate -f --cleanup", web)
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")


# allocators --------------------------------------------------------------------------------------


def test_an_allocator_chooses_the_target(cluster: Cluster, web: str) -> None:
    script(cluster, "node1", node_info={"*": {"lie": {"memory_free": 4000}}})
    script(cluster, "node3", node_info={"*": {"lie": {"memory_free": 9000}}})
    out = cluster.ok("instance migrate -f -I most-free", web).out
    assert "via iallocator most-free: node3.example.com" in out
    assert read_primary(cluster) == "node3"
    missing = cluster.gnt("instance failover -f -I nosuch", web)
    assert missing.code == 1
    assert "there is no allocator 'nosuch'" in missing.err
    cluster.ok("instance failover -f", web)
    assert read_primary(cluster) != "node3"
    script(cluster, "node1")

"""What an administrator sees of balancing, maintenance and capacity, with twenty guests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from local_cluster import Cluster, tool
from test_cluster_moves import kill_noded, script

MEMORY = {"memory_total": 32768, "memory_dom0": 512, "memory_free": 32768, "cpu_total": 32}
GUESTS = [f"web{number}.example.com" for number in range(20)]
NODES = [f"node{number}" for number in range(1, 6)]
BALANCE = "cluster balance"
LONG = 280.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Five equal nodes; all twenty guests run on node2."""
    made = Cluster(tmp_path_factory.mktemp("placement") / "c", 5)
    try:
        for node in NODES:
            set_pace(made, node)
        made.ok("cluster modify --enabled-disk-templates file,sharedfile,diskless")
        for name in GUESTS:
            made.ok(
                "instance add -o noop -t sharedfile --disk 0:size=8M --no-nics -B memory=512"
                " -n node2",
                name,
            )
        yield made
    finally:
        made.destroy()


@pytest.fixture
def crowded(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with all guests on node2 again."""
    for name, node in places(cluster).items():
        if node != "node2":
            cluster.ok("instance migrate -f -n node2", name)
    yield cluster
    for node in NODES:
        set_pace(cluster, node)


def set_pace(cluster: Cluster, node: str, delay: float = 0.0) -> None:
    """Seconds that a migration from a node takes."""
    slow = {"migrate": {"*": {"delay": delay}}} if delay else {}
    script(cluster, node, node_info={"*": {"lie": MEMORY}}, **slow)


def places(cluster: Cluster) -> dict[str, str]:
    rows = cluster.cells("instance list -o name,pnode")
    return {name: node.partition(".")[0] for name, node in rows if name in GUESTS}


def states(cluster: Cluster) -> set[str]:
    return {row[0] for row in cluster.cells("instance list -o status", *GUESTS)}


def ask(cluster: Cluster, line: str, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.gnt(f"{line} --format=json", *words).out)
    return found


@contextmanager
def balancing(cluster: Cluster, delay: float = 2.0) -> Iterator[subprocess.Popen[str]]:
    """``gnt-cluster balance`` whose moves are slow, while the first of them runs."""
    set_pace(cluster, "node2", delay)
    with subprocess.Popen(
        cluster.argv("cluster", "balance"),
        env=cluster.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        try:
            end = time.monotonic() + 60
            while not any(
                status == "running" and "INSTANCE_" in what
                for status, what in cluster.cells("job list -o status,summary")
            ):
                assert time.monotonic() < end, "no move has begun"
                time.sleep(0.2)
            yield program
        finally:
            program.kill()


def test_a_second_balancing_finds_nothing_to_do(crowded: Cluster) -> None:
    told = crowded.ok(f"{BALANCE} --dry-run --explain", timeout=LONG)
    assert "load more even" in told.out
    assert set(places(crowded).values()) == {"node2"}
    done = crowded.ok(BALANCE, timeout=LONG)
    assert "Group default: " in done.out
    assert max(Counter(places(crowded).values()).values()) == 4
    assert states(crowded) == {"running"}
    assert "nothing to do" in crowded.ok(BALANCE, timeout=LONG).out
    assert crowded.ok("cluster check").lines[0].startswith("Group default: ok")


def test_a_node_with_twenty_guests_is_emptied_and_filled_again(crowded: Cluster) -> None:
    plan = crowded.ok("node maintenance --dry-run on", "node2")
    assert sum(line.startswith("web") for line in plan.lines) == len(GUESTS)
    crowded.ok("node maintenance --wait on", "node2", timeout=LONG)
    away = places(crowded)
    assert "node2" not in away.values()
    assert states(crowded) == {"running"}
    # As even as may be: the largest of four nodes has five.
    assert max(Counter(away.values()).values()) <= 6
    crowded.ok("node maintenance --wait off", "node2", timeout=LONG)
    assert set(places(crowded).values()) == {"node2"}
    assert states(crowded) == {"running"}


def test_a_node_that_is_killed_in_the_middle_ends_the_plan(crowded: Cluster) -> None:
    """No guest is lost or runs twice, and the next plan does the rest."""
    with balancing(crowded) as program:
        kill_noded(crowded, "node4")
        told = program.communicate(timeout=LONG)[0]
        assert program.returncode == 1, told
    set_pace(crowded, "node2")
    left = Counter(places(crowded).values())
    assert left["node2"] > 4
    tool("start-node", crowded.directory, "node4")
    assert states(crowded) == {"running"}
    running = Counter(
        name
        for node in NODES
        for name in os.listdir(crowded.paths(node).fake_hypervisor)
        if name in GUESTS
    )
    assert running == Counter(GUESTS)
    crowded.ok(BALANCE, timeout=LONG)
    assert max(Counter(places(crowded).values()).values()) == 4
    assert "nothing to do" in crowded.ok(BALANCE, timeout=LONG).out


def test_a_plan_is_cancelled_between_two_moves(crowded: Cluster) -> None:
    """The move that runs ends well; what waits for a cancelled one does not begin."""
    with balancing(crowded) as program:
        jobs = crowded.cells("job list -o id,status")
        waiting = [number for number, status in jobs if status in ("queued", "waiting")]
        assert len(waiting) > 4
        crowded.ok("job cancel -f", waiting[0])
        told = program.communicate(timeout=LONG)[0]
        assert program.returncode == 1, told
    ends = dict(crowded.cells("job list -o id,status", *waiting))
    assert ends[waiting[0]] == "canceled"
    assert "success" not in ends.values()
    assert Counter(places(crowded).values())["node2"] == len(GUESTS) - 1
    assert states(crowded) == {"running"}


def test_an_interrupted_command_leaves_the_plan_to_the_master(crowded: Cluster) -> None:
    with balancing(crowded, delay=0.5) as program:
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=60)
    end = time.monotonic() + LONG
    while {"queued", "waiting", "running"} & {
        row[0] for row in crowded.cells("job list -o status")
    }:
        assert time.monotonic() < end
        time.sleep(1)
    assert max(Counter(places(crowded).values()).values()) == 4


def test_the_capacity_that_is_told_is_the_one_there_is(cluster: Cluster) -> None:
    """Instances are added until one is refused."""
    size = "-t sharedfile --memory 6G --disk 8M"
    count = ask(cluster, f"cluster capacity {size}")["groups"][0]["normal"]["count"]
    assert count > 10
    added = 0
    while added <= count:
        ran = cluster.gnt(
            "instance add -o noop -t sharedfile --disk 0:size=8M --no-nics -B memory=6G",
            f"{chr(97 + added % 26)}{added}.example.com",
        )
        if ran.code:
            break
        added += 1
    assert added == count
    assert "found no place" in ran.err
    full = ask(cluster, f"cluster capacity {size}")["groups"][0]["normal"]
    assert full["count"] == 0
    assert full["ended_by"]
    refused = cluster.gnt(f"cluster place {size}")
    assert refused.code == 1
    assert "has no place" in refused.out
    assert cluster.ok("cluster check").lines[0].startswith("Group default: ok")

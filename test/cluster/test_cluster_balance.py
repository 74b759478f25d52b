"""What fits, what is wrong and what would be better, on real daemons."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import htools_run as htools
import pytest
from local_cluster import Cluster, tool

ADD = "instance add -o noop -t sharedfile --disk 0:size=8M --no-nics -B memory=512"
BALANCE = "cluster balance"


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("balance"), 5)
    memory = {"memory_total": 4096, "memory_dom0": 512, "memory_free": 4096, "cpu_total": 16}
    for number in range(1, 6):
        rules = {"node_info": {"*": {"lie": memory}}}
        path = found.paths(f"node{number}").conf / "fake-hypervisor.json"
        path.write_text(json.dumps(rules))
    yield found
    found.destroy()


@pytest.fixture
def uneven(five: Cluster) -> Iterator[Cluster]:
    """Six guests on two of five nodes."""
    for number in range(6):
        name = f"web{number}.example.com"
        five.ok(f"{ADD} -n node{number % 2 + 1}.example.com", name)
    yield five
    for (name,) in five.cells("instance list -o name"):
        five.ok("instance remove -f --ignore-failures", name)


def data(cluster: Cluster, line: str, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.gnt(f"{line} --format=json", *words).out)
    return found


def places(cluster: Cluster) -> dict[str, str]:
    return {row[0]: row[1] for row in cluster.cells("instance list -o name,pnode")}


def test_a_plan_is_told_carried_out_and_then_empty(uneven: Cluster) -> None:
    before = places(uneven)
    told = uneven.ok(f"{BALANCE} --dry-run --explain").out
    assert "Group default: " in told
    assert "load more even" in told
    assert "begins at once" in told
    planned = data(uneven, f"{BALANCE} --dry-run")["groups"][0]
    assert places(uneven) == before
    uneven.ok(BALANCE)
    after = dict(before)
    after.update({move["instance"]: move["to"][0] for move in planned["moves"]})
    assert places(uneven) == after
    assert max(Counter(after.values()).values()) == 2
    assert "nothing to do" in uneven.ok(BALANCE).out
    states = {state for _name, state in uneven.cells("instance list -o name,status")}
    assert states == {"running"}


def test_limits_end_a_plan_and_leave_the_rest(uneven: Cluster) -> None:
    one = data(uneven, f"{BALANCE} --dry-run --max-moves=1")["groups"][0]
    assert (len(one["moves"]), one["limited"]) == (1, True)
    none = uneven.ok(f"{BALANCE} --dry-run --max-data=100M").out
    assert "no move fits the limits" in none
    two = data(uneven, f"{BALANCE} --dry-run --max-data=1G")["groups"][0]
    assert sum(move["copied"] for move in two["moves"]) == 1024


def test_a_plan_that_the_cluster_has_outrun_is_refused_move_by_move(uneven: Cluster) -> None:
    [first, *_] = data(uneven, f"{BALANCE} --dry-run")["groups"][0]["moves"]
    name, goal = first["instance"], first["to"][0]
    other = next(n for n in uneven.names if n not in (*first["from"], goal))
    uneven.ok("instance migrate -f -n", other, name)
    check = {
        "OP_ID": "OP_INSTANCE_CHECK_MOVE",
        "instance_name": name,
        "from_nodes": first["from"],
        "to_nodes": first["to"],
    }
    move = {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": name, "target_node": goal}
    file = Path(uneven.directory) / "job.json"
    file.write_text(json.dumps([check, move]))
    ran = uneven.gnt("debug submit-job", str(file))
    assert ran.code == 1
    assert f"it is on {other} now, it was planned on {first['from'][0]}" in ran.err + ran.out
    assert places(uneven)[name] == other


def test_a_node_that_is_lost_ends_the_plan(uneven: Cluster) -> None:
    before = places(uneven)
    pid = uneven.pid("ganeti-noded", "node5")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    try:
        ran = uneven.gnt(BALANCE)
        assert ran.code == 1
        assert "node5.example.com does not answer" in ran.err
        found = data(uneven, "cluster capacity")
        assert found["silent"] == ["node5.example.com"]
        assert places(uneven) == before
        supposed = uneven.ok(f"{BALANCE} --dry-run", "--what-if", "remove node5").out
        assert "node5" not in supposed.partition("Group")[2]
    finally:
        tool("start-node", uneven.directory, "node5")


def test_where_an_instance_would_go_and_why_not_elsewhere(uneven: Cluster) -> None:
    line = "cluster place -t sharedfile --memory 2G"
    found = data(uneven, line)
    [group] = found["groups"]
    able = [place["nodes"][0] for place in group["places"]]
    assert sorted(able) == ["node3.example.com", "node4.example.com", "node5.example.com"]
    assert (found["nodes"], found["score"]) == ([able[0]], group["places"][0]["score"])
    missing = {node["node"]: node["missing"] for node in group["nodes"]}
    assert missing == {f"node{n}.example.com": {"memory": 1} for n in (1, 2)}
    told = uneven.ok(line).lines
    assert told[0].endswith(f"would go to {able[0]}")
    assert "  node1.example.com needs another 1 MiB of memory" in told
    full = uneven.gnt("cluster place -t sharedfile --memory 5G --what-if", "memory node3 +1G")
    assert full.code == 1
    assert "It would fit if you reduce its memory to 3520 MiB" in full.out
    assert len(places(uneven)) == 6


def test_what_would_be_is_told_and_nothing_changes(uneven: Cluster) -> None:
    before = places(uneven)
    now = data(uneven, "cluster capacity")["groups"][0]["normal"]["count"]
    more = data(uneven, "cluster capacity", "--what-if", "add 2 like node3")
    assert more["groups"][0]["normal"]["count"] > now
    fewer = data(uneven, "cluster capacity", "--what-if", "remove node3")
    assert fewer["groups"][0]["normal"]["count"] < now
    assert uneven.ok("cluster check").lines[0].startswith("Group default: ok")
    changes = [*(f"fail node{n}" for n in range(3, 6)), "memory node1 -1G"]
    shrunk = uneven.gnt("cluster check", *(f"--what-if={change}" for change in changes))
    assert shrunk.code == 1
    assert "when node2.example.com fails, not all of it can start elsewhere" in shrunk.out
    wrong = uneven.gnt("cluster check --what-if", "remove node9")
    assert wrong.code == 1
    assert "there is no node 'node9'" in wrong.err
    refused = uneven.gnt(f"{BALANCE} --what-if", "remove node3")
    assert refused.code == 1
    assert "add --dry-run" in refused.err
    assert places(uneven) == before


def test_a_node_is_emptied_and_gets_its_guests_back(uneven: Cluster) -> None:
    before = places(uneven)
    mine = {name for name, node in before.items() if node == "node2.example.com"}
    told = uneven.ok("node maintenance --dry-run on", "node2")
    assert len(told.lines) == 3
    assert places(uneven) == before
    assert _drained(uneven) == "N"
    done = uneven.ok("node maintenance --wait on", "node2")
    assert "All instances have left node node2.example.com" in done.out
    assert _drained(uneven) == "Y"
    assert uneven.cells("node list -o maintenance", "node2", "node3") == [["Y"], ["N"]]
    away = places(uneven)
    assert {name for name in before if away[name] != before[name]} == mine
    assert "node2.example.com" not in away.values()
    again = uneven.ok("node maintenance --wait on", "node2")
    assert "Nothing to move" in again.out
    wanderer = min(mine)
    other = next(n for n in uneven.names if n not in ("node2.example.com", away[wanderer]))
    uneven.ok("instance migrate -f -n", other, wanderer)
    home = uneven.ok("node maintenance --wait off", "node2")
    assert f"{wanderer} stays: it was moved by somebody else since" in home.out
    assert _drained(uneven) == "N"
    assert places(uneven) == before | {wanderer: other}
    twice = uneven.gnt("node maintenance off", "node2")
    assert twice.code == 1
    assert "node node2.example.com is not in maintenance" in twice.err


def test_a_node_that_is_not_needed_is_emptied_and_switched_off(uneven: Cluster) -> None:
    """hsqueeze moves its guests away, marks it and tells its out-of-band helper."""
    log = uneven.directory / "oob.log"
    helper = uneven.directory / "oob"
    helper.write_text(f'#!/bin/sh\necho "$1 $2" >> {log}\n')
    helper.chmod(0o755)
    uneven.ok(f"node modify --node-parameters oob_program={helper} node2")
    uneven.ok("node add-tags node2 htools:standby:auto")
    mine = [name for name, node in places(uneven).items() if node == "node2.example.com"]
    try:
        ran = htools.run(uneven, "hsqueeze", "-L", "-X", "--target-resources=1")
        assert (ran.code, "All jobs completed successfully." in ran.out) == (0, True)
        assert mine
        assert "node2.example.com" not in places(uneven).values()
        assert uneven.cells("node list -o offline,powered", "node2") == [["Y", "N"]]
        assert log.read_text() == "power-off node2.example.com\n"
        again = htools.run(uneven, "hsqueeze", "-L", "-X", "--target-resources=1")
        assert (again.code, "'No action'" in again.out) == (0, True)
    finally:
        uneven.ok("node modify --offline no --node-powered yes node2")
        uneven.ok("node remove-tags node2 htools:standby:auto")
        uneven.ok("node modify --node-parameters oob_program=default node2")


def _drained(cluster: Cluster) -> str:
    return cluster.cells("node list -o drained", "node2")[0][0]


def test_a_node_that_cannot_be_emptied_says_so(uneven: Cluster) -> None:
    master = uneven.gnt("node maintenance on", "node1")
    assert master.code == 1
    assert "node node1.example.com is the master" in master.err
    uneven.add("fixed.example.com", node="node4.example.com")
    ran = uneven.gnt("node maintenance --wait on", "node4")
    assert ran.code == 1
    assert "fixed.example.com stays: its disks are on one node" in ran.out
    assert "Node node4.example.com still has fixed.example.com" in ran.err
    uneven.ok("node maintenance --wait off", "node4")
    assert places(uneven)["fixed.example.com"] == "node4.example.com"


def test_a_goal_that_is_lost_in_between_moves_nothing_there(uneven: Cluster) -> None:
    found = data(uneven, f"{BALANCE} --dry-run")["groups"][0]["moves"]
    goal = found[0]["to"][0].partition(".")[0]
    pid = uneven.pid("ganeti-noded", goal)
    assert pid is not None
    check = {
        "OP_ID": "OP_INSTANCE_CHECK_MOVE",
        "instance_name": found[0]["instance"],
        "from_nodes": found[0]["from"],
        "to_nodes": found[0]["to"],
        "present": uneven.names,
    }
    file = Path(uneven.directory) / "job.json"
    file.write_text(json.dumps([check]))
    uneven.ok("debug submit-job", str(file))
    os.kill(pid, signal.SIGKILL)
    try:
        ran = uneven.gnt("debug submit-job", str(file))
        assert ran.code == 1
        assert f"{goal}.example.com was there when the plan was made" in ran.err + ran.out
    finally:
        tool("start-node", uneven.directory, goal)

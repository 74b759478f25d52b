"""gnt-cluster recovery: what is said of dead nodes and their instances."""

from __future__ import annotations

import time
from typing import Any

import pytest
from recording_master import RecordingMaster, Run


def node(name: str, **more: Any) -> dict[str, Any]:
    return {
        "node": name,
        "silence": 3.2,
        "lease_left": None,
        "proofs": [],
        "next": "nothing",
        "fenced": None,
        **more,
    }


def status(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "fence_after": 0,
        "failover_after": 0,
        "paused_until": None,
        "watcher_paused_until": None,
        "role": None,
        "nodes": list(nodes),
        "instances": [],
        **more,
    }


def test_the_status_of_a_quiet_cluster(master: RecordingMaster, gnt: Run) -> None:
    lease = node("node2", lease_left=41.6, proofs=["oob", "watchdog"], next="fence in 60 s")
    master.answers["QueryRecovery"] = status(node("node1"), lease)
    ran = gnt("gnt-cluster", "recovery", "status")
    lines = ran.out.splitlines()
    assert lines[:3] == [
        "Nodes are fenced after: never",
        "The master is replaced after: never",
        "",
    ]
    assert [line.split() for line in lines[3:]] == [
        ["Node", "Silence", "Lease", "Proofs", "Next"],
        ["node1", "3s", "-", "-", "nothing"],
        ["node2", "3s", "42s", "oob,", "watchdog", "fence", "in", "60", "s"],
    ]


def test_who_replaces_the_master_is_told(master: RecordingMaster, gnt: Run) -> None:
    role = {"store": "Pacemaker", "term": 7, "lease_left": 9.2, "problem": "", "chooses": True}
    master.answers["QueryRecovery"] = status(role=role)
    lines = gnt("gnt-cluster", "recovery", "status").out.splitlines()
    assert lines[1:3] == [
        "The master is replaced by: Pacemaker",
        "Pacemaker decides about the master: term 7, lease for 9 s",
    ]
    role |= {"store": "etcd", "chooses": False}
    master.answers["QueryRecovery"] = status(role=role, failover_after=15)
    lines = gnt("gnt-cluster", "recovery", "status").out.splitlines()
    assert lines[1] == "The master is replaced after: 15 s without an answer"


def test_pauses_are_told(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryRecovery"] = status(
        fence_after=120, failover_after=60, paused_until=1e9, watcher_paused_until=2e9
    )
    lines = gnt("gnt-cluster", "recovery", "status").out.splitlines()
    assert lines[:4] == [
        "Nodes are fenced after: 120 s without an answer",
        "The master is replaced after: 60 s without an answer",
        f"Recovery pauses until {time.ctime(1e9)}",
        f"The watcher pauses until {time.ctime(2e9)}: no node is fenced",
    ]


def test_a_death_and_what_became_of_the_instances(master: RecordingMaster, gnt: Run) -> None:
    def instance(name: str, state: str, **more: Any) -> dict[str, Any]:
        return {"instance": name, "source": "node2", "state": state, **more}

    master.answers["QueryRecovery"] = status(
        node("node1"),
        node("node2", fenced={"time": 1700000000.0, "proof": "the helper says it is off"}),
        node("node3", fenced={"time": 1700000000.0, "proof": "by hand", "over": 1700000100.0}),
        instances=[
            instance("web2", "left", reason="its ha is stay"),
            instance("web1", "recovered", node="node3", job=12),
            instance("web3", "starting", job=13, attempts=2),
            instance("web4", "failed", attempts=3, reason="no room"),
            instance("web5", "waiting", reason="memory is short"),
            {**instance("web6", "left", reason="-"), "source": "node9"},
        ],
    )
    ran = gnt("gnt-cluster", "recovery", "status")
    _table, dead, back = ran.out.split("\n\n")[1:]
    assert dead.splitlines() == [
        "node2 died before 2023-11-14 22:13:20: the helper says it is off",
        "  web1 was started on node3 (job 12)",
        "  web2 stays: its ha is stay",
        "  web3 starts elsewhere (job 13, attempt 2)",
        "  web4 does not start, attempt 3: no room",
        "  web5 waits: memory is short",
    ]
    assert back.splitlines() == [
        "node3 died before 2023-11-14 22:13:20: by hand; it came back at 2023-11-14 22:15:00"
    ]


@pytest.mark.parametrize(("word", "seconds"), [("30m", 1800), ("1d", 86400), ("90", 90)])
def test_a_pause_has_a_duration(master: RecordingMaster, gnt: Run, word: str, seconds: int) -> None:
    master.results["OP_CLUSTER_PAUSE_RECOVERY"] = 1e9
    ran = gnt("gnt-cluster", "recovery", "pause", word)
    assert ran.out == f"Recovery pauses until {time.ctime(1e9)}.\n"
    assert master.op == {"OP_ID": "OP_CLUSTER_PAUSE_RECOVERY", "duration": seconds}


def test_a_pause_is_ended(master: RecordingMaster, gnt: Run) -> None:
    assert gnt("gnt-cluster", "recovery", "continue").out == "Recovery does not pause any more.\n"
    assert master.op["duration"] == 0
    ran = gnt("gnt-cluster", "recovery", "pause", "soon")
    assert ran.code == 1
    assert "soon" in ran.err


def plan(**more: Any) -> dict[str, Any]:
    return {
        "node": "node2",
        "moments": [{"after": 62.4, "text": "its lease is over", "proves": True}],
        "paused_until": None,
        "starts": [],
        "waits": [],
        "left": [],
        **more,
    }


def test_what_would_happen_if_a_node_died(master: RecordingMaster, gnt: Run) -> None:
    starts = [
        {"instance": "dns", "node": "node3", "order": 10},
        {"instance": "web", "node": None, "order": 50},
    ]
    master.results["OP_CLUSTER_PLAN_RECOVERY"] = plan(
        starts=starts,
        waits=[{"instance": "big", "reason": "8 GiB are missing"}],
        left=[{"instance": "lab", "reason": "its ha is stay"}],
        paused_until=1e9,
    )
    ran = gnt("gnt-cluster", "recovery", "plan", "node2")
    assert ran.out.splitlines() == [
        "If node2 died now:",
        "  after 62 s: its lease is over",
        f"  but not before {time.ctime(1e9)}: recovery pauses",
        "Then these start elsewhere, in this order:",
        "  dns on node3 (order 10)",
        "  web on a node that its job chooses (order 50)",
        "These wait for room:",
        "  big: 8 GiB are missing",
        "These stay:",
        "  lab: its ha is stay",
    ]


def test_without_a_proof_an_administrator_must_confirm(master: RecordingMaster, gnt: Run) -> None:
    unproven = [{"after": 60.0, "text": "nothing proves its death", "proves": False}]
    master.results["OP_CLUSTER_PLAN_RECOVERY"] = plan(
        moments=unproven, starts=[{"instance": "dns", "node": "node3", "order": 10}]
    )
    ran = gnt("gnt-cluster", "recovery", "plan", "node2")
    assert "After gnt-node fence --confirm these start elsewhere, in this order:" in ran.out
    master.results["OP_CLUSTER_PLAN_RECOVERY"] = plan(moments=unproven)
    ran = gnt("gnt-cluster", "recovery", "plan", "node2")
    assert ran.out.splitlines()[-1] == "No instance starts elsewhere."

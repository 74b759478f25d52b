"""gnt-cluster capacity, place, check and balance: what is printed, and the exit code."""

from __future__ import annotations

from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors

QUIET = {"what_if": [], "notes": [], "silent": []}
SIZE = {"memory": 1024, "disk": 10240, "vcpus": 1}


def capacity(**group: Any) -> dict[str, Any]:
    usual = {
        "group": "default",
        "online": 2,
        "nodes": 3,
        "instances": 1,
        "reservations": 0,
        "closed": "",
        "stuck": [],
        "normal": {**SIZE, "count": 5, "ended_by": "memory"},
        "tiered": {
            "sizes": [{**SIZE, "count": 2, "vcpus": 8}, {**SIZE, "count": 1}],
            "ended_by": "disk",
        },
    }
    return {**QUIET, "disk_template": "drbd", "groups": [{**usual, **group}]}


def test_how_many_instances_fit(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_CLUSTER_CAPACITY"] = capacity(stuck=["node2"])
    ran = gnt("gnt-cluster", "capacity")
    assert ran.out.splitlines() == [
        "Group default: 2 nodes online of 3, 1 instance, 0 reservations",
        "  N+1 does not hold: when node2 fails, not all of it can start elsewhere",
        "  normal: 5 instances of 1.0G memory, 10.0G disk (drbd), 1 virtual processor",
        "    ended by: memory",
        "  tiered: 3 instances",
        "    2 instances of 1.0G memory, 10.0G disk (drbd), 8 virtual processors",
        "    1 instance of 1.0G memory, 10.0G disk (drbd), 1 virtual processor",
        "    ended by: disk",
    ]


def test_what_was_supposed_and_what_is_unknown(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_CLUSTER_CAPACITY"] = {
        **capacity(closed="the group is unallocable"),
        "what_if": ["node2 fails"],
        "notes": ["web1 runs on node3 then"],
        "silent": ["node4"],
    }
    ran = gnt("gnt-cluster", "capacity", "--what-if", "down:node2", "-g", "default")
    assert ran.out.splitlines() == [
        "Supposed: node2 fails",
        "  web1 runs on node3 then",
        "Node node4 does not answer: what it has is unknown and not counted",
        "Group default: 2 nodes online of 3, 1 instance, 0 reservations",
        "  nothing fits: the group is unallocable",
    ]
    assert (master.op["what_if"], master.op["group_name"]) == (["down:node2"], "default")


def test_programs_get_the_whole_answer(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_CLUSTER_CAPACITY"] = capacity()
    ran = gnt("gnt-cluster", "capacity", "--format", "json")
    assert '"ended_by": "memory"' in ran.out


def place(**more: Any) -> dict[str, Any]:
    return {
        **QUIET,
        **SIZE,
        "disk_template": "drbd",
        "nodes": [],
        "groups": [],
        "hints": [],
        **more,
    }


def test_where_an_instance_would_go(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_CLUSTER_PLACE"] = place(
        nodes=["node1", "node2"],
        groups=[
            {
                "group": "default",
                "reason": "",
                "places": [{"nodes": ["node1", "node2"], "score": 1.25}],
                "nodes": [{"text": "node3: 1.0G memory is missing"}],
            }
        ],
    )
    ran = gnt("gnt-cluster", "place")
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            "An instance of 1.0G memory, 10.0G disk (drbd), 1 virtual processor would go to node1"
            " and node2",
            "Group default",
            "  node1 and node2: score 1.2500",
            "  node3: 1.0G memory is missing",
        ],
    )


def test_no_place_fails_and_says_what_would_help(master: RecordingMaster, gnt: Run) -> None:
    group = {"group": "default", "reason": "no node is online", "places": [], "nodes": []}
    master.results["OP_CLUSTER_PLACE"] = place(groups=[group], hints=[{"text": "add a node"}])
    ran = gnt("gnt-cluster", "place")
    assert (ran.code, ran.out.splitlines()) == (
        1,
        [
            "An instance of 1.0G memory, 10.0G disk (drbd), 1 virtual processor has no place",
            "Group default: no node is online",
            "It would fit if you add a node",
        ],
    )


@pytest.mark.parametrize(
    ("ok", "helps", "last"),
    [
        (True, False, "  node1 is full"),
        (False, True, "  gnt-cluster balance helps, with 2 moves"),
        (
            False,
            False,
            "  no move helps: add a node, start fewer instances or release reservations",
        ),
    ],
)
def test_whether_the_loss_of_a_node_is_survived(
    master: RecordingMaster, gnt: Run, ok: bool, helps: bool, last: str
) -> None:
    group = {
        "group": "default",
        "ok": ok,
        "nodes": 3,
        "instances": 1,
        "score": 0.5,
        "findings": ["node1 is full"],
        "balancing_helps": helps,
        "moves": 2,
    }
    master.results["OP_CLUSTER_CHECK"] = {**QUIET, "ok": ok, "groups": [group]}
    ran = gnt("gnt-cluster", "check")
    assert ran.code == (0 if ok else 1)
    head, *_others, end = ran.out.splitlines()
    verdict = "ok" if ok else "not ok"
    assert head == f"Group default: {verdict}, 3 nodes, 1 instance, score 0.5000"
    assert end == last


def move(name: str, job: int | None, **more: Any) -> dict[str, Any]:
    return {
        "instance": name,
        "from": ["node1", "node2"],
        "to": ["node2", "node3"],
        "steps": ["migrate", "replace-disks"],
        "gain": 0.125,
        "copied": 10240,
        "reasons": ["memory", "n1"],
        "after": [],
        "job": job,
        **more,
    }


def balance(*moves: dict[str, Any], limited: bool = False) -> dict[str, Any]:
    group = {
        "group": "default",
        "score": 2.0,
        "score_after": 1.5,
        "moves": list(moves),
        "limited": limited,
    }
    return {**QUIET, "groups": [group]}


@pytest.mark.parametrize(
    ("limited", "why"), [(False, "nothing to do"), (True, "no move fits the limits")]
)
def test_a_balanced_cluster_has_no_moves(
    master: RecordingMaster, gnt: Run, limited: bool, why: str
) -> None:
    master.results["OP_CLUSTER_BALANCE"] = balance(limited=limited)
    ran = gnt("gnt-cluster", "balance")
    assert (ran.code, ran.out) == (0, f"Group default: {why}, score 2.0000\n")


def test_a_plan_is_explained_and_only_printed(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_CLUSTER_BALANCE"] = balance(
        move("web1", None), move("web2", None, after=[0], copied=0), limited=True
    )
    ran = gnt("gnt-cluster", "balance", "--dry-run", "--explain")
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            "Group default: 2 moves, score 2.0000 to 1.5000, copies 10.0G",
            "  1. web1: node1 + node2 -> node2 + node3 (migrate, replace-disks), gain 0.1250",
            "     memory; n1",
            "     copies 10.0G, begins at once",
            "  2. web2: node1 + node2 -> node2 + node3 (migrate, replace-disks), gain 0.1250",
            "     memory; n1",
            "     copies 0M, begins after 1",
            "  The limits end the plan here; more moves would help",
        ],
    )
    assert master.op["dry_run"] is True


def test_moves_are_followed_to_their_end(master: RecordingMaster, gnt: Run) -> None:
    master.jobs += [[{"OP_ID": "OP_INSTANCE_MIGRATE"}], [{"OP_ID": "OP_INSTANCE_FAILOVER"}]]
    master.failures["OP_INSTANCE_FAILOVER"] = errors.OpPrereqError("web2 has changed")
    master.results["OP_CLUSTER_BALANCE"] = balance(move("web1", 1), move("web2", 2))
    ran = gnt("gnt-cluster", "balance")
    assert ran.code == 1
    assert "web2 has changed" in ran.err
    assert "1 move of 2 failed or was refused; gnt-cluster balance makes a new plan" in ran.err
    master.results["OP_CLUSTER_BALANCE"] = balance(move("web1", 1))
    assert gnt("gnt-cluster", "balance", "--format", "json").code == 0

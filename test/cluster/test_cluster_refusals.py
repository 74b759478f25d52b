"""Ordinary refusals on a real cluster begin with the reason; nothing is 'unhandled'."""

from __future__ import annotations

import pytest
from local_cluster import Cluster, Ran

WEB = "web1.example.com"


@pytest.fixture(scope="module")
def filled_cluster(cluster: Cluster) -> Cluster:
    assert cluster.add(WEB).code == 0
    return cluster


def check_reason(ran: Ran, beginning: str, code: int = 1) -> None:
    assert ran.code == code
    said = [line for line in ran.err.splitlines() if not line.startswith("JobID")]
    assert said[0].startswith(beginning)
    for boilerplate in ("Unhandled", "prerequisites not met", "error type", "execution error"):
        assert boilerplate not in ran.err


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("instance startup wbe1", f"There is no instance 'wbe1' (did you mean {WEB}?)"),
        ("instance info wbe1 --static", f"instance 'wbe1' is not known (did you mean {WEB}?)"),
        ("node info -f", "Usage: gnt-node info"),
        ("node list nodd2", "node 'nodd2' is not known (did you mean node2.example.com?)"),
        ("node migrate -f nodd2", "There is no node 'nodd2' (did you mean node2.example.com?)"),
        ("instance migrate web1 -f", f"the disks of instance {WEB}"),
        ("job watch 9999", "job 9999 does not exist or is archived"),
        ("rapi user add anna", "A password must not be empty"),
    ],
)
def test_the_reason_is_the_first_line(filled_cluster: Cluster, line: str, reason: str) -> None:
    check_reason(filled_cluster.gnt(line), reason, 2 if reason.startswith("Usage") else 1)


def test_a_drained_queue(filled_cluster: Cluster) -> None:
    filled_cluster.ok("cluster queue drain")
    try:
        check_reason(filled_cluster.gnt("instance startup", WEB), "the job queue is drained")
    finally:
        filled_cluster.ok("cluster queue undrain")


def test_a_filter_rule_that_rejects(filled_cluster: Cluster) -> None:
    rule = filled_cluster.ok(
        "filter add --action REJECT --predicates", '[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]'
    ).out.strip()
    try:
        check_reason(
            filled_cluster.gnt("debug delay 0"), f"The job was not run: filter rule {rule} rejects"
        )
    finally:
        filled_cluster.ok("filter delete", rule)


def test_watching_a_canceled_job(filled_cluster: Cluster) -> None:
    number = filled_cluster.ok("debug delay --print-jobid --submit 600").out.strip()
    assert "will be canceled" in filled_cluster.ok("job cancel", number).out
    for verb in ("watch", "wait"):
        ran = filled_cluster.gnt(f"job {verb}", number)
        assert ran.code == 1
        assert "Unhandled" not in ran.err
        assert "canceled" in ran.err.splitlines()[0]


@pytest.mark.parametrize("command", ["instance list", "job watch 1", "job wait 1"])
def test_a_node_that_is_not_the_master(filled_cluster: Cluster, command: str) -> None:
    ran = filled_cluster.gnt(command, node="node2")
    check_reason(ran, "This node is not the master: log in to", 11)
    assert ran.out == ""

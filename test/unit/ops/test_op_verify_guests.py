"""What verification makes of the guests that nodes tell."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import Findings, config, node, put, with_web1

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.enums import AdminState
from ganeti.ops.verification import guests

# disks --------------------------------------------------------------------------------------------


def plugged(
    findings: Findings, disks: Any, *, now: Config | None = None, busy: tuple[str, ...] = ()
) -> list[str]:
    of = with_web1()
    answers = {"node-2": {"guest-disks": disks}, "node-3": {"guest-disks": "no answer"}}
    guests.disks(findings.report, of, now or of, of.nodes.values(), answers, busy)
    return findings.lines


def test_a_guest_without_a_disk_of_its_instance(findings: Findings) -> None:
    assert plugged(findings, {"web1": []}) == [
        "WARNING:EINSTANCELAYOUT:instance:web1:its guest runs without disk/0 (disk-web1); to give"
        " it: gnt-instance reboot --type=full web1"
    ]
    assert findings.report.ok


def test_a_guest_with_a_disk_of_somebody_else(findings: Findings) -> None:
    assert plugged(findings, {"web1": ["disk-web1", "other"]}) == [
        "ERROR:EINSTANCELAYOUT:instance:web1:its guest has disk other, which is not its own; to"
        " end that: gnt-instance reboot --type=full web1"
    ]
    assert not findings.report.ok


def test_guests_that_changed_while_they_were_asked_are_left_out(findings: Findings) -> None:
    wrong = {"web1": ["other"]}
    assert plugged(findings, {"web1": ["disk-web1"]}) == []
    assert plugged(findings, {"db1": ["other"]}) == []
    assert plugged(findings, wrong, busy=("web1",)) == []
    assert plugged(findings, wrong, now=with_web1(disks=())) == []
    assert plugged(findings, wrong, now=with_web1(primary_node="node-3")) == []
    assert plugged(findings, wrong, now=config(node(2), node(3))) == []
    assert plugged(findings, wrong) != []


# nodes --------------------------------------------------------------------------------------------


def state(findings: Findings, of: Config, **running: list[str]) -> list[str]:
    names = {key.replace("_", "-"): value for key, value in running.items()}
    guests.state(findings.report, of, of.instances["inst-web1"], names)
    return findings.lines


def test_an_instance_that_does_not_run(findings: Findings) -> None:
    wanted = with_web1(admin_state=AdminState.UP)
    assert state(findings, with_web1(), node_2=[]) == []
    assert state(findings, wanted, node_2=["web1"]) == []
    assert state(findings, wanted, node_3=[]) == []  # node2 has not told
    assert state(findings, wanted, node_2=["db1"]) == [
        "ERROR:EINSTANCEDOWN:instance:web1:should run on its primary node node2.example.com, but"
        " does not; to start it: gnt-instance startup web1"
    ]


def test_an_instance_of_an_offline_node(findings: Findings) -> None:
    def offline(state: AdminState) -> Config:
        of = with_web1(admin_state=state)
        return put(of, "nodes", base.replace(of.nodes["node-2"], offline=True))

    assert state(findings, offline(AdminState.DOWN)) == []
    assert state(findings, offline(AdminState.UP)) == [
        "ERROR:EINSTANCEBADNODE:instance:web1:should run, but its primary node node2.example.com"
        " is offline"
    ]


@pytest.mark.parametrize(
    ("here", "text"),
    [
        (
            [],
            "runs on node node3.example.com, but belongs to node2.example.com; to repair it:"
            " gnt-instance migrate --cleanup web1",
        ),
        (
            ["web1"],
            "runs on node node3.example.com too, but belongs to node2.example.com; to repair it:"
            " gnt-instance failover --cleanup --ignore-consistency web1",
        ),
    ],
)
def test_an_instance_that_runs_elsewhere(findings: Findings, here: list[str], text: str) -> None:
    assert state(findings, with_web1(), node_2=here, node_3=["web1"]) == [
        f"ERROR:EINSTANCEWRONGNODE:instance:web1:{text}"
    ]


def test_guests_of_no_instance(findings: Findings) -> None:
    guests.check_unknown(
        findings.report, with_web1(), {"node-2": ["web1"], "node-3": ["z", "web1", "a"]}
    )
    assert findings.lines == [
        f"ERROR:ENODEORPHANINSTANCE:node:node3.example.com:instance {name} runs here but is not in"
        " the configuration"
        for name in ("a", "z")
    ]

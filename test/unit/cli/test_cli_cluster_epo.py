"""gnt-cluster epo: what it submits, in which order, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from recording_master import Ran, RecordingMaster, Run

from ganeti import errors
from ganeti.cli import program, programs


@pytest.fixture
def epo(master: RecordingMaster, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> Ran:
        code = program.main(programs.CLUSTER, ["epo", *words])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


@pytest.fixture
def three(master: RecordingMaster) -> RecordingMaster:
    """node1 is the master; node1 and node2 have a helper, node3 has none."""
    for number, powered in ((1, True), (2, True), (3, None)):
        node(master, number, powered=powered, role="M" if number == 1 else "C")
    return master


def node(master: RecordingMaster, number: int, **fields: Any) -> None:
    name = f"web{number}.example.com"
    master.add_instance(name, oper_state=True, admin_state="up", snodes=[], forthcoming=False)
    master.add_node(
        f"node{number}.example.com", pip=f"127.0.0.{number}", pinst_list=[name], **fields
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Name nodes"),
        (["--all", "node2"], "Name nodes"),
        (["--all", "--groups"], "not both"),
        (["--groups"], "Name nodes"),
        (["node1"], "is the master"),
        (["nosuch"], "no node 'nosuch'"),
        (["--groups", "nosuch"], "no node group 'nosuch'"),
        (["--oob-timeout", "soon", "node2"], "soon"),
    ],
)
def test_refused(three: RecordingMaster, epo: Run, words: list[str], text: str) -> None:
    ran = epo("-f", *words)
    assert ran.code in (1, 2)
    assert text in ran.err
    assert three.jobs == []


def test_nothing_is_done_unasked(three: RecordingMaster, epo: Run) -> None:
    ran = epo("node2")
    assert (ran.code, three.jobs) == (1, [])


def test_instances_stop_before_nodes(three: RecordingMaster, epo: Run) -> None:
    three.results["OP_OOB_COMMAND"] = [[[0, "node2.example.com"], [0, None]]]
    ran = epo("-f", "--shutdown-timeout", "9", "node2", "node3")
    assert ran.code == 0, ran.err
    assert "node3.example.com has no out-of-band helper" in ran.out
    stops, switch = three.jobs[:2], [three.strip(op) for op in three.jobs[2]]
    assert [
        (op["OP_ID"], op["instance_name"], op["timeout"], op["no_remember"])
        for job in stops
        for op in job
    ] == [("OP_INSTANCE_SHUTDOWN", f"web{n}.example.com", 9, True) for n in (2, 3)]
    offline, power = switch
    assert (offline["OP_ID"], offline["node_name"]) == ("OP_NODE_SET_PARAMS", "node2.example.com")
    assert (offline["offline"], offline["auto_promote"]) == (True, True)
    assert (power["command"], power["node_names"]) == ("power-off", ["node2.example.com"])


def test_a_guest_that_does_not_stop_keeps_the_nodes_on(three: RecordingMaster, epo: Run) -> None:
    three.failures["OP_INSTANCE_SHUTDOWN"] = errors.OpExecError("the guest is stubborn")
    ran = epo("-f", "--all")
    assert ran.code == 1
    assert "Nothing was switched off" in ran.err
    assert {op["OP_ID"] for op in three.ops} == {"OP_INSTANCE_SHUTDOWN"}


def test_a_helper_that_fails_is_told(three: RecordingMaster, epo: Run) -> None:
    three.results["OP_OOB_COMMAND"] = [[[0, "node2.example.com"], [2, None]]]
    ran = epo("-f", "node2")
    assert ran.code == 1
    assert "Node node2.example.com: the out-of-band helper failed" in ran.err


def test_a_node_that_is_offline_for_another_reason_stays_so(
    master: RecordingMaster, epo: Run
) -> None:
    node(master, 2, powered=True, offline=True, role="O")
    ran = epo("-f", "--on", "node2")
    assert ran.code == 0, ran.err
    assert "it stays so" in ran.out
    assert master.jobs == []


def test_instances_start_in_the_order_of_their_tags(
    master: RecordingMaster, epo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ganeti.cli.cluster.power._find_answering_nodes", list)
    tags: dict[str, list[str]] = {"dns": ["ganeti:order:10"], "app": [], "web": []}
    for name in tags:
        fields = {"oper_state": False, "admin_state": "up", "snodes": [], "tags": tags[name]}
        master.add_instance(f"{name}.example.com", forthcoming=False, **fields)
    names = [f"{name}.example.com" for name in ("web", "app", "dns")]
    master.add_node("node2.example.com", pip="127.0.0.2", pinst_list=names, powered=None, role="C")
    ran = epo("-f", "--on", "node2")
    assert ran.code == 0, ran.err
    ended = ["success", "error", "canceled"]
    assert [(op["instance_name"], op.get("depends")) for op in master.ops] == [
        ("dns.example.com", None),
        ("app.example.com", [[-1, ended]]),
        ("web.example.com", [[-2, ended]]),
    ]

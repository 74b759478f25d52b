"""Which instances a command acts on, and what it asks first, at a real terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors
from ganeti.cli import notices
from ganeti.cli.instance import change

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def cluster(master: RecordingMaster) -> RecordingMaster:
    """Four instances on three nodes."""
    for name, tags in (("web1", ["prod", "web"]), ("web2", ["web"]), ("db1", ["prod"]), ("x", [])):
        master.add_instance(f"{name}.example.com", tags=tags)
    full = {name: f"{name}.example.com" for name in ("web1", "web2", "db1", "x")}
    master.add_node("node1.example.com", tags=["old"], pinst_list=[full["web1"], full["db1"]])
    master.add_node(
        "node2.example.com", tags=["old"], pinst_list=[full["web2"]], sinst_list=[full["web1"]]
    )
    master.add_node("node3.example.com", pinst_list=[full["x"]], sinst_list=[full["web2"]])
    return master


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("web1 db1.example.com", "web1 db1"),
        ("--instance web2", "web2"),
        ("--all", "web1 web2 db1 x"),
        ("--node node2", "web2 web1"),
        ("--primary node1 node3", "web1 db1 x"),
        ("--secondary node2 node3", "web1 web2"),
        ("--tags prod", "web1 db1"),
        ("--tags prod web", "web1 web2 db1"),
        ("--node-tags old", "web1 db1 web2"),
        ("--pri-node-tags old", "web1 db1 web2"),
        ("--sec-node-tags old", "web1"),
        ("--all --tags web", "web1 web2"),
    ],
)
def test_selections(cluster: RecordingMaster, gnt_instance: Run, words: str, expected: str) -> None:
    ran = gnt_instance(f"startup --force-multiple {words}")
    assert ran.code == 0
    found = [op["instance_name"].removesuffix(".example.com") for op in cluster.ops]
    assert sorted(found) == sorted(expected.split())
    assert [len(job) for job in cluster.jobs] == [1] * len(found)


@pytest.mark.parametrize(
    ("words", "sentence", "kind"),
    [
        ("", "No instances were named; use --all for all of them", "wrong_input"),
        ("nosuch", "There is no instance 'nosuch'", "unknown_entity"),
        ("web1 we", "There is no instance 'we' (did you mean web2.example.com?)", "unknown_entity"),
        ("WEB1", "There is no instance 'WEB1'", "unknown_entity"),
        ("--all web1", "Give either --all or names, not both", "wrong_input"),
        ("--node", "No nodes or tags of nodes were named", "wrong_input"),
        ("--node nosuch", "There is no node 'nosuch'", "unknown_entity"),
        ("--tags nosuch", "No instance has one of the tags nosuch", "wrong_input"),
        ("--node-tags nosuch", "No node has one of the tags nosuch", "wrong_input"),
        ("--secondary node1", "There are no such instances on node1", "wrong_input"),
    ],
)
def test_nothing_to_act_on(
    cluster: RecordingMaster,
    gnt_instance: Run,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    sentence: str,
    kind: str,
) -> None:
    ran = gnt_instance(f"shutdown -f {words}")
    assert (ran.code, ran.err) == (1, f"{sentence}\n")
    monkeypatch.setenv("GANETI_ERRORS", "classic")
    ran = gnt_instance(f"shutdown -f {words}")
    assert ran.code == 1
    assert ran.err.splitlines()[1:] == [f"error type: {kind}, error details:", sentence]
    assert cluster.jobs == []


def test_several_jobs_are_announced_and_all_waited_for(
    cluster: RecordingMaster, gnt_instance: Run
) -> None:
    ran = gnt_instance("reboot --force-multiple web1 web2")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "Submitted jobs 1, 2",
        "Waiting for job 1 for web1.example.com ...",
        "Waiting for job 2 for web2.example.com ...",
    ]


def test_several_jobs_that_are_not_waited_for(cluster: RecordingMaster, gnt_instance: Run) -> None:
    cluster.refused = {1: "the queue is full"}
    ran = gnt_instance("startup -f --submit --print-jobid web1 web2 db1")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "1",
        "2",
        "1: web1.example.com",
        "2: db1.example.com",
    ]
    assert ran.err.splitlines() == [
        "JobID: 1 (web1.example.com)",
        "Failure for web2.example.com: the queue is full",
        "JobID: 2 (db1.example.com)",
    ]


def test_one_failure_does_not_hide_the_others(cluster: RecordingMaster, gnt_instance: Run) -> None:
    cluster.failures["OP_INSTANCE_REBOOT"] = errors.OpExecError("no memory")
    ran = gnt_instance("reboot --force-multiple web1 web2")
    assert ran.code == 1
    assert ran.err.count("has failed: no memory\n") == 2


# questions -----------------------------------------------------------------------------------


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: that of a person, and that of a program."""
    person, program = pty.openpty()
    try:
        yield person, program
    finally:
        os.close(person)
        os.close(program)


def read_until(fd: int, text: str, limit: float = 15.0) -> str:
    """What a terminal shows, up to a text."""
    end = time.monotonic() + limit
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([fd], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"only saw {shown!r}"
        shown += os.read(fd, 4096).decode()
    return shown.replace("\r\n", "\n")


@pytest.mark.parametrize(
    "words",
    [
        ["startup", "web1", "web2"],
        ["startup", "--all"],
        ["startup", "--tags", "prod"],
        ["reinstall", "web1"],
        ["remove", "web1"],
        ["migrate", "web1"],
        ["failover", "web1"],
        ["move", "-n", "node2", "web1"],
    ],
)
def test_without_a_terminal_the_answer_is_no(
    cluster: RecordingMaster, start_gnt_instance: Start, words: list[str]
) -> None:
    child = start_gnt_instance(*words)
    out, told = child.communicate(timeout=20)
    assert out == ""
    assert "There is no terminal to ask at, so nothing is done" in told
    assert child.returncode == 1
    assert cluster.jobs == []


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("yes", 0), ("n", 1), ("", 1)])
def test_a_person_is_asked_before_several_instances_change(
    cluster: RecordingMaster, start_gnt_instance: Start, answer: str, code: int
) -> None:
    with terminal() as (person, program):
        child = start_gnt_instance("shutdown", "web1", "web2", terminal=program)
        shown = read_until(person, "y/[n]: ")
        assert shown == (
            "  web1.example.com\n  web2.example.com\nStop 2 instances. Continue?\ny/[n]: "
        )
        os.write(person, f"{answer}\n".encode())
        child.communicate(timeout=20)
    assert child.returncode == code
    assert len(cluster.jobs) == (0 if code else 2)


def test_a_person_is_asked_before_data_is_lost(
    cluster: RecordingMaster, start_gnt_instance: Start
) -> None:
    with terminal() as (person, program):
        child = start_gnt_instance("remove", "web1", terminal=program)
        shown = read_until(person, "y/[n]: ")
        assert "Delete instance web1 with its disks and all data on them?" in shown
        os.write(person, b"perhaps\ny\n")
        assert "answer y for yes" in read_until(person, "y/[n]: ")
        child.communicate(timeout=20)
    assert child.returncode == 0
    assert cluster.op["OP_ID"] == "OP_INSTANCE_REMOVE"


@pytest.mark.parametrize("command", ["remove", "migrate", "failover", "move -n node2"])
def test_nobody_is_asked_about_what_does_not_exist(
    cluster: RecordingMaster, gnt_instance: Run, command: str
) -> None:
    ran = gnt_instance(f"{command} nosuch")
    assert ran.code == 1
    assert "There is no instance 'nosuch'" in ran.err
    assert cluster.jobs == []


def test_an_os_is_chosen_at_the_terminal(
    cluster: RecordingMaster, start_gnt_instance: Start
) -> None:
    cluster.results["OP_OS_DIAGNOSE"] = [
        ["debian", ["small", "large"], True],
        ["broken", [], False],
        ["noop", [], True],
    ]
    with terminal() as (person, program):
        child = start_gnt_instance("reinstall", "-f", "--select-os", "web1", terminal=program)
        shown = read_until(person, "q to stop): ")
        assert [line.split() for line in shown.splitlines()[1:4]] == [
            ["1", "debian+small"],
            ["2", "debian+large"],
            ["3", "noop"],
        ]
        os.write(person, b"4\n2\n")
        child.communicate(timeout=20)
    assert child.returncode == 0
    assert cluster.ops[-1]["os_type"] == "debian+large"


def test_an_os_cannot_be_chosen_without_a_terminal(
    cluster: RecordingMaster, start_gnt_instance: Start
) -> None:
    cluster.results["OP_OS_DIAGNOSE"] = [["noop", [], True]]
    child = start_gnt_instance("reinstall", "--select-os", "web1")
    assert "--select-os needs a terminal" in child.communicate(timeout=20)[1]
    assert child.returncode == 1


def answers(*lines: str) -> tuple[Callable[[], str], list[str]]:
    """Somebody who gives these answers and then is gone, and what they were told."""
    left = list(lines)
    return (lambda: left.pop(0) if left else ""), []


@pytest.mark.parametrize(
    ("given", "chosen"), [(["2\n"], "b"), (["0\n", "x\n", "1\n"], "a"), (["q\n"], None), ([], None)]
)
def test_choosing_by_number(given: list[str], chosen: str | None) -> None:
    read, told = answers(*given)
    assert change.choose(["a", "b"], read=read, write=told.append) == chosen


def test_a_long_list_is_shown_on_request() -> None:
    read, told = answers("v\n", "y\n")
    names = [f"web{number}" for number in range(30)]
    assert notices.ask("Stop them?", names, read=read, write=told.append)
    assert told[0] == "Stop them?\ny/[n]/v: "
    assert "  web29\n" in told[1]

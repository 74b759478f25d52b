"""gnt-debug: what it submits, and what it prints of locks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors


def lock(name: str, owner: object = None, pending: object = None) -> dict[str, Any]:
    mode = "exclusive" if owner else None
    return {"name": name, "mode": mode, "owner": owner, "pending": pending}


def test_locks_as_scripts_know_them(master: RecordingMaster, gnt: Run) -> None:
    master.tables["lock"] = [
        lock("cluster/BGL"),
        lock("node/uuid-1", ["job4", "job5"], [["shared", ["job6", "job7"]]]),
    ]
    ran = gnt("gnt-debug", "locks", "--no-headers", "--separator", "|")
    assert (ran.code, ran.out) == (
        0,
        "cluster/BGL|-|None|-\nnode/uuid-1|exclusive|job4,job5|shared:job6,job7\n",
    )


def test_a_person_sees_locks_in_use_by_their_names(
    master: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    master.add_node("node1")
    master.tables["lock"] = [lock("cluster/BGL"), lock("node/uuid-node1", ["job4"])]
    ran = gnt("gnt-debug", "locks")
    assert [line.split() for line in ran.out.splitlines()[1:]] == [
        ["node/node1", "exclusive", "job4", "-"]
    ]
    assert "1 free lock not shown; -v shows them too" in ran.err
    assert "cluster/BGL" in gnt("gnt-debug", "locks", "-v").out


@pytest.fixture
def locking_master(master: RecordingMaster) -> RecordingMaster:
    master.tables["lock"] = [
        lock("cluster/BGL"),
        lock("node/uuid-1", ["4"]),
        lock("instance/web1", ["4", "5"]),
    ]
    master.answers["QueryConfigValues"] = ["cluster.example.com"]
    return master


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["echo", "hello"], "hello"),
        (["listlocks", "5"], [["instance/web1", "exclusive"]]),
        (["listalllocks"], ["node/uuid-1", "instance/web1"]),
        (
            ["listalllocksowners"],
            [
                ["node/uuid-1", [["4", "exclusive"]]],
                ["instance/web1", [["4", "exclusive"], ["5", "exclusive"]]],
            ],
        ),
        (["flushconfig"], None),
        (["cleanuplocks"], None),
    ],
)
def test_what_was_asked_of_wconfd(
    locking_master: RecordingMaster, gnt: Run, words: list[str], answer: object
) -> None:
    ran = gnt("gnt-debug", "wconfd", *words)
    assert (ran.code, json.loads(ran.out)) == (0, answer)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["wconfd", "nosuch"], "There is no command 'nosuch'; choose from echo, listlocks"),
        (["wconfd", "echo"], "echo takes 1 argument(s), not 0"),
        (["wconfd", "listlocks", "web1"], "'web1' is not the number of a job"),
        (["metad", "echo"], "Write: gnt-debug metad echo <text>"),
        (["metad", "echo", "x"], "ganeti-metad does not run on this node"),
        (["delay", "long"], "long"),
    ],
)
def test_what_cannot_be_asked(
    locking_master: RecordingMaster, gnt: Run, words: list[str], said: str
) -> None:
    ran = gnt("gnt-debug", *words)
    assert ran.code == 1
    assert said in ran.err


def test_jobs_of_files(master: RecordingMaster, gnt: Run, tmp_path: Path) -> None:
    file = tmp_path / "ops"
    file.write_text('[{"OP_ID": "OP_TEST_DELAY", "duration": 0}]')
    words = ("--op-repeat", "2", "--job-repeat", "3", "--timing-stats")
    ran = gnt("gnt-debug", "submit-job", *words, str(file))
    assert ran.code == 0
    assert [len(job) for job in master.jobs] == [2, 2, 2]
    assert "Submitted 3 jobs with 6 opcodes in " in ran.out
    assert gnt("gnt-debug", "submit-job", "--each", str(file)).code == 0
    assert len(master.jobs) == 4
    master.failures["OP_TEST_DELAY"] = errors.OpExecError("woken up")
    assert gnt("gnt-debug", "submit-job", str(file)).code == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file or directory"),
        ("{", "Cannot read opcodes from"),
        ("{}", "is not a list of opcodes"),
        ("[1]", "is not a list of opcodes"),
        ('[{"OP_ID": "OP_NOSUCH"}]', "OP_NOSUCH"),
    ],
)
def test_files_without_a_job(
    master: RecordingMaster, gnt: Run, tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "ops"
    if text is not None:
        file.write_text(text)
    ran = gnt("gnt-debug", "submit-job", str(file))
    assert ran.code == 1
    assert said in ran.err
    assert master.jobs == []


def test_what_an_allocator_is_asked(master: RecordingMaster, gnt: Run) -> None:
    master.results["OP_TEST_ALLOCATOR"] = "the question"
    words = ("--mode", "allocate", "--disks", "10G,1G", "--nics", "aa:00:00:00:00:01/192.0.2.1")
    ran = gnt("gnt-debug", "iallocator", *words, "web1")
    assert (ran.code, ran.out) == (0, "the question\n")
    op = master.op
    assert op["disks"] == [{"size": 10240, "mode": "rw"}, {"size": 1024, "mode": "rw"}]
    assert op["nics"] == [{"mac": "aa:00:00:00:00:01", "ip": "192.0.2.1"}]
    assert (op["name"], op["instances"]) == ("web1", ["web1"])
    gnt("gnt-debug", "iallocator", "web1")
    assert (master.ops[-1].get("disks"), master.ops[-1]["mode"]) == (None, "relocate")


def test_secrets_reach_a_job(master: RecordingMaster, gnt: Run) -> None:
    ran = gnt("gnt-debug", "test-osparams", "--os-parameters-secret", "key=secret")
    assert ran.code == 0, ran.err
    assert "The secret parameters reached the job" in ran.err
    assert gnt("gnt-debug", "delay", "0.5").code == 0
    assert master.ops[-1]["duration"] == 0.5


def test_a_queue_that_does_not_work_is_told(master: RecordingMaster, gnt: Run) -> None:
    # every opcode succeeds here, also one that no cluster knows
    ran = gnt("gnt-debug", "test-jobqueue")
    assert ran.code == 1
    assert ran.out == "Submission ...\n"
    assert "an unknown opcode: expected None, found" in ran.err

"""Jobs that a command waits for: what is said while they run, and of how they end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors
from ganeti.cli import jobs
from ganeti.luxi.client import Client

DELAY = [{"OP_ID": "OP_TEST_DELAY"}]


@pytest.fixture
def client(master: RecordingMaster) -> Iterator[Client]:
    with Client() as made:
        yield made


def entry(serial: int, text: Any = "done", kind: str = "message") -> list[Any]:
    return [serial, [1700000000, 0], kind, text]


def row(status: str, opstatus: list[str], opresult: list[Any]) -> list[list[Any]]:
    return [[status, opstatus, opresult, False]]


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (row("canceled", ["canceled"], [None]), errors.JobCanceled, "Job was canceled"),
        (
            row("canceled", ["canceled"], [errors.encode(errors.OpExecError("by root"))]),
            errors.OpExecError,
            "by root",
        ),
        (
            row("error", ["success", "error"], [None, errors.encode(errors.OpPrereqError("no"))]),
            errors.OpPrereqError,
            "no",
        ),
        (
            row("error", ["success", "error"], [None, "odd"]),
            errors.OpExecError,
            "partial failure .opcode 1.: odd",
        ),
        (row("error", ["error"], ["odd"]), errors.OpExecError, "^odd"),
        (row("error", ["queued"], [None]), errors.OpExecError, "Job 1 failed without a reason"),
        ([[None, None, None, None]], errors.JobLost, "Job with id 1 lost"),
        ([], errors.JobLost, "Job with id 1 lost"),
    ],
)
def test_how_a_job_ends(
    master: RecordingMaster,
    client: Client,
    answer: Any,
    error: type[errors.GanetiError],
    said: str,
) -> None:
    master.answers["WaitForJobChange"] = [["success"], []]
    master.answers["QueryJobs"] = answer
    with pytest.raises(error, match=said):
        jobs.wait(client, 1)


def test_the_log_is_shown_once_and_in_its_order(
    master: RecordingMaster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    news = [
        [["running"], [entry(1, "one")]],
        None,
        [["running"], [entry(2, ["two", "three"], "message-list"), entry(3, {"port": 1}, "data")]],
        [["success"], [entry(4, "four")]],
    ]
    master.answers["WaitForJobChange"] = lambda _args: news.pop(0)
    master.answers["QueryJobs"] = row("success", ["success"], [12])
    assert jobs.wait(client, 1) == [12]
    shown = [line[25:] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["one", "two", "three", "four"]
    serials = [args["prev_log"] for name, args in master.requests if name == "WaitForJobChange"]
    assert serials == [None, 1, 1, 3]


def test_the_log_of_a_job_that_is_archived_meanwhile(
    master: RecordingMaster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    def lose_job(_args: Any) -> Any:
        raise errors.JobLost("Job with id 1 lost")

    master.answers["WaitForJobChange"] = lose_job
    log = [[entry(1, "one")], [entry(2, "two")]]
    master.answers["QueryJobs"] = lambda args: (
        [["success", log, True]] if "oplog" in args["fields"] else row("success", ["success"], [7])
    )
    assert jobs.wait(client, 1) == [7]
    assert [line[25:] for line in capsys.readouterr().out.splitlines()] == ["one", "two"]
    master.answers["QueryJobs"] = [[None, None, None]]
    with pytest.raises(errors.JobLost):
        jobs.wait(client, 1)


def test_ctrl_c_leaves_the_job_alone(
    master: RecordingMaster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_entry: object) -> None:
        raise KeyboardInterrupt

    master.answers["WaitForJobChange"] = [["running"], [entry(1)]]
    with pytest.raises(jobs.Exit) as ended:
        jobs.wait(client, 7, feedback=interrupt)
    assert ended.value.code == 130
    assert capsys.readouterr().err == (
        "Detached; job 7 continues. Watch it with: gnt-job watch 7\n"
    )


def test_a_master_that_goes_away_is_told(
    master: RecordingMaster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_answer(_args: Any) -> Any:
        raise errors.ProtocolError("the answer is cut off")

    master.answers["WaitForJobChange"] = break_answer
    with pytest.raises(errors.LuxiError):
        jobs.wait(client, 7)
    assert "Job 7 may have failed; see gnt-job info 7." in capsys.readouterr().err


def test_jobs_that_are_only_submitted(master: RecordingMaster, gnt: Run) -> None:
    ran = gnt("gnt-instance", "reboot", "--submit", "--print-jobid", "web1")
    assert ran.code != 0  # there is no such instance
    master.add_instance("web1")
    master.add_instance("web2")
    ran = gnt("gnt-instance", "reboot", "--submit", "--print-jobid", "web1")
    assert (ran.code, ran.out) == (0, "1\n1: web1\n")
    assert "JobID: 1 (web1)" in ran.err
    master.refused[1] = "the queue is full"
    ran = gnt("gnt-instance", "reboot", "--submit", "--all", "--force-multiple")
    assert ran.code == 1
    assert "Failure for web2: the queue is full" in ran.err


def test_one_of_several_jobs_fails(master: RecordingMaster, gnt: Run) -> None:
    for name in ("web1", "web2", "web3"):
        master.add_instance(name)
    master.refused[2] = "the queue is full"
    master.failures["OP_INSTANCE_REBOOT"] = errors.OpExecError("it does not stop")
    ran = gnt("gnt-instance", "reboot", "--all", "--force-multiple")
    assert ran.code == 1
    assert "Submitted jobs 1, 2" in ran.out
    assert "Waiting for job 1 for web1 ..." in ran.out
    assert "Job 2 for web2 has failed: it does not stop" in ran.err
    assert "Failed to submit job for web3: the queue is full" in ran.err


def test_a_job_that_is_gone_cannot_be_checked(master: RecordingMaster, gnt: Run) -> None:
    master.add_instance("web1")
    master.add_instance("web2")
    master.answers["QueryJobs"] = []
    ran = gnt("gnt-instance", "reboot", "--all", "--force-multiple")
    assert ran.code == 1
    assert "Job 1 for web1 has been archived, its result cannot be checked" in ran.err

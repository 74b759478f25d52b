"""gnt-job: what it prints, what it asks of the master, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from recording_master import RecordingMaster, Run

from ganeti import errors
from ganeti.base.clock import SYSTEM


def row(number: int, status: str = "success", **more: Any) -> dict[str, Any]:
    """A job as queries return it: five seconds in the queue, two seconds of work."""
    return {
        "id": number,
        "status": status,
        "summary": ["TEST_DELAY(1500000000 ns)"],
        "user": "root",
        "received_ts": [1700000000, 0],
        "start_ts": [1700000005, 0],
        "end_ts": [1700000007, 500000],
        "opresult": [None],
        "archived": False,
        **more,
    }


def list_requests(master: RecordingMaster, method: str) -> list[dict[str, Any]]:
    return [args for name, args in master.requests if name == method]


# list --------------------------------------------------------------------------------------


def test_jobs_are_listed_as_scripts_know_it(master: RecordingMaster, gnt: Run) -> None:
    master.tables["job"] = [row(1), row(2, "running")]
    ran = gnt("gnt-job", "list", "--no-headers", "--separator", ":")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "1:success:TEST_DELAY(1500000000 ns)",
        "2:running:TEST_DELAY(1500000000 ns)",
    ]


def test_options_and_arguments_select_jobs(master: RecordingMaster, gnt: Run) -> None:
    master.query_answer = {"fields": [], "data": []}
    gnt("gnt-job", "list", "--error")
    gnt("gnt-job", "list", "--pending", "7")
    gnt("gnt-job", "list", "7", "9", "--archived")
    first, second, third = list_requests(master, "Query")
    assert first["qfilter"] == ["|", ["==", "status", "error"]]
    assert second["qfilter"][0] == "&"
    assert second["qfilter"][2] == ["|", ["==", "id", 7]]
    assert third["qfilter"] == ["|", ["==", "id", 7], ["==", "id", 9]]
    assert third["fields"] == ["id", "status", "summary", "archived"]


def test_a_person_sees_age_and_duration(
    master: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(type(SYSTEM), "now", lambda _self: 1700000065.0)
    waiting = row(2, "waiting", start_ts=None, end_ts=None)
    master.tables["job"] = [row(1), waiting, row(3, "running", end_ts=None)]
    lines = gnt("gnt-job", "list").out.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "Id Status User Age Duration Summary",
        "1 success root 1 min 5 s 2.5 s TEST_DELAY(1.5 s)",
        "2 waiting root 1 min 5 s - TEST_DELAY(1.5 s)",
        "3 running root 1 min 5 s 1 min 0 s TEST_DELAY(1.5 s)",
    ]


def test_failed_jobs_are_shown_with_their_error(
    master: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    failed = errors.encode(errors.OpExecError("no room\non node2"))
    master.tables["job"] = [row(1, "error", opresult=[None, failed]), row(2, "error")]
    head, first, second = gnt("gnt-job", "list", "--error").out.splitlines()
    assert head.endswith("Error")
    assert first.endswith("no room")
    assert second.endswith("-")


def test_only_the_newest_jobs_are_listed_with_a_limit(master: RecordingMaster, gnt: Run) -> None:
    master.tables["job"] = [row(number) for number in range(1, 6)]
    ran = gnt("gnt-job", "list", "--limit", "2", "--no-headers", "-o", "id")
    assert ran.out.split() == ["4", "5"]
    assert "3 older jobs are not shown; --limit 0 shows all" in ran.err
    ran = gnt("gnt-job", "list", "--limit", "0", "--no-headers", "-o", "id")
    assert (len(ran.out.split()), ran.err) == (5, "")
    ran = gnt("gnt-job", "list", "--limit", "-1")
    assert ran.code == 1
    assert "--limit -1: expected 0 (all jobs) or a positive number" in ran.err


def test_unknown_fields_are_named_with_what_was_meant(
    master: RecordingMaster, gnt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    master.tables["job"] = [row(1)]
    ran = gnt("gnt-job", "list", "-o", "id,sumary")
    assert ran.code == 14
    assert "sumary" in ran.err
    assert "summary" in ran.err
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    ran = gnt("gnt-job", "list", "-o", "id,sumary")
    assert (ran.code, ran.out) == (14, "")
    assert "Unknown job field sumary" in ran.err
    assert "gnt-job list-fields lists all" in ran.err


def test_fields_are_listed(master: RecordingMaster, gnt: Run) -> None:
    master.tables["job"] = [row(1)]
    ran = gnt("gnt-job", "list-fields")
    assert "opresult" in ran.out
    ran = gnt("gnt-job", "list-fields", "--format", "json")
    assert '"name":"archived"' in ran.out


def test_columns_can_be_added_or_be_all(master: RecordingMaster, gnt: Run) -> None:
    master.tables["job"] = [row(1)]
    plus = gnt("gnt-job", "list", "-o", "+user", "--no-headers", "--separator", "|")
    assert plus.out == "1|success|TEST_DELAY(1500000000 ns)|root\n"
    everything = gnt("gnt-job", "list", "-o", "all", "--separator", "|")
    assert everything.out.splitlines()[0].split("|") == [name.title() for name in sorted(row(1))]


# info --------------------------------------------------------------------------------------


def details(number: int, **more: Any) -> list[Any]:
    """The fields that ``gnt-job info`` asks for, in its order."""
    found = {
        "id": number,
        "status": "success",
        "ops": [{"OP_ID": "OP_TEST_DELAY", "duration": 1, "on_nodes": ["a", "b"], "empty": {}}],
        "opresult": [None],
        "opstatus": ["success"],
        "oplog": [[[1, [1700000006, 0], "message", "half done"]]],
        "opstart": [[1700000005, 0]],
        "opexec": [[1700000005, 500000]],
        "opend": [[1700000007, 0]],
        "received_ts": [1700000000, 0],
        "start_ts": [1700000005, 0],
        "end_ts": [1700000007, 250000],
        "archived": False,
        **more,
    }
    return list(found.values())


def test_everything_about_a_job(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryJobs"] = [details(7), [8, *[None] * 12]]
    ran = gnt("gnt-job", "info", "7", "8")
    assert ran.code == 0
    lines = [line.strip() for line in ran.out.splitlines()]
    assert "Job ID 8 not found" in lines
    for line in (
        "- Job ID: 7",
        "Processing start: 2023-11-14 22:13:25.000000 (delta 5.000000s)",
        "Processing end: 2023-11-14 22:13:27.250000 (delta 2.250000s)",
        "Total processing time: 7.250000 seconds",
        "duration: 1",
        "on_nodes: a,b",
    ):
        assert line in lines
    assert any("half done" in line for line in lines)


def test_a_job_that_still_waits_has_no_times(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryJobs"] = [
        details(7, status="waiting", start_ts=None, end_ts=None, archived=True)
    ]
    lines = [line.strip() for line in gnt("gnt-job", "info", "7").out.splitlines()]
    assert "Status: waiting (archived)" in lines
    assert "Processing start: N/A" in lines
    assert "Total processing time: N/A" in lines


def test_a_job_id_is_a_number(master: RecordingMaster, gnt: Run) -> None:
    ran = gnt("gnt-job", "info", "web1")
    assert (ran.code, ran.out) == (1, "")
    assert "'web1' is not a job ID: expected a number" in ran.err


# why and logs ------------------------------------------------------------------------------


def waits(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, "waits_for": None, "step": "", "chain": [], **more}


def test_why_a_job_waits(master: RecordingMaster, gnt: Run) -> None:
    holder = waits("job 3 is running", waits_for={"release": ""}, step="Wiping disk 0")
    master.answers["ExplainJob"] = waits(
        "job 4 waits for instance/web1",
        waits_for={"release": "gnt-job cancel 3"},
        chain=[holder],
    )
    ran = gnt("gnt-job", "why", "4")
    assert ran.out.splitlines() == [
        "Job 4 waits for instance/web1",
        "    released by: gnt-job cancel 3",
        "Job 3 is running",
        "    last message: Wiping disk 0",
    ]
    assert '"text": "job 4 waits' in gnt("gnt-job", "why", "--format", "json", "4").out


def test_logs_of_all_daemons(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryJobLog"] = {
        "lines": [[1700000000.25, "node1", "ganeti-masterd", "INFO", "two\nlines"]],
        "cut": ["node1"],
        "failed": {},
    }
    ran = gnt("gnt-job", "logs", "4", "-n", "node1", "-n", "node2")
    assert list_requests(master, "QueryJobLog") == [{"job": 4, "nodes": ["node1", "node2"]}]
    assert (ran.code, ran.out) == (
        0,
        "2023-11-14 22:13:20.250 node1 ganeti-masterd INFO two\n    lines\n",
    )
    assert "Node node1: older lines are left out" in ran.err


def test_a_node_without_an_answer_fails_the_command(master: RecordingMaster, gnt: Run) -> None:
    master.answers["QueryJobLog"] = {"lines": [], "cut": [], "failed": {"node2": "no route"}}
    ran = gnt("gnt-job", "logs", "4", "--format", "json")
    assert (ran.code, ran.out.strip()) == (1, "[]")
    assert "Node node2 told nothing: no route" in ran.err


# watch and wait ----------------------------------------------------------------------------


def test_watching_shows_the_log_and_ends_as_the_job_does(master: RecordingMaster, gnt: Run) -> None:
    master.jobs.append([{"OP_ID": "OP_TEST_DELAY"}])
    master.logs["OP_TEST_DELAY"] = ["sleeping"]
    ran = gnt("gnt-job", "watch", "1")
    head, line, message = ran.out.splitlines()
    assert (ran.code, head, line) == (0, "Output from job 1 follows", "-" * 25)
    assert message.endswith("sleeping")
    assert gnt("gnt-job", "wait", "1").out == ""
    master.failures["OP_TEST_DELAY"] = errors.OpExecError("woken up")
    ran = gnt("gnt-job", "wait", "1")
    assert ran.code == 1
    assert "woken up" in ran.err


# cancel, change-priority, archive ----------------------------------------------------------


def test_jobs_are_canceled_by_their_ids(master: RecordingMaster, gnt: Run) -> None:
    answers = {7: [True, "Job 7 canceled"], 8: [False, "Job 8 is running"]}
    master.answers["CancelJob"] = lambda args: answers[args["job"]]
    ran = gnt("gnt-job", "cancel", "7", "8")
    assert (ran.code, ran.out) == (1, "Job 7 canceled\nJob 8 is running\n")
    assert gnt("gnt-job", "cancel", "7").code == 0


def test_killing_must_be_wanted(master: RecordingMaster, gnt: Run) -> None:
    master.answers["CancelJob"] = [True, "Job 7 killed"]
    ran = gnt("gnt-job", "cancel", "--kill", "7")
    assert ran.code == 1
    assert "--kill can leave work half done" in ran.err
    assert list_requests(master, "CancelJob") == []
    assert gnt("gnt-job", "cancel", "--kill", "--yes-do-it", "7").code == 0
    assert [args["kill"] for args in list_requests(master, "CancelJob")] == [True]


def test_selected_jobs_are_confirmed_first(master: RecordingMaster, gnt: Run) -> None:
    master.tables["job"] = [row(7, "queued"), row(8, "waiting"), row(9, "success")]
    master.answers["CancelJob"] = [True, "done"]
    ran = gnt("gnt-job", "cancel", "--pending")
    assert ran.code == 1
    assert list_requests(master, "CancelJob") == []
    ran = gnt("gnt-job", "cancel", "--pending", "-f")
    assert ran.code == 0
    assert [args["job"] for args in list_requests(master, "CancelJob")] == [7, 8]


@pytest.mark.parametrize("words", [[], ["7", "--pending"]])
def test_jobs_are_named_or_selected(master: RecordingMaster, gnt: Run, words: list[str]) -> None:
    ran = gnt("gnt-job", "cancel", *words)
    assert ran.code == 1
    assert "Give either job ids or one of --pending, --queued and --waiting" in ran.err


def test_a_priority_is_changed_by_its_name(master: RecordingMaster, gnt: Run) -> None:
    master.answers["ChangeJobPriority"] = [True, "done"]
    ran = gnt("gnt-job", "change-priority", "7")
    assert ran.code == 1
    assert "Give the new priority with --priority: low, normal, high" in ran.err
    assert gnt("gnt-job", "change-priority", "--priority", "high", "7").code == 0
    assert list_requests(master, "ChangeJobPriority") == [{"job": 7, "priority": -10}]


def test_jobs_that_have_not_ended_are_not_archived(master: RecordingMaster, gnt: Run) -> None:
    master.answers["ArchiveJob"] = lambda args: args["job"] == 7
    ran = gnt("gnt-job", "archive", "7", "8")
    assert ran.code == 1
    assert "Job 8 was not archived: it has not ended or does not exist" in ran.err
    assert gnt("gnt-job", "archive", "7").code == 0


@pytest.mark.parametrize(("word", "age"), [("all", -1), ("2h", 7200), ("30", 30)])
def test_old_jobs_are_archived(master: RecordingMaster, gnt: Run, word: str, age: int) -> None:
    master.answers["AutoArchiveJobs"] = [1, 4]
    ran = gnt("gnt-job", "autoarchive", word)
    assert ran.out == "Archived 1 job, 4 left to look at\n"
    assert [args["age"] for args in list_requests(master, "AutoArchiveJobs")] == [age]

"""What an event says to people, and which notices a filter wants."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti import errors
from ganeti.filters import grammar
from ganeti.model.job import JobRecord, OpRecord
from ganeti.model.job_status import JobStatus
from ganeti.notify import notices
from ganeti.notify.notices import JobStory, Notice

WATCHER = [["gnt:watcher", "it was down", 1]]
NODE_WATCH = [["gnt:master:node-watch", "no answer for 60 s", 1]]


def job_event(status: str, job: int = 7) -> dict[str, Any]:
    data = {"status": status, "summary": ["INSTANCE_STARTUP(web1)"]}
    common = {"id": "r-1", "time": 5.0, "kind": "job", "change": "status"}
    return {**common, "object": str(job), "objects": [str(job), "web1"], "data": data}


def record(
    op_id: str, status: JobStatus, reason: object = None, result: object = None
) -> JobRecord:
    op = {"OP_ID": op_id, **({"reason": reason} if reason else {})}
    return JobRecord(id=7, ops=[OpRecord(input=op, status=status, result=result)])


@pytest.mark.parametrize(
    ("op_id", "status", "reason", "name", "severity"),
    [
        ("OP_INSTANCE_MIGRATE", "error", None, "job-failed", "error"),
        ("OP_BACKUP_RUN", "error", None, "backup-failed", "error"),
        ("OP_INSTANCE_STARTUP", "error", WATCHER, "instance-failed", "error"),
        ("OP_INSTANCE_STARTUP", "success", WATCHER, "instance-restarted", "warning"),
        ("OP_INSTANCE_STARTUP", "success", None, "job-success", "info"),
        ("OP_INSTANCE_FAILOVER", "success", NODE_WATCH, "instance-recovered", "warning"),
        ("OP_INSTANCE_FAILOVER", "success", None, "job-success", "info"),
        ("OP_INSTANCE_STARTUP", "canceled", None, "job-canceled", "info"),
    ],
)
def test_the_end_of_a_job_has_a_name(
    op_id: str, status: str, reason: object, name: str, severity: str
) -> None:
    result = ["OpExecError", ["no room"]] if status == "error" else None
    story = notices.read_story(record(op_id, JobStatus(status), reason, result))
    made = notices.from_event(job_event(status), story)
    assert (made.event, made.severity) == (name, severity)
    assert "Job 7 (INSTANCE_STARTUP(web1))" in made.text
    assert ("no room" in made.text) == (status == "error")


def test_hostile_texts_are_one_line_and_not_endless() -> None:
    story = JobStory(error="a\r\nSubject: x\x1b[2J" + "y" * 9000)
    made = notices.from_event(job_event("error"), story)
    assert made.text.isprintable()
    assert len(made.text) <= notices.LONGEST


def make(**values: Any) -> Notice:
    common = {"id": "1", "key": "1", "time": 5.0, "event": "job-failed", "kind": "job"}
    return Notice(
        **{**common, "severity": "error", "object": "7", "objects": ("7", "web1"), **values}
    )


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ('severity == "error"', True),
        ('event == "node-unreachable"', False),
        ('"web1" in objects', True),
        ('object =~ /^8/ or kind == "job"', True),
        ("not (event =~ /failed$/)", False),
        ("time > 6", False),
    ],
)
def test_a_filter_chooses_notices(text: str, passes: bool) -> None:
    assert notices.compile_filter(grammar.parse(text))(make()) is passes


def test_without_a_filter_all_of_note_is_wanted() -> None:
    wanted = notices.compile_filter(None)
    assert [wanted(make(severity=name)) for name in notices.SEVERITIES] == [False, True, True, True]


@pytest.mark.parametrize("text", ['severitty == "error"', 'time == "x"', "event > 5"])
def test_a_wrong_filter_is_refused(text: str) -> None:
    with pytest.raises((errors.ParameterError, errors.QueryFilterParseError)):
        notices.compile_filter(grammar.parse(text))


def test_the_worst_notice_names_a_message() -> None:
    mild = make(severity="warning", event="finding", object="node1")
    assert notices.summarize([mild, make(), mild]) == "job-failed 7 and 2 more"

"""Jobs: the documented file, and a status that follows from the opcodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ganeti import errors
from ganeti.base import jsonio
from ganeti.model import job
from ganeti.model.job import JobRecord, OpRecord, Submitter
from ganeti.model.job_status import JOBS_FINALIZED, JOBS_PENDING, JobStatus

HERE = Path(__file__).parent


def sample() -> dict[str, Any]:
    """A queued job that another implementation wrote."""
    value: dict[str, Any] = json.loads((HERE / "job_sample.json").read_text())
    return value


def make_record(*statuses: JobStatus, **facts: Any) -> JobRecord:
    return JobRecord(id=1, ops=[OpRecord(input={}, status=status) for status in statuses], **facts)


def test_a_job_of_another_implementation_survives() -> None:
    assert job.to_wire(job.from_wire(sample())) == sample()


def test_keys_of_other_versions_are_ignored() -> None:
    value = {**sample(), "livelock": "/var/lib/x", "process_id": 7, "archived": False}
    assert job.to_wire(job.from_wire(value)) == sample()


def test_who_handed_it_in_is_kept_and_left_out_when_unknown() -> None:
    record = make_record(JobStatus.QUEUED, submitter=Submitter(uid=0, name="root"))
    wire = jsonio.loads(jsonio.dumps(job.to_wire(record)))
    assert wire["submitter"] == {"uid": 0, "name": "root"}
    assert job.from_wire(wire) == record
    assert "submitter" not in job.to_wire(make_record())


@pytest.mark.parametrize(
    "change",
    [
        {"id": "3"},
        {"id": None},
        {"ops": {}},
        {"ops": [{}]},
        {"ops": [{"input": {}, "status": "sleeping"}]},
        {"received_timestamp": 1.5},
    ],
)
def test_a_damaged_job_is_told_from_a_good_one(change: dict[str, Any]) -> None:
    with pytest.raises(errors.JobFileCorrupted, match="no valid job: "):
        job.from_wire({**sample(), **change})


@pytest.mark.parametrize("value", [None, [], "x", {}])
def test_what_is_no_job_is_refused(value: Any) -> None:
    with pytest.raises(errors.JobFileCorrupted):
        job.from_wire(value)


@given(st.lists(st.sampled_from(JobStatus), max_size=5))
def test_the_status_follows_from_the_opcodes(statuses: list[JobStatus]) -> None:
    ended = [s for s in statuses if s in ("error", "canceling", "canceled")]
    active = [s for s in statuses if s in ("waiting", "running")]
    if all(s == "success" for s in statuses):
        expected = "success"
    elif ended:
        expected = ended[0]
    elif active:
        expected = active[-1]
    else:
        expected = "queued"
    record = make_record(*statuses)
    assert record.status == expected
    assert record.finalized == (expected in JOBS_FINALIZED)


def test_states_are_pending_running_or_final() -> None:
    assert set(JobStatus) == JOBS_PENDING | JOBS_FINALIZED | {JobStatus.RUNNING}
    assert not JOBS_PENDING & JOBS_FINALIZED


def test_the_most_urgent_open_opcode_gives_the_priority() -> None:
    record = make_record(JobStatus.SUCCESS, JobStatus.WAITING, JobStatus.QUEUED)
    for index, priority in enumerate((-20, 5, -10)):
        record.change(index, priority=priority)
    assert record.priority == -10
    assert record.current() == 1
    done = make_record(JobStatus.SUCCESS, JobStatus.ERROR)
    assert (done.priority, done.current()) == (0, None)


def test_log_entries_are_counted_over_the_whole_job() -> None:
    record = make_record(JobStatus.SUCCESS, JobStatus.RUNNING, JobStatus.QUEUED)
    assert record.log_serial() == 0
    record.ops[0].log[:] = [[1, [0, 0], "message", "a"], [2, [0, 0], "message", "b"]]
    record.ops[1].log[:] = [[3, [0, 0], "message", "c"]]
    assert record.log_serial() == 3


def test_opcodes_do_not_share_their_logs() -> None:
    first, second = make_record(JobStatus.QUEUED, JobStatus.QUEUED).ops
    first.log.append([1, [0, 0], "message", "a"])
    assert second.log == []

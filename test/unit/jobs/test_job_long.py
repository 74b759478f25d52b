"""Jobs of many opcodes: each event costs what it changes, not what the job has."""

from __future__ import annotations

import pytest
from scripted_queue import op, read_stored

from ganeti import errors
from ganeti.base.copies import NoCopies, Round
from ganeti.base.file_journal import FileJournal
from ganeti.base.file_parts import Contents
from ganeti.jobs import machine as m
from ganeti.jobs import queue as job_queue
from ganeti.model import job as job_model
from ganeti.model.job import JobRecord, OpRecord
from ganeti.model.job_status import JobStatus

MANY = 60


class Counting(NoCopies):
    """Knows what was sent to the copies, which is what was written here."""

    def __init__(self) -> None:
        self.wholes: list[str] = []
        self.largest = 0

    def write_jobs(self, contents: Contents) -> Round:
        self.wholes += contents.whole
        self.largest = max([self.largest, *(len(str(p)) for p in contents.parts.values())])
        return self


@pytest.fixture
def copies(office) -> Counting:
    made = Counting()
    office.files._copies = made
    return made


def test_a_long_job_is_written_as_a_whole_at_its_begin_and_its_end(office, copies):
    job = office.submit(*[op(result="x" * 500) for _ in range(MANY)])
    assert office.finish(job) == ["success"]
    assert copies.wholes.count(f"job-{job}") == 2
    assert copies.largest < 3000  # two opcodes, of sixty


def test_what_a_crash_leaves_of_a_long_job_is_its_state(office, crash, hire):
    job = office.submit(*[op(result=n) for n in range(MANY)], op(gate="g"), op())
    office.await_condition(lambda: office.crew.order == [job] * (MANY + 1), "the last opcode")
    found = read_stored(crash(office), job)
    assert found == job_model.to_wire(office.record(job))
    again = hire(directory=crash(office))
    again.crew.open_all()
    assert again.finish(job) == ["error"]
    results = [one.result for one in again.record(job).ops]
    assert results[:MANY] == list(range(MANY))
    assert "the master daemon stopped" in results[MANY][1][0]


def test_after_a_failed_write_the_next_one_has_everything(office, monkeypatch):
    holder = office.submit(op(locks=[["web1"]], gate="g"))
    office.crew.wait_for_start(holder)
    job = office.submit(op(locks=[["web1"]], gate="h"))
    office.await_condition(lambda: office.line("web1") == [job], "the wait")

    def fail(_journal: FileJournal, _contents: Contents) -> None:
        raise errors.FileError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(FileJournal, "write", fail)
        with pytest.raises(errors.FileError, match="no room"):
            office.queue.set_priority(job, 3)
    office.crew.open("g")
    office.crew.wait_for_start(job)
    assert read_stored(office.directory, job)["ops"][0]["priority"] == 3
    office.crew.open("h")
    assert office.finish(holder, job) == ["success", "success"]


def test_what_is_noted_of_a_long_job_is_what_its_opcodes_say():
    """Every step of a job of thirty opcodes, against a record that was just read."""
    ops = [OpRecord(input={}, priority=n % 7 - 3) for n in range(30)]
    record = JobRecord(id=1, ops=ops)
    machine = m.Machine(record)
    events = [m.Picked, m.Logged, m.LocksHeld, m.Logged, m.OpDone]
    steps = [event for _ in range(20) for event in events]
    steps += [m.Picked, m.PriorityChanged, m.LocksHeld, m.Logged, m.OpFailed]
    more = {
        m.Logged: ("message", "x"),
        m.OpDone: (1,),
        m.PriorityChanged: (5,),
        m.OpFailed: (["OpExecError", ["no"]],),
    }
    for number, step in enumerate(steps):
        before = job_model.copy(record)
        was = job_model.to_wire(before)
        machine.feed(step([number, 0], *more.get(step, ())))
        fresh = job_model.from_wire(job_model.to_wire(record))
        assert record.status == job_model.status_of(record.ops) == fresh.status
        for noted in (record, job_model.copy(record)):
            assert noted.current() == fresh.current()
            assert noted.priority == fresh.priority
            assert noted.log_serial() == fresh.log_serial()
            assert noted.log_after(number // 3) == fresh.log_after(number // 3)
        if step is not m.Logged:
            assert job_model.to_wire(before) == was
    entries = [entry for one in record.ops for entry in one.log]
    assert [entry for _index, entry in record.log_after(10)] == entries[10:]
    assert record.status is JobStatus.ERROR


def test_more_opcodes_than_a_job_may_have_are_refused(office, monkeypatch):
    monkeypatch.setattr(job_queue, "MAX_OPCODES", 3)
    with pytest.raises(errors.OpPrereqError, match="may have 3 opcodes, this one has 4"):
        office.submit(*[op() for _ in range(4)])
    assert office.submit(*[op() for _ in range(3)]) == 1

"""A job that was just submitted: its record, its dependencies and the beginning of its log."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti.jobs import machine as m
from ganeti.jobs.gate import dependencies_of
from ganeti.jobs.job import Job
from ganeti.jobs.machine import Machine
from ganeti.model.job import JobRecord, OpRecord, Stamp, Submitter
from ganeti.opcodes import base as opcodes
from ganeti.opcodes import wire
from ganeti.opcodes.base import OpCode


def make(
    ops: Sequence[OpCode],
    job_id: int,
    first: int,
    submitter: Submitter | None,
    stamp: Stamp,
    now: float,
) -> Job:
    """A job; ``first`` is the first id of those that are submitted together.

    Raises:
        OpPrereqError: a dependency is invalid.
    """
    depends = [dependencies_of(op, job_id, first) for op in ops]
    records = [_op_record(op, job_id, index, now) for index, op in enumerate(ops)]
    for op_record, deps in zip(records, depends):
        if deps:
            op_record.input["depends"] = [[d.job_id, sorted(d.statuses)] for d in deps]
    record = JobRecord(id=job_id, ops=records, submitter=submitter)
    job = Job(record, Machine(record), list(ops), depends=depends)
    job.machine.feed(m.Submitted(stamp))
    return job


def _op_record(op: OpCode, job_id: int, index: int, now: float) -> OpRecord:
    stored = wire.to_stored_form(op)
    entry = [opcodes.reason_source(op), f"job={job_id};index={index}", int(now * 1_000_000_000)]
    stored["reason"] = [*stored.get("reason", []), entry]
    return OpRecord(input=stored, priority=op.priority)


def begin_log(record: JobRecord, texts: Sequence[str], stamp: Stamp) -> None:
    """Write the first lines of the log."""
    log = [[serial, stamp, "message", text] for serial, text in enumerate(texts, 1)]
    if log:
        record.change(0, log=log)

"""Jobs and their opcodes, in the documented form of a job file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.model.names import JOBS_FINALIZED, JobStatus

#: ``[seconds, microseconds]``
Stamp = list[int]


class OpRecord(msgspec.Struct, kw_only=True, gc=False):
    """One opcode of a job. ``input`` is its stored wire form (secrets are redacted)."""

    input: dict[str, Any]
    status: JobStatus = JobStatus.QUEUED
    result: Any = None
    #: ``[serial, [s, us], type, message]``; serials count over the whole job
    log: list[list[Any]] = []
    priority: int = 0
    #: before its locks were asked for, after they were held, when it ended
    start_timestamp: Stamp | None = None
    exec_timestamp: Stamp | None = None
    end_timestamp: Stamp | None = None


class Submitter(msgspec.Struct, kw_only=True, gc=False, omit_defaults=True):
    """Who handed in a job: the uid of the LUXI client, and its name if one is known.

    ``user`` is whom the client spoke for, such as ``rapi:alice``; only trusted daemons may.
    """

    uid: int
    pid: int = 0
    name: str = ""
    user: str = ""

    @property
    def shown(self) -> str:
        """Who asked for it, for people."""
        return self.user or self.name or f"uid {self.uid}"


class JobRecord(msgspec.Struct, kw_only=True):
    """A job as it is kept in memory and in its file."""

    id: int
    ops: list[OpRecord]
    received_timestamp: Stamp | None = None
    start_timestamp: Stamp | None = None
    end_timestamp: Stamp | None = None
    submitter: Submitter | None = None
    #: the client's own word for its request, if it gave one
    key: str | None = None

    @property
    def status(self) -> JobStatus:
        return status_of(op.status for op in self.ops)

    @property
    def finalized(self) -> bool:
        return self.status in JOBS_FINALIZED

    @property
    def priority(self) -> int:
        """Priority of the most urgent opcode that is not done; 0 when all are."""
        open_ops = [op.priority for op in self.ops if op.status not in JOBS_FINALIZED]
        return min(open_ops, default=0)

    def current(self) -> int | None:
        """Index of the first opcode that is not done."""
        for index, op in enumerate(self.ops):
            if op.status not in JOBS_FINALIZED:
                return index
        return None

    def log_serial(self) -> int:
        """Serial of the last log entry, 0 without one."""
        return max((entry[0] for op in self.ops for entry in op.log[-1:]), default=0)


def status_of(ops: Iterable[JobStatus]) -> JobStatus:
    """Status of a job from those of its opcodes.

    No opcode or all successful: success. Else the first that failed or was canceled decides, else
    the last one that waits or runs, else the job is queued.
    """
    result = JobStatus.SUCCESS
    for status in ops:
        if status in (JobStatus.ERROR, JobStatus.CANCELING, JobStatus.CANCELED):
            return status
        if status in (JobStatus.WAITING, JobStatus.RUNNING):
            result = status
        elif status is JobStatus.QUEUED and result not in (JobStatus.WAITING, JobStatus.RUNNING):
            result = JobStatus.QUEUED
    return result


def copy(job: JobRecord) -> JobRecord:
    """A record that later events of the job do not change."""
    ops = [msgspec.structs.replace(op) for op in job.ops]
    return msgspec.structs.replace(job, ops=ops)


def to_wire(job: JobRecord) -> dict[str, Any]:
    """JSON value of a job file."""
    value: dict[str, Any] = msgspec.to_builtins(job)
    if job.submitter is None:
        del value["submitter"]
    if job.key is None:
        del value["key"]
    return value


def from_wire(value: Any) -> JobRecord:
    """Job of a JSON value; keys of other versions are ignored.

    Raises:
        JobFileCorrupted: a documented key is missing or has the wrong type.
    """
    try:
        return typed.convert(value, JobRecord, strict=True)
    except msgspec.ValidationError as err:
        raise errors.JobFileCorrupted(f"no valid job: {err}") from err

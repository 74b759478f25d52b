"""Jobs and their opcodes, in the documented form of a job file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy as shallow
from itertools import accumulate
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.model.job_status import JOBS_FINALIZED, JobStatus
from ganeti.model.limits import Limits

#: ``[seconds, microseconds]``
Stamp = list[int]


class OpRecord(msgspec.Struct, kw_only=True, gc=False, frozen=True):
    """One opcode of a job. ``input`` is its stored wire form (secrets are redacted)."""

    input: JsonObject
    status: JobStatus = JobStatus.QUEUED
    result: Any = None
    #: ``[serial, [s, us], type, message]``; serials count over the whole job
    log: list[list[Any]] = []
    priority: int = 0
    #: before its locks were requested, after they were held, when it ended
    start_timestamp: Stamp | None = None
    exec_timestamp: Stamp | None = None
    end_timestamp: Stamp | None = None


class Submitter(msgspec.Struct, kw_only=True, gc=False, omit_defaults=True):
    """The submitter of a job: the uid of the LUXI client, and its name if one is known.

    ``user`` is whom the client spoke for, such as ``rapi:alice``; only trusted daemons may.
    ``limits`` hold for the job as long as it exists, and for the jobs that it hands in.
    """

    uid: int
    pid: int = 0
    name: str = ""
    user: str = ""
    limits: Limits | None = None

    @property
    def shown(self) -> str:
        """The submitter, for people."""
        return self.user or self.name or f"uid {self.uid}"


class _Progress:
    """How far a job has come, so that a long one is not gone through at each event.

    Opcodes run in order: what is done stays done, and nothing changes behind the opcode that a job
    is at unless all of the rest does.
    """

    __slots__ = ("done", "logged", "minima", "queued", "serial")

    def __init__(self, ops: Sequence[OpRecord]) -> None:
        #: so many opcodes at the beginning have succeeded
        self.done = 0
        #: from here on all are queued
        self.queued = len(ops)
        while self.queued and ops[self.queued - 1].status is JobStatus.QUEUED:
            self.queued -= 1
        #: the highest serial of a log entry of the opcodes before this one
        self.logged, self.serial = 0, max((op.log[-1][0] for op in ops if op.log), default=0)
        #: the most urgent priority from each opcode on
        self.minima: list[int] | None = None

    def follow(self, ops: Sequence[OpRecord]) -> None:
        """Note what was done since the last time."""
        count = len(ops)
        while self.done < count and ops[self.done].status is JobStatus.SUCCESS:
            self.done += 1
        while self.queued < count and ops[self.queued].status is not JobStatus.QUEUED:
            self.queued += 1

    def log_serial(self, ops: Sequence[OpRecord]) -> int:
        for index in range(self.logged, min(self.done + 1, len(ops))):
            if ops[index].log:
                self.serial = max(self.serial, ops[index].log[-1][0])
        self.logged = self.done
        return self.serial

    def priority_from(self, index: int, ops: Sequence[OpRecord]) -> int:
        if self.minima is None:
            open_ops = (op.priority if op.status not in JOBS_FINALIZED else _LAST for op in ops)
            self.minima = [*accumulate(reversed(list(open_ops)), min)][::-1]
        return self.minima[index]


#: Opcodes from which on a job keeps note of its progress.
_LONG = 16
#: Behind every priority.
_LAST = 1000


class JobRecord(msgspec.Struct, kw_only=True, dict=True):
    """A job as it is kept in memory and in its file.

    :meth:`change` replaces opcodes and never changes them, so a :func:`copy` stays as it was.
    """

    id: int
    ops: list[OpRecord]
    received_timestamp: Stamp | None = None
    start_timestamp: Stamp | None = None
    end_timestamp: Stamp | None = None
    submitter: Submitter | None = None
    #: the client's own word for its request, if it gave one
    key: str | None = None

    def change(self, index: int, **members: object) -> None:
        """Put an opcode with other values in the place of one."""
        self.ops[index] = msgspec.structs.replace(self.ops[index], **members)
        if "priority" in members:
            self.__dict__.pop("progress", None)

    def _progress(self) -> _Progress | None:
        """Of a long job; kept beside what goes to the file."""
        if len(self.ops) < _LONG:
            return None
        found: _Progress | None = self.__dict__.get("progress")
        if found is None:
            found = self.__dict__["progress"] = _Progress(self.ops)
        found.follow(self.ops)
        return found

    @property
    def status(self) -> JobStatus:
        progress = self._progress()
        if progress is None:
            return status_of(self.ops)
        # one of those that are queued stands for all
        return status_of(self.ops[progress.done : progress.queued + 1])

    @property
    def finalized(self) -> bool:
        return self.status in JOBS_FINALIZED

    @property
    def priority(self) -> int:
        """Priority of the most urgent opcode that is not done; 0 when all are."""
        progress, index = self._progress(), self.current()
        if index is None:
            return 0
        if progress is not None:
            return progress.priority_from(index, self.ops)
        return min(op.priority for op in self.ops if op.status not in JOBS_FINALIZED)

    def current(self) -> int | None:
        """Index of the first opcode that is not done."""
        progress = self._progress()
        for index in range(0 if progress is None else progress.done, len(self.ops)):
            if self.ops[index].status not in JOBS_FINALIZED:
                return index
        return None

    def log_serial(self) -> int:
        """Serial of the last log entry, 0 without one."""
        progress = self._progress()
        if progress is not None:
            return progress.log_serial(self.ops)
        return max((op.log[-1][0] for op in self.ops if op.log), default=0)

    def log_after(self, serial: int) -> list[tuple[int, list[object]]]:
        """Log entries with a higher serial, each behind the index of its opcode, in order."""
        missing = self.log_serial() - serial
        found: list[tuple[int, list[object]]] = []
        progress = self._progress()
        last = len(self.ops) if progress is None else min(len(self.ops), progress.queued + 1)
        for index in range(last - 1, -1, -1):
            if len(found) >= missing:
                break
            for entry in reversed(self.ops[index].log):
                if entry[0] <= serial:
                    break
                found.append((index, entry))
        return found[::-1]


def status_of(ops: Iterable[OpRecord]) -> JobStatus:
    """Status of a job from its opcodes.

    No opcode or all successful: success. Else the first that failed or was canceled decides, else
    the last one that waits or runs, else the job is queued.
    """
    result = JobStatus.SUCCESS
    for op in ops:
        status = op.status
        if status in (JobStatus.ERROR, JobStatus.CANCELING, JobStatus.CANCELED):
            return status
        if status in (JobStatus.WAITING, JobStatus.RUNNING):
            result = status
        elif status is JobStatus.QUEUED and result not in (JobStatus.WAITING, JobStatus.RUNNING):
            result = JobStatus.QUEUED
    return result


def copy(job: JobRecord) -> JobRecord:
    """A record that later events of the job do not change."""
    made = msgspec.structs.replace(job, ops=list(job.ops))
    if (progress := job.__dict__.get("progress")) is not None:
        made.__dict__["progress"] = shallow(progress)
    return made


def to_wire(job: JobRecord) -> JsonObject:
    """JSON value of a job file."""
    value: JsonObject = msgspec.to_builtins(job)
    if job.submitter is None:
        del value["submitter"]
    if job.key is None:
        del value["key"]
    return value


def from_wire(value: object) -> JobRecord:
    """Job of a JSON value; keys of other versions are ignored.

    Raises:
        JobFileCorrupted: a documented key is missing or has the wrong type.
    """
    try:
        return typed.convert(value, JobRecord, strict=True)
    except msgspec.ValidationError as err:
        raise errors.JobFileCorrupted(f"no valid job: {err}") from err

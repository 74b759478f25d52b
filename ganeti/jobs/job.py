"""A job in memory, and the book that holds all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import clock as clock_module
from ganeti.base.clock import Clock
from ganeti.base.file_parts import Content
from ganeti.jobs import files as job_files
from ganeti.jobs import machine as m
from ganeti.jobs.execution import Execution
from ganeti.jobs.files import JobFiles, Written
from ganeti.jobs.gate import Dependency, Hold
from ganeti.jobs.machine import Effect, Machine
from ganeti.locking.request import Request
from ganeti.model import job as job_model
from ganeti.model.job import JobRecord, Submitter
from ganeti.model.job_status import JobStatus
from ganeti.opcodes.base import OpCode


@dataclass(eq=False)
class Job:
    """A job in memory: its record, and what only lives as long as the daemon."""

    record: JobRecord
    machine: Machine
    #: the opcodes with their secrets; emptied when the job is done
    ops: list[OpCode]
    execution: Execution | None = None
    request: Request | None = None
    #: why it was not begun when a worker last looked
    hold: Hold | None = None
    #: a worker has the job in its hands
    active: bool = False
    #: the job has ended, and its end is on disk
    is_over: bool = False
    #: what readers see until then: a crash may still take the end back
    before_end: JobRecord | None = None
    #: its first file on the way, for those who submit it again with the same key
    submitted: Written | None = None
    #: what was written of it and is not known to be on disk
    on_way: list[Written] = field(default_factory=list)
    #: jobs of this submission that its relative dependencies resolved to
    depends: list[list[Dependency]] = field(default_factory=list)
    #: set when a running operation is asked to end early
    cancel_asked: threading.Event = field(default_factory=threading.Event)

    @property
    def id(self) -> int:
        return self.record.id

    @property
    def status(self) -> JobStatus:
        return self.record.status

    @property
    def shown(self) -> JobRecord:
        """The record for readers: its end is in it once it is on disk."""
        return self.before_end or self.record


class Book:
    """All live jobs. ``mutex`` guards every one of them.

    It is never held while waiting for the disk, for a lock of the cluster, or for an operation.
    """

    def __init__(self, files: JobFiles, clock: Clock) -> None:
        self.files = files
        self.mutex = threading.RLock()
        self.jobs: dict[int, Job] = {}
        self._clock = clock
        self._listeners: list[Callable[[int], None]] = []

    def stamp(self) -> list[int]:
        return clock_module.split(self._clock.now())

    # reading -------------------------------------------------------------------------------

    def get(self, job_id: int) -> JobRecord | None:
        """The record of a live job; it may change any time, so read it through :meth:`view`."""
        job = self.jobs.get(job_id)
        return None if job is None else job.shown

    def view(self, read: Callable[[JobRecord], object], job_id: int) -> Any:
        """``read(record)`` while the record holds still; JobLost for an unknown live job."""
        with self.mutex:
            job = self.jobs.get(job_id)
            if job is None:
                raise errors.JobLost(f"job {job_id} does not exist or is archived")
            return read(job.shown)

    def read_all(
        self, read: Callable[[JobRecord], object], job_ids: Iterable[int] | None = None
    ) -> list[Any]:
        """``read(record)`` for live jobs in order of their ids; unknown ids are left out."""
        with self.mutex:
            wanted = sorted(self.jobs) if job_ids is None else list(job_ids)
            return [read(self.jobs[i].shown) for i in wanted if i in self.jobs]

    # changing ------------------------------------------------------------------------------

    def feed(self, job: Job, event: m.Event) -> tuple[Effect, Written | None]:
        """Apply an event, with the mutex held.

        The job's file is in line before anything else can happen to the job, so that no older
        content is written after a newer one, or after the job was archived. Readers do not see
        an end before it is on disk.

        Only what changed is written, as a job may have thousands of opcodes; the whole when the job
        has ended, and when a write has failed.
        """
        before = job_model.copy(job.record)
        effect = job.machine.feed(event)
        if Effect.PERSIST not in effect:
            return effect, None
        content: Content = job.machine.take_news()
        if Effect.FINALIZED in effect:
            job.before_end = before
        if Effect.FINALIZED in effect or any(item.ticket.error for item in job.on_way):
            content = job_files.encode(job.record)
            job.on_way = []
        written = self.files.add({job_files.name_of(job.id): content})
        job.on_way = [*(item for item in job.on_way if not item.ticket.done), written]
        return effect, written

    def wait(self, effect: Effect, written: Written | None) -> None:
        """Block until a change is where it has to be.

        Raises:
            JobQueueError: it cannot be written.
            QuorumError: it has to be on other nodes too, and is not.
        """
        if written is not None:
            self.files.wait(written, copies=Effect.COPY in effect)

    def log(self, job: Job, kind: str, message: object) -> None:
        """Add a log entry to a job (called by its operation)."""
        plain = msgspec.to_builtins(message)
        with self.mutex:
            job.machine.feed(m.Logged(self.stamp(), kind, plain))
        self.notify(job.id)

    def add_listener(self, listener: Callable[[int], None]) -> None:
        """``listener(job id)`` is called after each change; it must not block."""
        self._listeners.append(listener)

    def notify(self, job_id: int) -> None:
        for listener in self._listeners:
            listener(job_id)


class Handle:
    """The job as its operation sees it; see :class:`~ganeti.jobs.execution.JobHandle`."""

    def __init__(
        self,
        book: Book,
        job: Job,
        submit: Callable[[list[list[OpCode]], Submitter | None], list[int]],
        stopping: threading.Event,
    ) -> None:
        self._book = book
        self._job = job
        self._submit = submit
        self._stopping = stopping

    @property
    def job_id(self) -> int:
        return self._job.id

    @property
    def priority(self) -> int:
        return self._job.record.priority

    @property
    def submitter(self) -> Submitter | None:
        return self._job.record.submitter

    @property
    def cancel_asked(self) -> threading.Event:
        return self._job.cancel_asked

    def log(self, message: object, kind: str = "message") -> None:
        self._book.log(self._job, kind, message)

    def submit(self, jobs: list[list[OpCode]]) -> list[int]:
        return self._submit(jobs, self.submitter)

    def stop_requested(self) -> bool:
        return self._stopping.is_set()

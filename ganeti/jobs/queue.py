"""The job queue: feeds events to the jobs' machines and performs the effects.

Ownership: ``_mutex`` guards every job in memory. It is never held while waiting for the disk, for
a lock of the cluster, or for an operation; a job that waits holds no thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ganeti import constants, errors
from ganeti.base import clock as clock_module
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.group_commit import Ticket
from ganeti.base.log import CONTEXT
from ganeti.jobs import files as job_files
from ganeti.jobs import machine as m
from ganeti.jobs.execution import Execution, Executor, Need
from ganeti.jobs.files import JobFiles
from ganeti.jobs.machine import Effect, Machine
from ganeti.jobs.scheduler import Dependencies, Dependency, dependencies_of
from ganeti.jobs.workers import WorkerPool
from ganeti.locking.manager import LockManager, Request, State
from ganeti.model.job import JobRecord, OpRecord, Submitter
from ganeti.model.names import JOBS_FINALIZED, JobStatus
from ganeti.opcodes import base as opcodes
from ganeti.opcodes import wire
from ganeti.opcodes.base import OpCode

_LOG = logging.getLogger(__name__)


@dataclass(eq=False)
class Job:
    """A job in memory: its record, and what only lives as long as the daemon."""

    record: JobRecord
    machine: Machine
    #: the opcodes with their secrets; emptied when the job is done
    ops: list[OpCode]
    execution: Execution | None = None
    request: Request | None = None
    #: a worker has the job in its hands
    active: bool = False
    #: the job has ended, and its end is on disk
    settled: bool = False
    #: jobs of this submission that its relative dependencies resolved to
    depends: list[list[Dependency]] = field(default_factory=list)

    @property
    def id(self) -> int:
        return self.record.id

    @property
    def status(self) -> JobStatus:
        return self.record.status


class JobQueue:
    """All live jobs. Thread-safe."""

    def __init__(
        self,
        files: JobFiles,
        locks: LockManager,
        executor: Executor,
        *,
        workers: int,
        clock: Clock = SYSTEM,
    ) -> None:
        self._files = files
        self._locks = locks
        self._executor = executor
        self._clock = clock
        self._mutex = threading.RLock()
        self._jobs: dict[int, Job] = {}
        self._last_id = 0
        self._dependencies = Dependencies()
        self._listeners: list[Callable[[int], None]] = []
        self._pool: WorkerPool[Job] = WorkerPool(workers, self._work, "job")
        self.stopping = threading.Event()

    # life cycle --------------------------------------------------------------------------

    def start(self) -> None:
        """Read the queue directory; interrupted jobs become errors, queued ones go on."""
        records, self._last_id = self._files.load()
        ready: list[Job] = []
        changed: dict[str, bytes] = {}
        with self._mutex:
            for record in records:
                job = Job(record, Machine(record), [])
                self._jobs[record.id] = job
                if record.status in JOBS_FINALIZED:
                    continue
                effect = self._restore(job)
                if Effect.PERSIST in effect:
                    changed[job_files.name_of(job.id)] = job_files.encode(record)
                if Effect.ENQUEUE in effect:
                    ready.append(job)
        if changed:
            self._files.wait(self._files.add(changed))
        with self._mutex:
            for job in self._jobs.values():
                job.settled = job.record.finalized
        for job in ready:
            self._enqueue(job)

    def _restore(self, job: Job) -> Effect:
        """Bring a job of the last run back; one that cannot go on ends as error."""
        effect = job.machine.feed(m.Restarted(self._stamp()))
        if job.record.finalized:
            return effect
        try:
            job.ops = [wire.from_wire(op.input) for op in job.record.ops]
            lost = [name for op in job.ops for name in wire.lost_secrets(op)]
            if lost:
                raise errors.OpExecError(
                    f"the master daemon was restarted, and {', '.join(lost)} is never written"
                    " to disk; submit the job again"
                )
        except errors.GanetiError as err:
            return job.machine.feed(m.OpFailed(self._stamp(), errors.encode(err)))
        job.depends = [dependencies_of(op) for op in job.ops]
        return effect

    def stop(self, timeout: float) -> bool:
        """Start nothing more and wait for running operations; False after ``timeout`` seconds.

        Queued and waiting jobs stay in their files and go on at the next start.
        """
        self.stopping.set()
        done = self._pool.stop(timeout)
        self._files.close()
        return done

    def add_listener(self, listener: Callable[[int], None]) -> None:
        """``listener(job id)`` is called after each change; it must not block."""
        self._listeners.append(listener)

    # submission --------------------------------------------------------------------------

    @property
    def drained(self) -> bool:
        return self._files.drained

    def set_drained(self, flag: bool) -> None:
        self._files.set_drained(flag)

    @property
    def last_id(self) -> int:
        return self._last_id

    def submit(
        self,
        jobs: Sequence[Sequence[OpCode]],
        submitter: Submitter | None,
        *,
        ignore_drain: bool = False,
    ) -> list[int]:
        """Take jobs in; returns their ids once they are on disk.

        Relative dependencies (negative ids) mean earlier jobs of the same call.

        Raises:
            JobQueueDrainError: the queue is drained.
            OpPrereqError: an opcode has no operation, a dependency makes no sense.
            JobQueueError: the queue cannot be written; no job was taken.
        """
        if self.drained and not ignore_drain:
            raise errors.JobQueueDrainError(
                "the job queue is drained and takes no jobs; see gnt-cluster queue undrain"
            )
        for ops in jobs:
            for op in ops:
                self._executor.check_submission(op)
        with self._mutex:
            made = self._make(jobs, submitter)
            contents = {job_files.name_of(job.id): job_files.encode(job.record) for job in made}
            contents[job_files.SERIAL] = b"%d\n" % self._last_id
            ticket = self._files.add(contents)
        try:
            self._files.wait(ticket)
        except errors.GanetiError:
            with self._mutex:
                for job in made:
                    del self._jobs[job.id]
            raise
        for job in made:
            if job.record.ops:
                self._enqueue(job)
            else:
                self._after(job, Effect.FINALIZED)
        return [job.id for job in made]

    def _make(
        self, jobs: Sequence[Sequence[OpCode]], submitter: Submitter | None
    ) -> list[Job]:
        first = self._last_id + 1
        made: list[Job] = []
        for offset, ops in enumerate(jobs):
            job_id = first + offset
            depends = [dependencies_of(op, job_id, first) for op in ops]
            records = [self._op_record(op, job_id, index) for index, op in enumerate(ops)]
            for op_record, deps in zip(records, depends):
                if deps:
                    op_record.input["depends"] = [[d.job_id, sorted(d.statuses)] for d in deps]
            record = JobRecord(id=job_id, ops=records, submitter=submitter)
            job = Job(record, Machine(record), list(ops), depends=depends)
            job.machine.feed(m.Submitted(self._stamp()))
            made.append(job)
        self._last_id = first + len(jobs) - 1
        self._jobs.update((job.id, job) for job in made)
        return made

    def _op_record(self, op: OpCode, job_id: int, index: int) -> OpRecord:
        stored = wire.to_stored(op)
        now = int(self._clock.now() * 1_000_000_000)
        entry = [opcodes.reason_source(op), f"job={job_id};index={index}", now]
        stored["reason"] = [*stored.get("reason", []), entry]
        return OpRecord(input=stored, priority=op.priority)

    # what clients do with jobs -----------------------------------------------------------

    def get(self, job_id: int) -> JobRecord | None:
        """The record of a live job; it may change any time, so read it through :meth:`view`."""
        job = self._jobs.get(job_id)
        return None if job is None else job.record

    def view(self, read: Callable[[JobRecord], Any], job_id: int) -> Any:
        """``read(record)`` while the record holds still; JobLost for an unknown live job."""
        with self._mutex:
            job = self._jobs.get(job_id)
            if job is None:
                raise errors.JobLost(f"job {job_id} does not exist or is archived")
            return read(job.record)

    def read_all(
        self, read: Callable[[JobRecord], Any], job_ids: Iterable[int] | None = None
    ) -> list[Any]:
        """``read(record)`` for live jobs in order of their ids; unknown ids are left out."""
        with self._mutex:
            wanted = sorted(self._jobs) if job_ids is None else list(job_ids)
            return [read(self._jobs[i].record) for i in wanted if i in self._jobs]

    def archived(self, job_id: int) -> JobRecord | None:
        """A job from the archive (reads its file)."""
        return self._files.archived(job_id)

    def archived_ids(self) -> list[int]:
        return self._files.archived_ids()

    def cancel(self, job_id: int) -> tuple[bool, str]:
        """Cancel a job that has not begun; whether it worked, and a text for the user.

        Raises:
            JobQueueError: the job is canceled, but a restart would not know it.
        """
        with self._mutex:
            job = self._jobs.get(job_id)
            if job is None:
                return False, f"Job {job_id} not found in queue"
            state = job.machine.state
            if job.status in JOBS_FINALIZED:
                return False, f"Job {job_id} is already finished ({job.status})"
            if state is JobStatus.RUNNING:
                return False, f"Job {job_id} is running and cannot be canceled any more"
            effect, ticket = self._feed(job, m.CancelAsked(self._stamp()))
            self._dependencies.forget(job_id)
            request = job.request if Effect.CANCEL_LOCKS in effect else None
        if request is not None and self._locks.cancel(request):
            self._enqueue(job)
        try:
            self._wait(ticket)
        finally:
            self._after(job, effect)
        if Effect.FINALIZED in effect:
            return True, f"Job {job_id} has been canceled"
        return True, f"Job {job_id} will be canceled"

    def set_priority(self, job_id: int, priority: int) -> tuple[bool, str]:
        """Change the priority of what a job has not done yet."""
        if not constants.PRIORITY_HIGHEST <= priority <= constants.PRIORITY_LOWEST:
            raise errors.OpPrereqError(
                f"priority {priority} is not between {constants.PRIORITY_HIGHEST} (most urgent)"
                f" and {constants.PRIORITY_LOWEST}",
                errors.ErrorCode.INVAL,
            )
        with self._mutex:
            job = self._jobs.get(job_id)
            if job is None:
                return False, f"Job {job_id} not found in queue"
            if job.status in JOBS_FINALIZED or job.machine.state is JobStatus.CANCELING:
                return False, f"Job {job_id} is finished or being canceled ({job.status})"
            effect, ticket = self._feed(job, m.PriorityChanged(self._stamp(), priority))
            queued = job.machine.state is JobStatus.QUEUED
        self._locks.set_priority(job_id, priority)
        self._wait(ticket)
        self._after(job, effect)
        if queued:
            self._enqueue(job)  # its old place in the line stays and does nothing
        return True, f"Priorities of pending opcodes for job {job_id} have been changed"

    def archive(self, job_ids: Iterable[int]) -> list[int]:
        """Move finished jobs to the archive; gives the ids that were moved.

        Raises:
            JobQueueError: the end of one is not on disk yet and cannot be written.
        """
        with self._mutex:
            known = [self._jobs[i] for i in dict.fromkeys(job_ids) if i in self._jobs]
            ended = [job for job in known if job.record.finalized]
            late = {
                job_files.name_of(job.id): job_files.encode(job.record)
                for job in ended
                if not job.settled
            }
        if late:
            self._files.wait(self._files.add(late))
        with self._mutex:
            moved = [job.id for job in ended if job.id in self._jobs]
            self._files.archive(moved)
            for job_id in moved:
                del self._jobs[job_id]
        return moved

    def auto_archive(self, age: float, timeout: float) -> tuple[int, int]:
        """Archive jobs that ended more than ``age`` seconds ago (negative: all that ended).

        Stops after ``timeout`` seconds. Gives the number of archived jobs, and of those that were
        not looked at.
        """
        end = self._clock.monotonic() + timeout
        now = self._clock.now()
        with self._mutex:
            ids = sorted(self._jobs)
        archived = 0
        for done, job_id in enumerate(ids):
            if self._clock.monotonic() > end:
                return archived, len(ids) - done
            job = self._jobs.get(job_id)
            if job is None or not job.record.finalized:
                continue
            ended = clock_module.merge(job.record.end_timestamp)
            if age < 0 or (ended is not None and now - ended >= age):
                archived += len(self.archive([job_id]))
        return archived, 0

    # workers -----------------------------------------------------------------------------

    def _enqueue(self, job: Job) -> None:
        self._pool.put(job.record.priority, job)

    def _work(self, job: Job) -> None:
        """Take a job as far as it gets without waiting."""
        token = CONTEXT.set(f"job {job.id}")
        try:
            if self._begin(job) and self._acquire(job):
                self._execute(job)
        finally:
            CONTEXT.reset(token)

    def _begin(self, job: Job) -> bool:
        """Give a queued job its operation; False when it has to wait or is done."""
        with self._mutex:
            if job.active or job.status in JOBS_FINALIZED or self.stopping.is_set():
                return False
            if job.request is not None and job.request.state is State.WAITING:
                return False
            job.active = True
            if job.machine.state is not JobStatus.QUEUED:
                return True
            index = job.record.current()
            assert index is not None
            failed = self._check_dependencies(job, index)
            if failed is None:
                job.active = False
                return False
            if not failed:
                job.machine.feed(m.Picked(self._stamp()))
        if failed:
            self._fail(job, errors.OpExecError(failed))
            return False
        self._notify(job)
        try:
            job.execution = self._executor.start(job.ops[index], _Handle(self, job))
        except Exception as err:  # noqa: BLE001 - becomes the job's result
            self._fail(job, err)
            return False
        return True

    def _check_dependencies(self, job: Job, index: int) -> str | None:
        """Empty text: may start; other text: may never start; None: waits."""
        waiting: list[int] = []
        for dependency in job.depends[index] if index < len(job.depends) else []:
            other = self._jobs.get(dependency.job_id)
            record = other.record if other else self._files.archived(dependency.job_id)
            if other is not None and not other.settled:
                waiting.append(dependency.job_id)
            elif record is None:
                return f"job {dependency.job_id}, which this job depends on, does not exist"
            elif not dependency.accepts(record.status):
                return (
                    f"job {dependency.job_id} ended with status {record.status},"
                    f" but {' or '.join(sorted(dependency.statuses))} was required"
                )
        if waiting:
            self._dependencies.wait(job.id, waiting)
            return None
        return ""

    def _acquire(self, job: Job) -> bool:
        """Collect locks until the operation has all; False when it waits or has failed."""
        execution = job.execution
        assert execution is not None
        while True:
            with self._mutex:
                canceling = job.machine.state is JobStatus.CANCELING
                request, job.request = job.request, None
            if canceling:
                self._end(job, m.CancelDone(self._stamp()))
                return False
            try:
                if request is not None and request.error is not None:
                    raise request.error
                need = execution.advance()
            except Exception as err:  # noqa: BLE001 - becomes the job's result
                self._fail(job, err)
                return False
            if need is None:
                return True
            try:
                if not self._ask(job, need):
                    return False
            except errors.LockError as err:
                code = errors.ErrorCode.NOTUNIQUE if need.new else errors.ErrorCode.NOENT
                self._fail(job, errors.OpPrereqError(errors.text(err), code))
                return False
            except Exception as err:  # noqa: BLE001 - becomes the job's result
                self._fail(job, err)
                return False

    def _ask(self, job: Job, need: Need) -> bool:
        """Ask for locks; False when the job has to wait for them."""
        if need.opportunistic:
            self._locks.take_free(job.id, need.level, need.names, shared=need.shared)
            return True
        with self._mutex:
            if job.machine.state is JobStatus.CANCELING:
                return True  # asked for since the last look; the caller looks again
            request = self._locks.request(
                job.id,
                need.level,
                need.names,
                shared=need.shared,
                new=need.new,
                priority=job.record.priority,
                on_done=lambda _request: self._enqueue(job),
            )
            if request.state is not State.WAITING:
                return True
            job.request = request
            job.active = False
        return False

    def _execute(self, job: Job) -> None:
        with self._mutex:
            if job.machine.state is JobStatus.CANCELING:
                event: m.Event = m.CancelDone(self._stamp())
            else:
                event = m.LocksHeld(self._stamp())
                effect, ticket = self._feed(job, event)
        if isinstance(event, m.CancelDone):
            self._end(job, event)
            return
        execution = job.execution
        assert execution is not None
        try:
            self._wait(ticket)
            self._after(job, effect)
            result = execution.run()
        except Exception as err:  # noqa: BLE001 - becomes the job's result
            self._fail(job, err)
            return
        self._end(job, m.OpDone(self._stamp(), result))

    def _fail(self, job: Job, err: Exception) -> None:
        if not isinstance(err, errors.GanetiError):
            _LOG.error("operation raised a bug", exc_info=err)
        elif isinstance(err, errors.OpPrereqError):
            _LOG.info("refused: %s", errors.text(err))
        else:
            _LOG.warning("failed: %s: %s", err.wire_name, errors.text(err))
        self._end(job, m.OpFailed(self._stamp(), errors.encode(err)))

    def _end(self, job: Job, event: m.Event) -> None:
        """The current opcode is over: clean up first, then say so."""
        execution, job.execution = job.execution, None
        if execution is not None:
            execution.close()
        with self._mutex:
            effect, ticket = self._feed(job, event)
        try:
            self._wait(ticket)
        except errors.GanetiError as err:
            _LOG.critical("end of job %s is not on disk: %s", job.id, errors.text(err))
        with self._mutex:
            job.active = False
        self._after(job, effect)

    # effects -----------------------------------------------------------------------------

    def _feed(self, job: Job, event: m.Event) -> tuple[Effect, Ticket | None]:
        """Apply an event, with the mutex held.

        The job's file is in line before anything else can happen to the job, so that no older
        content is written after a newer one, or after the job was archived.
        """
        effect = job.machine.feed(event)
        if Effect.PERSIST not in effect:
            return effect, None
        return effect, self._files.add({job_files.name_of(job.id): job_files.encode(job.record)})

    def _wait(self, ticket: Ticket | None) -> None:
        """Block until a change is on disk; JobQueueError if it cannot be written."""
        if ticket is not None:
            self._files.wait(ticket)

    def _after(self, job: Job, effect: Effect) -> None:
        if Effect.FINALIZED in effect:
            job.ops = []
            with self._mutex:
                job.settled = True
                waiting = [
                    self._jobs[other]
                    for other in self._dependencies.finished(job.id)
                    if other in self._jobs
                ]
            for other in waiting:
                self._enqueue(other)
        if Effect.NOTIFY in effect:
            self._notify(job)
        if Effect.ENQUEUE in effect:
            self._enqueue(job)

    def _notify(self, job: Job) -> None:
        for listener in self._listeners:
            listener(job.id)

    def feed_log(self, job: Job, kind: str, message: Any) -> None:
        """Add a log entry to a job (called by its operation)."""
        with self._mutex:
            job.machine.feed(m.Logged(self._stamp(), kind, message))
        self._notify(job)

    def _stamp(self) -> list[int]:
        return clock_module.split(self._clock.now())


class _Handle:
    """The job as its operation sees it."""

    def __init__(self, queue: JobQueue, job: Job) -> None:
        self._queue = queue
        self._job = job

    @property
    def job_id(self) -> int:
        return self._job.id

    @property
    def priority(self) -> int:
        return self._job.record.priority

    @property
    def submitter(self) -> Submitter | None:
        return self._job.record.submitter

    def log(self, message: Any, kind: str = "message") -> None:
        self._queue.feed_log(self._job, kind, message)

    def submit(self, jobs: list[list[OpCode]]) -> list[int]:
        return self._queue.submit(jobs, self.submitter, ignore_drain=True)

    def stop_requested(self) -> bool:
        return self._queue.stopping.is_set()

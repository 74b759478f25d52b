"""The work on a job: start it, collect its locks, run it, finish it.

A worker runs a job as far as it gets without waiting, and then takes another one. The event that
the job waits for puts it in line again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import msgspec

from ganeti import errors
from ganeti.base import files, log
from ganeti.base.json_types import JsonObject
from ganeti.jobs import machine as m
from ganeti.jobs.execution import Executor, Need
from ganeti.jobs.gate import Gate, Hold
from ganeti.jobs.job import Book, Handle, Job
from ganeti.jobs.machine import Effect
from ganeti.jobs.workers import WorkerPool
from ganeti.locking.manager import LockManager
from ganeti.locking.request import State
from ganeti.model.job import Submitter
from ganeti.model.job_status import JOBS_FINALIZED, JobStatus
from ganeti.opcodes.base import OpCode

_LOG = logging.getLogger(__name__)
#: Opcodes from which on the log does not name each one of a job.
_MANY = 100


class Steps:
    """The workers and what they do. Thread-safe."""

    def __init__(
        self, book: Book, gate: Gate, locks: LockManager, executor: Executor, workers: int
    ) -> None:
        self._book = book
        self._gate = gate
        self._locks = locks
        self._executor = executor
        self.pool: WorkerPool[Job] = WorkerPool(workers, self._work, "job")
        self.stopping = threading.Event()
        #: how operations hand in further jobs; set by the queue
        self.submit: Callable[[list[list[OpCode]], Submitter | None], list[int]]

    def enqueue(self, job: Job) -> None:
        """Put a job in line for a worker; once too often does no harm."""
        self.pool.put(job.record.priority, job)

    def _work(self, job: Job) -> None:
        with log.set_context(job=str(job.id), instance=_get_instance(job)):
            if self._begin(job) and self._acquire(job):
                self._execute(job)

    # steps ---------------------------------------------------------------------------------

    def _begin(self, job: Job) -> bool:
        """Assign its operation to a queued job; False when it has to wait or is done."""
        book = self._book
        with book.mutex:
            if job.active or job.status in JOBS_FINALIZED or self.stopping.is_set():
                return False
            if job.request is not None and job.request.state is State.WAITING:
                return False
            job.active = True
            if job.machine.state is not JobStatus.QUEUED:
                return True
            index = job.record.current()
            assert index is not None
            depends = job.depends[index] if index < len(job.depends) else []
            verdict = self._gate.judge(job.record, depends)
            job.hold = verdict if isinstance(verdict, Hold) else None
            if job.hold is not None:
                job.active = False
            elif verdict is None:
                job.machine.feed(m.Picked(book.stamp()))
        if job.hold is not None:
            book.notify(job.id)
            return False
        if isinstance(verdict, errors.JobCanceled):
            _LOG.info("%s", errors.text(verdict))
            self._end(job, m.Rejected(book.stamp(), errors.encode_known(verdict)))
            return False
        if isinstance(verdict, errors.GanetiError):
            self._fail(job, verdict)
            return False
        book.notify(job.id)
        try:
            handle = Handle(book, job, self.submit, self.stopping)
            job.execution = self._executor.start(job.ops[index], handle)
        except Exception as err:  # noqa: BLE001 - becomes the job's result
            self._fail(job, err)
            return False
        return True

    def _acquire(self, job: Job) -> bool:
        """Collect locks until the operation has all; False when it waits or has failed."""
        execution = job.execution
        assert execution is not None
        while True:
            with self._book.mutex:
                canceling = job.machine.state is JobStatus.CANCELING
                request, job.request = job.request, None
            if canceling:
                self._end(job, m.CancelDone(self._book.stamp()))
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
        with self._book.mutex:
            if job.machine.state is JobStatus.CANCELING:
                return True  # asked for since the last look; the caller looks again
            request = self._locks.request(
                job.id,
                need.level,
                need.names,
                shared=need.shared,
                new=need.new,
                priority=job.record.priority,
                on_done=lambda _request: self.enqueue(job),
            )
            if request.state is not State.WAITING:
                return True
            job.request = request
            job.active = False
        return False

    def _execute(self, job: Job) -> None:
        book = self._book
        with book.mutex:
            if job.machine.state is JobStatus.CANCELING:
                event: m.Event = m.CancelDone(book.stamp())
            else:
                event = m.LocksHeld(book.stamp())
                effect, written = book.feed(job, event)
        if isinstance(event, m.CancelDone):
            self._end(job, event)
            return
        execution = job.execution
        assert execution is not None
        try:
            book.wait(effect, written)
            self.follow_up(job, effect)
            if len(job.record.ops) < _MANY:
                _LOG.info("%s runs", _get_input(job).get("OP_ID"))
            result = msgspec.to_builtins(execution.run())
        except Exception as err:  # noqa: BLE001 - becomes the job's result
            self._fail(job, err)
            return
        self._end(job, m.OpDone(book.stamp(), result))

    # ends ----------------------------------------------------------------------------------

    def _fail(self, job: Job, err: Exception) -> None:
        if isinstance(err, OSError):
            err = files.failure(err)
        if not isinstance(err, errors.GanetiError):
            _LOG.error("operation raised a bug", exc_info=err)
        elif isinstance(err, errors.OpPrereqError):
            _LOG.info("refused: %s", errors.text(err))
        else:
            _LOG.warning("failed: %s: %s", err.wire_name, errors.text(err))
        self._end(job, m.OpFailed(self._book.stamp(), errors.encode_known(err)))

    def _end(self, job: Job, event: m.Event) -> None:
        """The current opcode is over: clean up first, then say so."""
        book = self._book
        execution, job.execution = job.execution, None
        if execution is not None:
            execution.close()
        with book.mutex:
            effect, written = book.feed(job, event)
        try:
            if written is not None and Effect.ENQUEUE in effect:
                # The next opcode begins at once, and waits for both before it runs.
                book.files.flush_soon(written)
            else:
                book.wait(effect, written)
        except errors.GanetiError as err:
            _LOG.critical("end of job %s is not on disk: %s", job.id, errors.text(err))
        with book.mutex:
            job.active = False
        self.follow_up(job, effect)

    def follow_up(self, job: Job, effect: Effect) -> None:
        """Act on an event that is on disk."""
        if Effect.FINALIZED in effect:
            job.ops = []
            with log.set_context(job=str(job.id)):
                _LOG.info("ended with %s", job.status.value)
            with self._book.mutex:
                job.is_over, job.before_end = True, None
                job.hold = None
                again = self._gate.end_job(job.id)
            self.retry_held(again)
        if Effect.NOTIFY in effect:
            self._book.notify(job.id)
        if Effect.ENQUEUE in effect:
            self.enqueue(job)

    def retry_held(self, job_ids: list[int]) -> None:
        """Put held jobs in line: what held them may be over."""
        with self._book.mutex:
            jobs = [self._book.jobs[i] for i in job_ids if i in self._book.jobs]
        for job in jobs:
            self.enqueue(job)


def _get_instance(job: Job) -> str:
    """The instance of the opcode that a job is at, for the log; empty for none."""
    name = _get_input(job).get("instance_name")
    return name if isinstance(name, str) else ""


def _get_input(job: Job) -> JsonObject:
    """The opcode that a job is at in its JSON form; empty when it has ended."""
    index = job.record.current()
    return {} if index is None else job.record.ops[index].input

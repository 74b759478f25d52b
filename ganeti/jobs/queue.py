"""The job queue: submit, cancel, archive and explain jobs.

The book (``jobs/job.py``) holds the jobs in memory. The machine (``jobs/machine.py``, pure) decides
how an event changes a job. Workers run the steps of a job (``jobs/steps.py``). A job that waits
holds no thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ganeti import constants, errors
from ganeti.base import clock as clock_module
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.json_types import JsonObject
from ganeti.jobs import explain, new_job
from ganeti.jobs import files as job_files
from ganeti.jobs import machine as m
from ganeti.jobs.execution import Executor
from ganeti.jobs.files import JobFiles
from ganeti.jobs.gate import Gate, dependencies_of
from ganeti.jobs.job import Book, Job
from ganeti.jobs.keys import Keys, check_key
from ganeti.jobs.machine import Effect, Machine
from ganeti.jobs.steps import Steps
from ganeti.locking.manager import LockManager
from ganeti.model.filter_rule import FilterRule
from ganeti.model.job import JobRecord, Submitter
from ganeti.model.job_status import JOBS_FINALIZED, JobStatus
from ganeti.opcodes import wire
from ganeti.opcodes.base import OpCode

#: Jobs that share the flushes of their move to the archive.
ARCHIVED_AT_ONCE = 100
#: Most opcodes of one job.
MAX_OPCODES = 10_000


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
        self.book = Book(files, clock)
        self._mutex = self.book.mutex
        self._jobs = self.book.jobs
        self._last_id = 0
        self._keys = Keys(files)
        self._gate = Gate(self._find_end_status)
        self._steps = Steps(self.book, self._gate, locks, executor, workers)
        self._steps.submit = lambda jobs, who: self.submit(jobs, who, ignore_drain=True)
        self.get = self.book.get
        self.view = self.book.view
        self.read_all = self.book.read_all
        self.add_listener = self.book.add_listener

    # life cycle --------------------------------------------------------------------------

    def load(self) -> int:
        """Read the jobs from the queue directory; returns how many there are.

        A job that was running when the master daemon ended gets the status error. No job runs
        before :meth:`start`.
        """
        records, self._last_id = self._files.load()
        changed: dict[str, bytes] = {}
        with self._mutex:
            for record in records:
                job = Job(record, Machine(record), [])
                self._jobs[record.id] = job
                self._keys.note(record)
                if record.finalized:
                    continue
                effect = self._restore(job)
                if Effect.PERSIST in effect:
                    changed[job_files.name_of(job.id)] = job_files.encode(record)
                    job.machine.take_news()
        if changed:
            self._files.wait(self._files.add(changed))
        with self._mutex:
            for job in self._jobs.values():
                job.is_over = job.record.finalized
        return len(records)

    def start(self) -> None:
        """Continue the queued and waiting jobs that :meth:`load` has read."""
        with self._mutex:
            ready = [job for job in self._jobs.values() if not job.is_over]
        for job in ready:
            self._steps.enqueue(job)

    def _restore(self, job: Job) -> Effect:
        """Take a job over from the last run of the daemon; one that cannot go on ends as error."""
        effect = job.machine.feed(m.Restarted(self.book.stamp()))
        if job.record.finalized:
            return effect
        try:
            job.ops = [wire.from_wire(op.input) for op in job.record.ops]
            lost = [name for op in job.ops for name in wire.find_lost_secrets(op)]
            if lost:
                raise errors.OpExecError(
                    f"the master daemon was restarted, and {', '.join(lost)} is never written"
                    " to disk; submit the job again"
                )
        except errors.GanetiError as err:
            return job.machine.feed(m.OpFailed(self.book.stamp(), errors.encode_known(err)))
        job.depends = [dependencies_of(op) for op in job.ops]
        return effect

    def stop(self, timeout: float) -> bool:
        """Start no more operations and wait for the running ones; False after ``timeout`` seconds.

        Queued and waiting jobs stay in their files and go on at the next start. The queue directory
        stays locked while an operation runs.
        """
        self._steps.stopping.set()
        done = self._steps.pool.stop(timeout)
        if done:
            self._files.close()
        return done

    def resize(self, workers: int) -> None:
        """Change how many operations may run at the same time."""
        self._steps.pool.resize(workers)

    def set_rules(self, rules: Iterable[FilterRule]) -> None:
        """Replace the filter rules; jobs that the old rules held are checked again."""
        with self._mutex:
            running = [
                job.record
                for job in self._jobs.values()
                if job.status in (JobStatus.WAITING, JobStatus.RUNNING)
            ]
            again = self._gate.set_rules(rules, running)
        self._steps.retry_held(again)

    def _find_end_status(self, job_id: int) -> JobStatus | str | None:
        job = self._jobs.get(job_id)
        if job is not None:
            return job.status if job.is_over else ""
        record = self._files.read_archived(job_id)
        return None if record is None else record.status

    def has_ended(self, job_id: int) -> bool:
        """Whether a job has ended, or does not exist."""
        return self._find_end_status(job_id) != ""

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
        key: str | None = None,
        notes: Sequence[Sequence[str]] = (),
    ) -> list[int]:
        """Submit jobs; returns their ids when they are on disk and on enough master candidates.

        Dependencies on negative ids mean earlier jobs of the same call. With a ``key``, which a
        client chooses for a single job, a second submission with the same key makes no job but
        returns the id of the first one, whatever its status. ``notes`` are for each job the first
        lines of its log.

        Raises:
            JobQueueDrainError: the queue is drained, and the key is not known.
            OpPrereqError: an opcode has no operation, a dependency is invalid, a job has more than
                MAX_OPCODES opcodes.
            FileError, QuorumError: the jobs cannot be written, or not copied to enough master
                candidates; none was submitted.
        """
        check_key(key)
        if self.drained and not ignore_drain and self._keys.find(key) is None:
            raise errors.JobQueueDrainError(
                "the job queue is drained and takes no jobs; see gnt-cluster queue undrain"
            )
        for ops in jobs:
            if len(ops) > MAX_OPCODES:
                raise errors.make_invalid_error(
                    f"a job may have {MAX_OPCODES} opcodes, this one has {len(ops)}; submit"
                    " several jobs (they can depend on each other)",
                )
            for op in ops:
                self._executor.check_submission(op)
        with self._mutex:
            known = self._keys.find(key)
            if known is None:
                made = self._make(jobs, submitter, notes)
                if key is not None:
                    made[0].record.key = key
                    self._keys.note(made[0].record)
                names = {job_files.name_of(j.id): job_files.encode(j.record) for j in made}
                written = self._files.add({**names, job_files.SERIAL: b"%d\n" % self._last_id})
                for job in made:
                    job.submitted = written
        if known is not None:
            return self._answer_known_key(known)
        try:
            self._files.wait(written, copies=True)
        except errors.GanetiError:
            self._withdraw(made)
            raise
        for job in made:
            job.submitted = None
            self.book.notify(job.id)
            if job.record.ops:
                self._steps.enqueue(job)
            else:
                self._steps.follow_up(job, Effect.FINALIZED)
        return [job.id for job in made]

    def _answer_known_key(self, job_id: int) -> list[int]:
        """The answer to a known key, once the first job with it is on enough master candidates."""
        job = self._jobs.get(job_id)
        written = None if job is None else job.submitted
        if written is not None:
            self._files.wait(written, copies=True)
        return [job_id]

    def _withdraw(self, jobs: Sequence[Job]) -> None:
        """Forget jobs that could not be written or copied; no other job gets their ids."""
        with self._mutex:
            for job in jobs:
                self._drop(job)
        self._files.forget([job_files.name_of(job.id) for job in jobs])

    def _drop(self, job: Job) -> None:
        del self._jobs[job.id]
        self._keys.forget(job.record)

    def _make(
        self,
        jobs: Sequence[Sequence[OpCode]],
        submitter: Submitter | None,
        notes: Sequence[Sequence[str]],
    ) -> list[Job]:
        first = self._last_id + 1
        stamp, now = self.book.stamp(), self._clock.now()
        made = [
            new_job.make(ops, first + offset, first, submitter, stamp, now)
            for offset, ops in enumerate(jobs)
        ]
        for job, texts in zip(made, notes):
            new_job.begin_log(job.record, texts, stamp)
        self._last_id = first + len(jobs) - 1
        self._jobs.update((job.id, job) for job in made)
        return made

    def explain(self, job_id: int, title: explain.Title = str) -> JsonObject:
        """Why a job does not go on, see ``jobs/explain.py``; JobLost for one that is not live."""
        pool = self._steps.pool
        return explain.explain(self.book, self._locks, pool, self._clock, job_id, title)

    # what clients do with jobs -----------------------------------------------------------

    def read_archived(self, job_id: int) -> JobRecord | None:
        """A job from the archive (reads its file)."""
        return self._files.read_archived(job_id)

    def list_archived_ids(self) -> list[int]:
        return self._files.list_archived_ids()

    def cancel(self, job_id: int) -> tuple[bool, str]:
        """Cancel a job; returns whether that is possible, and a text for the user.

        A running job can be canceled if its operation allows that; it then ends soon.

        Raises:
            JobQueueError: the job is canceled, but that could not be written: after a restart of
                the daemon it would run.
        """
        with self._mutex:
            job = self._jobs.get(job_id)
            if job is None:
                return False, f"Job {job_id} not found in queue"
            state = job.machine.state
            if job.status in JOBS_FINALIZED:
                return False, f"Job {job_id} is already finished ({job.status})"
            running = state is JobStatus.RUNNING
            if running and not (job.execution is not None and job.execution.cancelable):
                return False, f"Job {job_id} is running and cannot be canceled any more"
            effect, written = self.book.feed(job, m.CancelAsked(self.book.stamp()))
            self._gate.forget(job_id)
            request = job.request if Effect.CANCEL_LOCKS in effect else None
            if running:
                job.cancel_asked.set()
        if request is not None and self._locks.cancel(request):
            self._steps.enqueue(job)
        try:
            self.book.wait(effect, written)
        finally:
            self._steps.follow_up(job, effect)
        if Effect.FINALIZED in effect:
            return True, f"Job {job_id} has been canceled"
        return True, f"Job {job_id} will be canceled"

    def set_priority(self, job_id: int, priority: int) -> tuple[bool, str]:
        """Change the priority of the opcodes that a job has not run yet."""
        if not constants.PRIORITY_HIGHEST <= priority <= constants.PRIORITY_LOWEST:
            raise errors.make_invalid_error(
                f"priority {priority} is not between {constants.PRIORITY_HIGHEST} (most urgent)"
                f" and {constants.PRIORITY_LOWEST}",
            )
        with self._mutex:
            job = self._jobs.get(job_id)
            if job is None:
                return False, f"Job {job_id} not found in queue"
            if job.status in JOBS_FINALIZED or job.machine.state is JobStatus.CANCELING:
                return False, f"Job {job_id} is finished or being canceled ({job.status})"
            changed = m.PriorityChanged(self.book.stamp(), priority)
            effect, written = self.book.feed(job, changed)
            queued = job.machine.state is JobStatus.QUEUED
        self._locks.set_priority(job_id, priority)
        self.book.wait(effect, written)
        self._steps.follow_up(job, effect)
        if queued:
            self._steps.enqueue(job)  # its old place in the line stays and does nothing
        return True, f"Priorities of pending opcodes for job {job_id} have been changed"

    # archive -----------------------------------------------------------------------------

    def archive(self, job_ids: Iterable[int]) -> list[int]:
        """Move finished jobs to the archive; returns the ids that were moved.

        Raises:
            JobQueueError: the result of a job is not on disk yet and cannot be written.
        """
        with self._mutex:
            known = [self._jobs[i] for i in dict.fromkeys(job_ids) if i in self._jobs]
            ended = [job for job in known if job.record.finalized]
            if not ended:
                return []
            late = {
                job_files.name_of(job.id): job_files.encode(job.record)
                for job in ended
                if not job.is_over
            }
            for job in ended:
                late |= self._keys.list_archived(job.record)
        if late:
            self._files.wait(self._files.add(late))
        self._files.catch_up()  # not with the mutex: there may be much to write
        with self._mutex:
            moved = [job.id for job in ended if job.id in self._jobs]
            self._files.archive(moved)
            for job_id in moved:
                self._drop(self._jobs[job_id])
        for job_id in moved:
            self.book.notify(job_id)
        return moved

    def auto_archive(self, age: float, timeout: float) -> tuple[int, int]:
        """Archive jobs that ended more than ``age`` seconds ago (all ended jobs if negative).

        Stops after ``timeout`` seconds. Returns the number of jobs that were archived, and of those
        that were not checked.
        """
        end = self._clock.monotonic() + timeout
        now = self._clock.now()
        with self._mutex:
            ids = sorted(self._jobs)
        archived = 0
        for begin in range(0, len(ids), ARCHIVED_AT_ONCE):
            if self._clock.monotonic() > end:
                return archived, len(ids) - begin
            part = ids[begin : begin + ARCHIVED_AT_ONCE]
            archived += len(self.archive([i for i in part if self._is_old(i, age, now)]))
        return archived, 0

    def _is_old(self, job_id: int, age: float, now: float) -> bool:
        job = self._jobs.get(job_id)
        if job is None or not job.record.finalized:
            return False
        ended = clock_module.merge(job.record.end_timestamp)
        return age < 0 or (ended is not None and now - ended >= age)

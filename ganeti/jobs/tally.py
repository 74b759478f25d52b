"""How many jobs there are by status, and how long those that ended waited and ran."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ganeti import errors
from ganeti.base import clock as clock_module
from ganeti.base.histogram import Histogram
from ganeti.model.job import JobRecord
from ganeti.model.job_status import JOBS_FINALIZED, JobStatus
from ganeti.model.metrics import LONG

if TYPE_CHECKING:
    from ganeti.jobs.queue import JobQueue


class _Seen(NamedTuple):
    status: JobStatus
    #: Unix time of the submission, of a job that has not begun
    received: float | None
    #: opcode, wait and run of each operation, of a job that has ended
    times: tuple[tuple[str, float, float], ...] = ()


class JobTally:
    """Listens to the queue, so nobody has to look at all jobs to count them.

    Thread-safe: the mutex of the book guards it, so no older state of a job replaces a newer one.
    """

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._mutex = queue.book.mutex
        self._known: dict[int, JobStatus] = {}
        self._waiting: dict[int, float] = {}
        self._counts: Counter[JobStatus] = Counter()
        self.ended: Counter[JobStatus] = Counter()
        #: by opcode
        self.waits: dict[str, Histogram] = {}
        self.runs: dict[str, Histogram] = {}
        queue.add_listener(self.note_change)

    def load(self) -> None:
        """Count the jobs that the queue has read at the start of the daemon."""
        with self._mutex:
            for job_id, seen in self._queue.read_all(lambda record: (record.id, _read_job(record))):
                self._replace(job_id, seen)

    def note_change(self, job_id: int) -> None:
        """A job is new, has changed, or is archived."""
        with self._mutex:
            try:
                seen: _Seen | None = self._queue.view(_read_job, job_id)
            except errors.JobLost:
                seen = None
            former = self._known.get(job_id)
            self._replace(job_id, seen)
            if seen is not None and former not in JOBS_FINALIZED:
                self._note_end(seen)

    def _replace(self, job_id: int, seen: _Seen | None) -> None:
        former = self._known.pop(job_id, None)
        self._waiting.pop(job_id, None)
        if former is not None:
            self._counts[former] -= 1
        if seen is not None:
            self._known[job_id] = seen.status
            self._counts[seen.status] += 1
            if seen.received is not None:
                self._waiting[job_id] = seen.received

    def _note_end(self, seen: _Seen) -> None:
        if seen.status not in JOBS_FINALIZED:
            return
        self.ended[seen.status] += 1
        for opcode, wait, run in seen.times:
            self.waits.setdefault(opcode, Histogram(LONG)).observe(wait)
            self.runs.setdefault(opcode, Histogram(LONG)).observe(run)

    def counts(self) -> dict[JobStatus, int]:
        """Jobs that are not archived."""
        with self._mutex:
            return {status: self._counts[status] for status in JobStatus}

    def times(self) -> tuple[dict[str, Histogram], dict[str, Histogram]]:
        """How long opcodes waited and ran, by opcode."""
        with self._mutex:
            return dict(self.waits), dict(self.runs)

    def oldest_waiting(self) -> float | None:
        """When the oldest job that has not begun was submitted (Unix time)."""
        with self._mutex:
            return min(self._waiting.values(), default=None)


def _read_job(record: JobRecord) -> _Seen:
    status = record.status
    received = clock_module.merge(record.received_timestamp)
    if status in (JobStatus.QUEUED, JobStatus.WAITING):
        return _Seen(status, received)
    if status not in JOBS_FINALIZED or received is None:
        return _Seen(status, None)
    times = []
    for op in record.ops:
        begin, end = (clock_module.merge(x) for x in (op.exec_timestamp, op.end_timestamp))
        if begin is not None and end is not None:
            # The wall clock may have been set back meanwhile.
            times.append(
                (str(op.input["OP_ID"]), max(0.0, begin - received), max(0.0, end - begin))
            )
    return _Seen(status, None, tuple(times))

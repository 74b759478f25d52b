"""Which queued jobs may begin: dependencies, filter rules, limits. Pure; called under one mutex.

A job that may not begin is held, with the reason. Whatever ends the reason says which jobs to look
at again, so nobody looks in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ganeti import errors
from ganeti.jobs import reason_limits
from ganeti.jobs.filters import Accept, JobFacts, Limited, Pause, Reject, Rules
from ganeti.model.filter_rule import FilterRule
from ganeti.model.job import JobRecord
from ganeti.model.job_status import JobStatus
from ganeti.opcodes.base import OpCode


@dataclass(frozen=True)
class Dependency:
    """Another job and the statuses it may end with (empty: any)."""

    job_id: int
    statuses: frozenset[str]

    def accepts(self, status: JobStatus) -> bool:
        return not self.statuses or status in self.statuses


@dataclass(frozen=True)
class Hold:
    """Why a job does not begin: jobs whose end it waits for, a filter rule, or a limit."""

    text: str
    jobs: tuple[int, ...] = ()
    #: uuid of the filter rule
    rule: str | None = None


#: Status of a job whose end is on disk, "" for one that has not ended, None for an unknown one.
StatusOf = Callable[[int], JobStatus | str | None]


class Gate:
    """Decides for one job at a time."""

    def __init__(self, status_of: StatusOf) -> None:
        self._status_of = status_of
        self._rules = Rules()
        #: job -> jobs that wait for its end
        self._waiting: dict[int, set[int]] = {}
        #: jobs that a filter rule or a limit in their reason holds
        self._filtered: set[int] = set()
        #: uuid of a RATE_LIMIT rule, or limiting text of reasons -> its running jobs
        self._running: dict[str, set[int]] = {}

    def judge(
        self, record: JobRecord, dependencies: Iterable[Dependency]
    ) -> Hold | errors.GanetiError | None:
        """None: the job may begin now, and counts as running. An error: it never may."""
        self._filtered.discard(record.id)
        verdict = self._depend(record.id, dependencies)
        if verdict is not None or record.start_timestamp is not None:
            return verdict
        facts = JobFacts.from_record(record)
        decision = self._rules.decide(facts, self._running)
        if isinstance(decision, Reject):
            return decision.error
        if isinstance(decision, Pause | Limited):
            self._filtered.add(record.id)
            jobs = decision.running if isinstance(decision, Limited) else ()
            return Hold(decision.explanation, jobs, decision.rule.uuid)
        assert isinstance(decision, Accept)
        full = reason_limits.obstacle(facts, self._running)
        if full is not None:
            self._filtered.add(record.id)
            return Hold(*full)
        limits = reason_limits.limits(facts)
        for limit in (*limits, decision.limit):
            if limit is not None:
                self._running.setdefault(limit, set()).add(record.id)
        return None

    def _depend(
        self, job_id: int, dependencies: Iterable[Dependency]
    ) -> Hold | errors.GanetiError | None:
        waiting: list[int] = []
        for dependency in dependencies:
            status = self._status_of(dependency.job_id)
            if status is None:
                return errors.OpExecError(
                    f"job {dependency.job_id}, which this job depends on, does not exist"
                )
            if not status:
                waiting.append(dependency.job_id)
            elif not dependency.accepts(JobStatus(status)):
                return errors.OpExecError(
                    f"job {dependency.job_id} ended with status {status},"
                    f" but {' or '.join(sorted(dependency.statuses))} was required"
                )
        if not waiting:
            return None
        for other in waiting:
            self._waiting.setdefault(other, set()).add(job_id)
        named = ", ".join(map(str, waiting))
        return Hold(f"the end of job {named}, which it depends on", tuple(waiting))

    def end_job(self, job_id: int) -> list[int]:
        """A job is done; returns the jobs to look at again, in order of ids."""
        again = self._waiting.pop(job_id, set())
        self.forget(job_id)
        for members in self._running.values():
            if job_id in members:
                members.discard(job_id)
                again |= self._filtered
        return sorted(again)

    def forget(self, job_id: int) -> None:
        """The job waits no more (it was canceled)."""
        self._filtered.discard(job_id)
        for waiters in self._waiting.values():
            waiters.discard(job_id)

    def set_rules(self, rules: Iterable[FilterRule], running: Iterable[JobRecord]) -> list[int]:
        """Other filter rules hold from now on; returns the jobs to look at again."""
        self._rules = Rules(rules, self._rules)
        facts = [JobFacts.from_record(record) for record in running]
        self._running = self._rules.count(facts) | reason_limits.count(facts)
        return sorted(self._filtered)


def dependencies_of(op: OpCode, job_id: int = 0, first: int = 0) -> list[Dependency]:
    """Dependencies of an opcode, relative ids resolved.

    Raises:
        OpPrereqError: a relative id points before the submission, or at the job itself.
    """
    result: list[Dependency] = []
    for item in op.depends or []:
        other = item.job
        if other < 0:
            other += job_id
            if not first <= other < job_id:
                raise errors.make_invalid_error(
                    f"dependency {item.job} does not point to an earlier job of the same"
                    " submission",
                )
        elif job_id and other >= job_id:
            raise errors.make_invalid_error(f"dependency {other} is not an earlier job")
        result.append(Dependency(other, frozenset(str(s) for s in item.statuses)))
    return result

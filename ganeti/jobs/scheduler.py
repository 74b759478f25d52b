"""Which queued jobs may be given to a worker: dependencies. Pure.

A place for further conditions (job filters, limits) is here, beside dependencies: each is a
reason why a queued job is not yet in the workers' line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ganeti import errors
from ganeti.model.names import JobStatus
from ganeti.opcodes.base import OpCode


@dataclass(frozen=True)
class Dependency:
    """Another job and the statuses it may end with (empty: any)."""

    job_id: int
    statuses: frozenset[str]

    def accepts(self, status: JobStatus) -> bool:
        return not self.statuses or status in self.statuses


class Dependencies:
    """Jobs that wait for the end of other jobs."""

    def __init__(self) -> None:
        self._waiting: dict[int, set[int]] = {}

    def wait(self, job_id: int, on: Iterable[int]) -> None:
        """Note that a job waits for others."""
        for other in on:
            self._waiting.setdefault(other, set()).add(job_id)

    def finished(self, job_id: int) -> list[int]:
        """Jobs that waited for this one, in order of ids; each looks again at all it needs."""
        return sorted(self._waiting.pop(job_id, ()))

    def forget(self, job_id: int) -> None:
        """The job waits no more (it was canceled)."""
        for waiters in self._waiting.values():
            waiters.discard(job_id)


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
                raise errors.OpPrereqError(
                    f"dependency {item.job} does not point to an earlier job of the same"
                    " submission",
                    errors.ErrorCode.INVAL,
                )
        elif job_id and other >= job_id:
            raise errors.OpPrereqError(
                f"dependency {other} is no earlier job", errors.ErrorCode.INVAL
            )
        result.append(Dependency(other, frozenset(str(s) for s in item.statuses)))
    return result

"""Which queued jobs may be given to a worker: dependencies. Pure.

A place for further conditions (job filters, limits) is here, beside dependencies: each is a
reason why a queued job is not yet in the workers' line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ganeti.model.names import JobStatus


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

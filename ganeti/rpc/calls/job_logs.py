"""The node call that reads logs of daemons."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ganeti.rpc.objects import JobLog
from ganeti.rpc.timing import URGENT, call


class JobLogCalls(ABC):
    """Answered by :class:`ganeti.node.job_logs.JobLogs`."""

    @abstractmethod
    @call(timeout=URGENT)
    def job_log(self, job: int, since: float) -> JobLog:
        """Log lines of this node's daemons about a job; ``since`` is when it was submitted."""

"""Lines of the logs of this node about one job, for ``gnt-job logs``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from ganeti import errors
from ganeti.base import files
from ganeti.base.log_lines import find
from ganeti.node.context import NodeContext
from ganeti.rpc.calls.job_logs import JobLogCalls
from ganeti.rpc.objects import JobLog, JobLogLine

log = logging.getLogger(__name__)

#: Logs with lines about jobs; a node that was the master has those of its time.
_NAMES = ("master-daemon.log", "node-daemon.log")
#: Bytes of lines in an answer; the newest are kept.
_MOST = 1 << 20


class JobLogs(JobLogCalls):
    """Searches the files, and those that were rotated since the job was submitted."""

    def __init__(self, context: NodeContext) -> None:
        self._directory = context.paths.log

    def job_log(self, job: int, since: float) -> JobLog:
        """The lines, oldest first.

        Raises:
            ParameterError: this is not the id of a job.
            GenericError: a log cannot be read.
        """
        if job < 1:
            raise errors.ParameterError(f"{job} is not a job ID")
        found: list[JobLogLine] = []
        cut, left = False, _MOST
        for path in sorted(self._files(since), key=_changed_at, reverse=True):
            if left <= 0:
                cut = True
                break
            try:
                lines, more = find(path, job, left)
            except OSError as err:
                raise files.failure(err) from err
            cut |= more
            left -= sum(len(line.text) for line in lines)
            found += [
                JobLogLine(time=line.time, program=line.program, level=line.level, text=line.text)
                for line in lines
            ]
        return JobLog(lines=sorted(found, key=lambda line: line.time), cut=cut)

    def _files(self, since: float) -> Iterator[Path]:
        """Logs that were written to after a moment."""
        for name in _NAMES:
            for path in self._directory.glob(f"{name}*"):
                if path.is_file() and _changed_at(path) >= since:
                    yield path


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # it is being rotated
        return 0.0

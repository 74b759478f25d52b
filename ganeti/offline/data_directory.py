"""The data directory of a cluster that is stopped: who may be using it, and copies of files."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ganeti import constants, errors, paths
from ganeti.base import daemon, files, jsonio
from ganeti.net import unix_socket
from ganeti.paths import Paths

#: Daemons that write the configuration, of ours and of other versions.
_WRITERS = (constants.MASTERD, "ganeti-luxid", "ganeti-wconfd")
_STANDARD = ("var", "lib", "ganeti")
_ENDED = frozenset(("canceled", "success", "error"))
_JOB = "job-"


class CopiedPaths(Paths):
    """Paths of a data directory that was copied somewhere, without all the others."""

    @property
    def data(self) -> Path:
        return self.root


@dataclass(frozen=True)
class DataDirectory:
    """A data directory; ``whole`` when it is in its place on a node, and no lone copy."""

    paths: Paths
    whole: bool

    @classmethod
    def find(cls, text: str | None) -> DataDirectory:
        """The directory of this node, or the given one."""
        if text is None:
            return cls(paths.current(), True)
        directory = Path(text).resolve()
        if directory.parts[-len(_STANDARD) :] == _STANDARD:
            return cls(Paths(directory.parents[len(_STANDARD) - 1]), True)
        return cls(CopiedPaths(directory), False)

    def read(self) -> object:
        """Read ``config.data`` as it is; raises as :func:`read`."""
        return read(self.paths.config_file)

    def refuse_running(self) -> None:
        """OpPrereqError when a daemon that may write the configuration runs."""
        for text in self._find_running():
            raise errors.make_state_error(
                f"{text}. Stop the daemons of the cluster on this node first",
            )

    def _find_running(self) -> Iterator[str]:
        if self.whole:
            for name in _WRITERS:
                pid = daemon_pid(name, self.paths.pid_file(name))
                if pid is not None:
                    yield f"{name} runs (pid {pid})"
            for path in (self.paths.luxi_socket, self.paths.luxi_socket_legacy):
                if _answers(path):
                    yield f"a daemon answers on {path}"
        if files.is_locked(self.paths.queue / "lock"):
            yield f"a process holds the job queue, {self.paths.queue / 'lock'}"

    def refuse_jobs(self) -> None:
        """OpPrereqError when there are jobs that have not ended: they would mean other things."""
        pending = [job_id for job_id, ended in self.jobs() if not ended]
        if pending:
            raise errors.make_state_error(
                f"jobs in {self.paths.queue} have not ended:"
                f" {', '.join(map(str, sorted(pending)))}. Let the software that they are of end"
                " them, or cancel them there with gnt-job cancel",
            )
        journal = self.paths.queue / "journal"
        if journal.exists() and journal.stat().st_size:
            raise errors.make_state_error(
                f"{journal} has jobs that are not in their files: start the master daemon once"
                " more and stop it, so that it puts them there",
            )

    def jobs(self) -> Iterator[tuple[int, bool]]:
        """Numbers of the jobs that are not archived, and whether they have ended."""
        for path in sorted(self.paths.queue.glob(f"{_JOB}*")):
            number = path.name.removeprefix(_JOB)
            if number.isdigit():
                yield int(number), _has_ended(read(path))


def read(path: Path) -> object:
    """The JSON value in a file.

    Raises:
        OpPrereqError: it cannot be read. ConfigurationError: it holds no JSON.
    """
    try:
        return jsonio.loads_unique(path.read_bytes())
    except FileNotFoundError as err:
        raise errors.make_unknown_error(f"there is no file {path}") from err
    except OSError as err:
        raise errors.make_environment_error(f"cannot read {path}: {err.strerror}") from err
    except errors.ParseError as err:
        raise errors.ConfigurationError(
            f"{path} is damaged, or was only half written: {errors.text(err)}"
        ) from err


def _has_ended(job: object) -> bool:
    """Whether all of a job is over; a file that is not a job is nobody's work."""
    ops = job.get("ops") if isinstance(job, dict) else None
    states = [op.get("status") for op in ops or [] if isinstance(op, dict)]
    return all(state in _ENDED for state in states) or "error" in states or "canceled" in states


def daemon_pid(name: str, path: Path) -> int | None:
    """The pid of a running daemon. Others than ours lock their files in another way."""
    pid = daemon.running_pid(path)
    if pid is not None:
        return pid
    pid = daemon.read_pid(path)
    if pid is None:
        return None
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return pid if any(name.encode() in os.path.basename(word) for word in words) else None


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            with unix_socket.shorten_name(path) as name:
                sock.connect(name)
        except OSError:
            return False
    return True

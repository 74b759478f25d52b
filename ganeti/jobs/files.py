"""The queue directory: one JSON file a job, replaced atomically; ids never used twice.

Layout: ``job-<id>``, ``serial`` (last id), ``version``, ``lock``, ``drain`` (its presence drains),
``archive/<id div 10000>/job-<id>``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import files, jsonio
from ganeti.base.group_commit import GroupCommit, Ticket
from ganeti.model import job as job_model
from ganeti.model.job import JobRecord

_JOB_FILE = re.compile(r"^job-([1-9][0-9]*)$")
_TMP_PREFIX = ".new-"
JOBS_PER_ARCHIVE_DIR = 10_000
SERIAL = "serial"

_LOG = logging.getLogger(__name__)


def name_of(job_id: int) -> str:
    return f"job-{job_id}"


def encode(job: JobRecord) -> bytes:
    return jsonio.dumps_bytes(job_model.to_wire(job))


class JobFiles:
    """Reads and writes the queue directory; holds its lock while open."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = files.FileLock(directory / "lock")
        self._commit: GroupCommit[Mapping[str, bytes]] = GroupCommit(self._flush)

    # opening -----------------------------------------------------------------------------

    def open(self) -> None:
        """Make the directory if needed, take its lock and check its version.

        Raises:
            LockError: another master daemon uses the queue.
            JobQueueError: the queue has another format.
        """
        files.ensure_dir(self.directory, 0o750)
        files.ensure_dir(self.directory / "archive", 0o750)
        self._lock.acquire()
        version = self.directory / "version"
        expected = str(constants.JOB_QUEUE_VERSION)
        try:
            found = files.read_text(version).strip()
        except FileNotFoundError:
            files.write_atomic(version, f"{expected}\n")
            found = expected
        if found != expected:
            self._lock.release()
            raise errors.JobQueueError(
                f"job queue {self.directory} has format {found}, this version needs {expected}"
            )
        for entry in os.scandir(self.directory):
            if entry.name.startswith(_TMP_PREFIX):
                os.unlink(entry.path)

    def close(self) -> None:
        self._lock.release()

    def load(self) -> tuple[list[JobRecord], int]:
        """All live jobs in order of their ids, and the last id ever used.

        A file that cannot be read is moved aside to ``job-<id>.corrupted`` and logged.
        """
        jobs: list[JobRecord] = []
        last = self._read_serial()
        for job_id in sorted(self._ids(self.directory)):
            last = max(last, job_id)
            path = self.directory / name_of(job_id)
            try:
                job = job_model.from_wire(jsonio.loads(path.read_bytes()))
                if job.id != job_id:
                    raise errors.JobFileCorrupted(f"holds job {job.id}")
            except errors.GanetiError as err:
                aside = path.with_name(f"{path.name}.corrupted")
                path.rename(aside)
                _LOG.error("job file %s is damaged and was moved to %s: %s", path, aside, err)
                continue
            jobs.append(job)
        return jobs, last

    def _read_serial(self) -> int:
        try:
            text = files.read_text(self.directory / SERIAL).strip()
        except FileNotFoundError:
            return 0
        if not text.isdigit():
            raise errors.JobQueueError(f"{self.directory / SERIAL} does not hold a number")
        return int(text)

    @staticmethod
    def _ids(directory: Path) -> Iterator[int]:
        for entry in os.scandir(directory):
            match = _JOB_FILE.match(entry.name)
            if match:
                yield int(match[1])

    # writing -----------------------------------------------------------------------------

    def add(self, contents: Mapping[str, bytes]) -> Ticket:
        """Put files in line for the next round; later contents of a file win."""
        return self._commit.add(contents)

    def wait(self, ticket: Ticket) -> None:
        """Block until the files are on disk (one flush for all that wait).

        Raises:
            JobQueueError: they could not be written; the old ones are untouched.
        """
        self._commit.wait(ticket)

    def _flush(self, batch: list[Mapping[str, bytes]]) -> None:
        contents: dict[str, bytes] = {}
        for item in batch:
            contents.update(item)
        written: list[tuple[Path, Path]] = []
        try:
            for name, data in contents.items():
                tmp = self.directory / f"{_TMP_PREFIX}{name}"
                written.append((tmp, self.directory / name))
                files.write_synced(tmp, data)
            for tmp, final in written:
                tmp.rename(final)
            files.fsync_dir(self.directory)
        except OSError as err:
            for tmp, _final in written:
                with contextlib.suppress(OSError):
                    tmp.unlink()
            raise errors.JobQueueError(
                f"cannot write the job queue in {self.directory}: {err.strerror or err}"
            ) from err

    # drain flag --------------------------------------------------------------------------

    @property
    def drained(self) -> bool:
        return (self.directory / "drain").exists()

    def set_drained(self, flag: bool) -> None:
        path = self.directory / "drain"
        if flag:
            files.write_atomic(path, b"", mode=0o644)
        else:
            files.remove(path)

    # archive -----------------------------------------------------------------------------

    def _archive_path(self, job_id: int) -> Path:
        part = str(job_id // JOBS_PER_ARCHIVE_DIR)
        return self.directory / "archive" / part / name_of(job_id)

    def archive(self, job_ids: Iterable[int]) -> None:
        """Move files of finished jobs to the archive."""
        touched: set[Path] = {self.directory}
        for job_id in job_ids:
            target = self._archive_path(job_id)
            files.ensure_dir(target.parent, 0o750)
            (self.directory / name_of(job_id)).rename(target)
            touched.add(target.parent)
        for directory in touched:
            files.fsync_dir(directory)

    def archived(self, job_id: int) -> JobRecord | None:
        """A job from the archive, None when it is not there or damaged."""
        try:
            return job_model.from_wire(jsonio.loads(self._archive_path(job_id).read_bytes()))
        except (FileNotFoundError, errors.GanetiError):
            return None

    def archived_ids(self) -> list[int]:
        found: list[int] = []
        for entry in os.scandir(self.directory / "archive"):
            if entry.is_dir():
                found.extend(self._ids(Path(entry.path)))
        return sorted(found)

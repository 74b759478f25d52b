"""The queue directory: one JSON file a job, replaced atomically; ids never used twice.

Layout: ``job-<id>``, ``serial`` (last id), ``version``, ``lock``, ``drain`` (its presence drains),
``archive/<id div 10000>/job-<id>``, ``keys/<hash>``, ``journal`` (what the files do not have yet,
see ``base/file_journal.py``).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import files, jsonio
from ganeti.base.copies import Copies, NoCopies, Round
from ganeti.base.file_journal import FileJournal, LateWriter
from ganeti.base.file_parts import Content, Contents
from ganeti.base.group_commit import GroupCommit, Ticket
from ganeti.model import job as job_model
from ganeti.model.job import JobRecord

_JOB_FILE = re.compile(r"job-([1-9][0-9]*)")
SERIAL = "serial"
_ID_DIGITS = 18
#: Seconds that a write for which nobody waits may be late.
MOMENT = 0.05
#: Directory of files that remember clients' keys: ``keys/<SHA-256 of the key>`` holds a job id.
#: Only of archived jobs: a live one has the key in its own file, so that neither is without the
#: other after a crash.
KEYS = "keys"

_LOG = logging.getLogger(__name__)


def name_of(job_id: int) -> str:
    return f"job-{job_id}"


def id_of(name: str) -> int:
    return int(name.removeprefix("job-"))


def encode(job: JobRecord) -> bytes:
    return jsonio.dumps_bytes(job_model.to_wire(job))


@dataclass
class Written:
    """Files on their way to this disk, and from there to the copies."""

    contents: Mapping[str, Content]
    ticket: Ticket = field(default_factory=Ticket)
    #: set once the files are on this disk
    round: Round | None = None


class JobFiles:
    """Reads and writes the queue directory; holds its lock while open."""

    def __init__(self, directory: Path, copies: Copies | None = None) -> None:
        self.directory = directory
        self._copies: Copies = copies or NoCopies()
        #: copies get the drain flag in the order in which it is written here
        self._flag_lock = threading.Lock()
        self._lock = files.FileLock(directory / "lock")
        self._journal = FileJournal(directory)
        self._late_writer: LateWriter | None = None
        self._commit: GroupCommit[Written] = GroupCommit(self._flush)
        #: how long it takes to flush the journal
        self.flush_times = self._commit.times
        #: the last of what nobody waits for
        self._late: Written | None = None
        self._unhurried = threading.Condition()
        self._closing = False
        self._writer = threading.Thread(target=self._write_late, name="job-writer", daemon=True)

    # opening -----------------------------------------------------------------------------

    def open(self) -> None:
        """Make the directory if needed, take its lock, check its version, finish what a crash left.

        Raises:
            LockError: another master daemon uses the queue.
            JobQueueError: the queue has another format, or cannot be written.
            ConfigurationError: its journal is damaged.
        """
        files.ensure_dir(self.directory, 0o750)
        files.ensure_dir(self.directory / "archive", 0o750)
        files.ensure_dir(self.directory / KEYS, 0o750)
        self._lock.acquire()
        try:
            self._check_version()
            for entry in os.scandir(self.directory):
                if entry.name.startswith(files.NEW_PREFIX):
                    os.unlink(entry.path)
            self._journal.open()
        except OSError as err:
            self._lock.release()
            raise self._cannot_write(err) from err
        except errors.GanetiError:
            self._lock.release()
            raise
        self._late_writer = LateWriter(
            lambda: self._journal.size, self._journal.catch_up, "job-files"
        )
        self._writer.start()

    def _check_version(self) -> None:
        version = self.directory / "version"
        expected = str(constants.JOB_QUEUE_VERSION)
        try:
            found = files.read_text(version).strip()
        except FileNotFoundError:
            files.write_atomic(version, f"{expected}\n")
            found = expected
        if found != expected:
            raise errors.JobQueueError(
                f"job queue {self.directory} has format {found}, this version needs {expected}"
            )

    def _cannot_write(self, err: OSError) -> errors.JobQueueError:
        reason = errors.text(files.failure(err))
        return errors.JobQueueError(f"cannot write the job queue in {self.directory}: {reason}")

    def close(self) -> None:
        """Bring all files up to date and release the lock. Idempotent."""
        if self._late_writer is None:
            return
        with self._unhurried:
            self._closing = True
            self._unhurried.notify()
        self._writer.join()
        self._late_writer.stop()
        self._late_writer = None
        try:
            self._journal.catch_up()
        except OSError as err:  # nothing is lost: it is in the journal
            _LOG.error("%s", errors.text(self._cannot_write(err)))
        self._journal.close()
        self._lock.release()

    def catch_up(self) -> None:
        """Bring the files up to date now; blocks for some flushes. OSError when that fails."""
        self._journal.catch_up()

    def hold_caught_up(self) -> AbstractContextManager[None]:
        """The files as they should be, and still, while this is held."""
        return self._journal.hold_caught_up()

    def load(self) -> tuple[list[JobRecord], int]:
        """All live jobs in order of their ids, and the last id ever used.

        A file that cannot be read is moved aside to ``job-<id>.corrupted`` and logged.
        """
        with self.hold_caught_up():
            return self._load()

    def _load(self) -> tuple[list[JobRecord], int]:
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

    def last_id(self) -> int:
        """The highest id ever used; needs no :meth:`open`.

        Raises:
            JobQueueError: the serial file holds no number.
            ConfigurationError: the journal is damaged.
        """
        newer = self._journal.read_pending()
        ids = (int(match[1]) for match in map(_JOB_FILE.fullmatch, newer) if match)
        serial = int(newer.get(SERIAL, b"0"))
        return max([self._read_serial(), serial, *ids, *self._ids(self.directory)])

    def _read_serial(self) -> int:
        try:
            text = files.read_text(self.directory / SERIAL).strip()
        except FileNotFoundError:
            return 0
        # More digits than any id has are damage, too.
        if not (text.isascii() and text.isdigit()) or len(text) > _ID_DIGITS:
            raise errors.JobQueueError(f"{self.directory / SERIAL} does not hold a number")
        return int(text)

    @staticmethod
    def _ids(directory: Path) -> Iterator[int]:
        for entry in os.scandir(directory):
            match = _JOB_FILE.fullmatch(entry.name)
            if match:
                yield int(match[1])

    # writing -----------------------------------------------------------------------------

    def add(self, contents: Mapping[str, Content]) -> Written:
        """Put files, or what changes of them, in line for the next round; what is later wins.

        Call it in the order in which the contents were made.
        """
        written = Written(contents)
        written.ticket = self._commit.add(written)
        return written

    def wait(self, written: Written, *, copies: bool = False) -> None:
        """Block until the files are on disk (one flush for all that wait).

        With ``copies`` they are also on enough master candidates.

        Raises:
            FileError: they could not be written; the old ones are untouched.
            QuorumError: they are on this disk, but on too few others.
        """
        self._commit.wait(written.ticket)
        if copies and written.round is not None:
            written.round.wait()

    def flush_soon(self, written: Written) -> None:
        """Have files written within a moment; what is written until then shares their flush."""
        with self._unhurried:
            if self._late is None:
                self._unhurried.notify()
            self._late = written

    def _write_late(self) -> None:
        """Wait for what nobody waits for."""
        while True:
            with self._unhurried:
                self._unhurried.wait_for(lambda: self._late or self._closing)
                self._unhurried.wait_for(lambda: self._closing, MOMENT)
                late, self._late = self._late, None
                if late is None:
                    return
            try:
                self._commit.wait(late.ticket)
            except errors.GanetiError as err:
                _LOG.error("%s", errors.text(err))

    def forget(self, names: Iterable[str]) -> None:
        """Remove files of jobs whose ids no client has got."""
        gone = list(names)
        self._copies.remove_jobs(gone)
        with self.hold_caught_up():
            for name in gone:
                files.remove(self.directory / name)

    def key(self, name: str) -> int | None:
        """The id of the archived job that a key stands for; None for a new key."""
        try:  # never in the journal alone: the files have caught up before a job is archived
            text = files.read_text(self.directory / name).strip()
        except FileNotFoundError:
            return None
        return int(text) if text.isdigit() else None

    def _flush(self, batch: list[Written]) -> None:
        contents = Contents()
        for item in batch:
            contents.add(item.contents)
        self._journal.write(contents)
        assert self._late_writer is not None
        self._late_writer.wrote()
        # Not before: a copy that was newer after a crash would keep this node from being the
        # master again.
        sent = self._copies.write_jobs(contents)
        for item in batch:
            item.round = sent

    def contents(self) -> dict[str, bytes]:
        """Every live job file, the serial and the keys, as they are on disk."""
        with self.hold_caught_up():
            return self._contents()

    def _contents(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        names = [SERIAL, *(name_of(job_id) for job_id in self._ids(self.directory))]
        names += [f"{KEYS}/{entry.name}" for entry in os.scandir(self.directory / KEYS)]
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # the first start
                found[name] = (self.directory / name).read_bytes()
        return found

    # drain flag --------------------------------------------------------------------------

    @property
    def drained(self) -> bool:
        return (self.directory / "drain").exists()

    def set_drained(self, flag: bool) -> None:
        """Set or remove the flag, here and on the copies; it stays as it was on failure.

        Raises:
            OSError: it cannot be written.
            QuorumError: too few copies can be reached; a new master would not know it.
        """
        with self._flag_lock:
            before = self.drained
            sent = self._mark_drained(flag)
            try:
                sent.wait()
            except errors.QuorumError:
                self._mark_drained(before)
                raise

    def _mark_drained(self, flag: bool) -> Round:
        path = self.directory / "drain"
        if flag:
            files.write_atomic(path, b"", mode=0o644)
        elif files.remove(path):
            files.fsync_dir(self.directory)
        return self._copies.drain(flag)

    # archive -----------------------------------------------------------------------------

    def _archive_path(self, job_id: int) -> Path:
        part = str(job_id // constants.JOBS_PER_ARCHIVE_DIR)
        return self.directory / "archive" / part / name_of(job_id)

    def archive(self, job_ids: Iterable[int]) -> None:
        """Move files of finished jobs to the archive."""
        job_ids = list(job_ids)
        with self.hold_caught_up():
            self._move(job_ids)
            # Before anybody reads the files as a whole: there they are no more.
            self._copies.archive_jobs([name_of(job_id) for job_id in job_ids])

    def _move(self, job_ids: Iterable[int]) -> None:
        directories: set[Path] = {self.directory}
        for job_id in job_ids:
            target = self._archive_path(job_id)
            if not target.parent.is_dir():
                files.ensure_dir(target.parent, 0o750)
                files.fsync_dir(target.parent.parent)
            (self.directory / name_of(job_id)).rename(target)
            directories.add(target.parent)
        for directory in directories:
            files.fsync_dir(directory)

    def read_archived(self, job_id: int) -> JobRecord | None:
        """A job from the archive, None when it is not there or damaged."""
        try:
            return job_model.from_wire(jsonio.loads(self._archive_path(job_id).read_bytes()))
        except (FileNotFoundError, errors.GanetiError):
            return None

    def read_archived_contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """Files of archived jobs by their names in the queue; without those that are missing."""
        found: dict[str, bytes] = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found[name] = self._archive_path(id_of(name)).read_bytes()
        return found

    def list_archived_ids(self) -> list[int]:
        found: list[int] = []
        for entry in os.scandir(self.directory / "archive"):
            if entry.is_dir():
                found.extend(self._ids(Path(entry.path)))
        return sorted(found)

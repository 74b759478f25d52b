"""The copy of the master's state on this node: configuration, its journal, and job files.

The master sends what changed; everything is on disk when a call returns. The files have the form
and place that a master daemon reads when this node takes over. Job files follow their journal a
moment later (see ``base/file_journal.py``); as long as they do not, the queue is locked, so that no
master daemon starts on it. One that starts claims the role first, and then they have followed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import threading
import zlib
from pathlib import Path

import msgspec

from ganeti import constants, errors
from ganeti.base import daemon, files, journal, position, process, sealed_file, typed
from ganeti.base.file_journal import FileJournal, LateWriter
from ganeti.base.file_parts import Contents
from ganeti.node import membership
from ganeti.node.context import NodeContext
from ganeti.node.standby import Standby
from ganeti.rpc.calls.replica import ReplicaCalls
from ganeti.rpc.replica import MasterView, ReplicaUpdate
from ganeti.rpc.wire import decode_content, encode_content

log = logging.getLogger(__name__)
_QUEUE_FILE = re.compile(r"job-[1-9][0-9]{0,17}|serial|keys/[0-9a-f]{64}")
_JOB_FILE = re.compile(r"job-([1-9][0-9]{0,17})")
#: Seconds that a master daemon on this node gets to notice that another node is the master.
STEP_DOWN = 2.0


class _Head(msgspec.Struct):
    """The part of ``config.data`` that tells how new it is."""

    serial_no: int


class Replica(ReplicaCalls):
    """Writes what the master sends. Thread-safe: one call at a time."""

    def __init__(self, context: NodeContext, standby: Standby) -> None:
        self._context = context
        self._standby = standby
        self._paths = context.paths
        self._term = context.term
        self._name = context.name
        self._lock = threading.Lock()
        #: serial of the last change in the copy; None: look into the files
        self._serial: int | None = None
        self._journal: journal.Journal | None = None
        queue = self._paths.queue
        #: held while the journal of the queue is open, which is while there is something in it
        self._queue_lock = files.FileLock(queue / "lock")
        self._queue = FileJournal(queue)
        self._late_writer: LateWriter | None = None

    def stop(self) -> None:
        """Bring the job files up to date; no call may come any more. Idempotent."""
        if self._late_writer is not None:
            self._late_writer.stop()
            self._late_writer = None
        with self._lock:
            self._close()

    # what there is -------------------------------------------------------------------------

    def master_view(self) -> MasterView:
        """The view of this node on the master role."""
        number, claimed = self._term.read_highest()
        known = position.read(self._paths)
        return MasterView(
            master=claimed or self._context.read_master(),
            epoch=number,
            position=known.position,
            may_be_newer=known.may_be_newer,
            config_serial=self._read_serial(),
            last_job=self._find_last_job(),
            silence=self._standby.measure_silence(),
            stopped=self._paths.master_stopped_file.exists(),
            acts=self._paths.master_grant.exists() and self._runs_master(),
        )

    def _runs_master(self) -> bool:
        return daemon.running_pid(self._paths.pid_file(constants.MASTERD)) is not None

    def master_claim(
        self, epoch: int, master: str, known: int | None = None, silence: float | None = None
    ) -> MasterView:
        """Follow a new master; the answer holds what its predecessor wrote here at most.

        Raises:
            DeposedError: another node was quicker, or the master is not silent any more.
        """
        with self._lock:  # no update of the old master may be half done meanwhile
            self._refuse_while_heard(silence)
            self._term.claim(epoch, master, known)
            self._standby.note_sign()
            self._let_go()  # the new master may be on this node
            return self.master_view()

    def _refuse_while_heard(self, silence: float | None) -> None:
        """A master that was heard meanwhile may act. Its own node does not hear it."""
        followed = self._term.read_highest()[1] or self._context.read_master()
        if silence is None or followed == self._name:
            return
        measured = self._standby.measure_silence()
        if measured < silence:
            raise errors.DeposedError(
                f"this node heard from the master {followed} {int(measured)} s ago; it must be"
                f" silent for {silence:.0f} s"
            )

    def _read_serial(self) -> int | None:
        try:
            data = self._paths.config_file.read_bytes()
        except FileNotFoundError:
            return None
        try:
            serial = typed.decode(data, _Head).serial_no
        except msgspec.DecodeError as err:
            raise errors.ConfigurationError(f"{self._paths.config_file} is damaged: {err}") from err
        for record in journal.read(self._paths.journal_file):
            serial = max(serial, int(record.get("serial", 0)))
        return serial

    def _find_last_job(self) -> int:
        newer = self._queue.read_pending()
        serials = [newer.get("serial", b"")]
        with contextlib.suppress(FileNotFoundError):
            serials.append((self._paths.queue / "serial").read_bytes())
        numbers = [int(text) for text in serials if text.strip().isdigit()]
        jobs = [name for name in (*newer, *self._job_names()) if _JOB_FILE.fullmatch(name)]
        return max([0, *numbers, *(int(name[4:]) for name in jobs)])

    def _job_names(self) -> list[str]:
        try:
            entries = list(os.scandir(self._paths.queue))
        except FileNotFoundError:
            return []
        return [entry.name for entry in entries if _JOB_FILE.fullmatch(entry.name)]

    def node_demote_from_mc(self) -> None:
        """Remove what only master candidates have: configuration, authority's key, job files.

        Raises:
            GenericError: this node is the master, its master daemon runs, or a file stays.
        """
        with self._lock:  # no update is being written meanwhile
            self._check_demotion()
            self._close()
            log.warning("this node is not a master candidate any more")
            membership.remove(membership.candidate_files(self._paths))

    def _close(self) -> None:
        """Have no file of the copy open or locked."""
        self._serial = None
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._let_go()

    def _check_demotion(self) -> None:
        if self._context.read_master() == self._context.name:
            raise errors.GenericError("this node is the master and stays a master candidate")
        pid = daemon.running_pid(self._paths.pid_file(constants.MASTERD))
        if pid is not None:
            raise errors.GenericError(
                f"the master daemon runs here (pid {pid}), so the configuration is not removed"
            )

    # what comes ----------------------------------------------------------------------------

    def replica_update(self, update: ReplicaUpdate) -> bool:
        """Write a part of the master's state; False when the records do not follow ours.

        Raises:
            DeposedError: the master has been replaced.
            ParameterError: a name that is not a file of the queue.
            FileError: the disk does not take it; the master sends everything again later.
        """
        _check_names(update)
        with self._lock:
            self._term.check(update.epoch)
            try:
                if self._term.read_highest() == (update.epoch, self._name):
                    # The master is on this node and has its files itself; it has just won a vote.
                    self._standby.note_sign(update.failover_after or None)
                    position.begin_own(self._paths, (update.epoch, 0))
                    return True
                self._standby.note_sign(update.failover_after)
                self._take()
                try:
                    return self._write(update)
                finally:
                    self._catch_up_soon()
            except OSError as err:
                self._serial = None
                raise files.failure(err) from err

    def _write(self, update: ReplicaUpdate) -> bool:
        self._write_jobs(update)
        if not self._write_config(update):
            return False
        if update.sequence:
            position.write(self._paths, (update.epoch, update.sequence))
        return True

    # from candidate to candidate -----------------------------------------------------------

    def replica_read(self) -> ReplicaUpdate:
        """The whole copy, as a candidate needs it that takes over with older data.

        Raises:
            GenericError: this node has no copy.
        """
        with self._lock:
            self._let_go()
            known = position.read(self._paths)
            try:
                text = files.read_text(self._paths.config_file)
            except FileNotFoundError as err:
                raise errors.GenericError("this node has no copy of the configuration") from err
            base = typed.decode(text.encode("utf-8"), _Head).serial_no
            records = [r for r in journal.read(self._paths.journal_file) if r["serial"] > base]
            jobs = self._job_names()
            return ReplicaUpdate(
                epoch=known.position[0],
                sequence=known.position[1],
                base=base,
                serial=base + len(records),
                checkpoint=encode_content(text),
                records=[journal.encode(record).decode("utf-8") for record in records],
                files=self._read_queue(["serial", *jobs, *self._list_keys()]),
                keep=[int(name.removeprefix("job-")) for name in jobs],
                drained=(self._paths.queue / "drain").exists(),
            )

    def _list_keys(self) -> list[str]:
        keys = self._paths.queue / "keys"
        return [f"keys/{path.name}" for path in keys.iterdir()] if keys.is_dir() else []

    def _read_queue(self, names: list[str]) -> dict[str, str]:
        found = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # before the first job the file is missing
                found[name] = files.read_text(self._paths.queue / name)
        return found

    def replica_adopt(self, update: ReplicaUpdate) -> None:
        """Replace this copy by a newer one.

        Raises:
            GenericError: this copy is not older, or the master daemon runs here.
            LockError: a master daemon has just been started.
            FileError: the disk does not take it; what was written is part of the newer copy.
            ParameterError: a name that is not a file of the queue.
        """
        _check_names(update)
        with self._lock:
            newer = (update.epoch, update.sequence)
            if newer <= position.read(self._paths).position:
                raise errors.GenericError("the copy on this node is not older than the other one")
            if daemon.running_pid(self._paths.pid_file(constants.MASTERD)) is not None:
                raise errors.GenericError("the master daemon of this node runs")
            try:
                self._take()
                try:
                    self._write(update)
                finally:
                    self._catch_up_soon()
            except OSError as err:
                self._serial = None
                raise files.failure(err) from err

    # having the queue for itself -----------------------------------------------------------

    def _take(self) -> None:
        """Keep master daemons of this node away from the files while they are written.

        One that was replaced without learning of it (it was frozen, or cut off) would write its old
        state over the copy when it continues or ends; one that just starts cuts the journal.

        Raises:
            GenericError: it cannot be ended.
            LockError: one has just been started.
        """
        if self._queue_lock.held:
            return
        pid = daemon.running_pid(self._paths.pid_file(constants.MASTERD))
        if pid is not None and not process.wait_exit(pid, STEP_DOWN):
            log.warning("killing the master daemon (pid %d): another node is the master", pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if not process.wait_exit(pid, STEP_DOWN):
                raise errors.GenericError(
                    f"the master daemon (pid {pid}) of this node, which is not the master any"
                    " more, cannot be killed"
                )
        files.ensure_dir(self._paths.queue, 0o750)
        self._queue_lock.acquire()
        try:
            self._prepare(self._paths.queue)
            self._queue.open()
        except BaseException:  # an interrupt too: release the lock and raise it
            self._queue_lock.release()
            raise

    def _catch_up_soon(self) -> None:
        """Let go of the queue at once if its files are as they should be, else when they are."""
        if not self._queue.size:
            self._let_go()
            return
        if self._late_writer is None:
            self._late_writer = LateWriter(lambda: self._queue.size, self._catch_up, "copies")
        self._late_writer.wrote()

    def _catch_up(self) -> None:
        """Bring the job files up to date, while updates go on, and release the queue's lock."""
        self._queue.catch_up()
        with self._lock:
            if self._queue_lock.held:
                self._catch_up_soon()

    def _let_go(self) -> None:
        """Bring the job files up to date as far as possible, and release the queue's lock."""
        if not self._queue_lock.held:
            return
        try:
            self._queue.catch_up()
        except OSError as err:  # nothing is lost: it is in the journal
            log.error("job files do not follow their journal: %s", err)
        self._queue.close()
        self._queue_lock.release()

    # configuration and job files -----------------------------------------------------------

    def _write_config(self, update: ReplicaUpdate) -> bool:
        if update.checkpoint is not None:
            text = decode_content(update.checkpoint)
            sealed_file.write(self._paths.config_file, text, mode=0o640)
            self._open_journal().restart()
            self._serial = update.base
        if not update.records:
            return True
        if self._serial is None:
            self._serial = self._read_serial()
        if self._serial != update.base:
            return False
        own = self._journal or self._open_journal()
        own.append_lines("".join(update.records).encode("utf-8"))
        self._serial = update.serial
        return True

    def _open_journal(self) -> journal.Journal:
        """Open it again: a master that ran here, or a demotion, may have replaced the file."""
        if self._journal is not None:
            self._journal.close()
        self._journal = journal.Journal(self._paths.journal_file)
        self._journal.open()
        return self._journal

    def _write_jobs(self, update: ReplicaUpdate) -> None:
        queue = self._paths.queue
        if not (
            update.files
            or update.parts
            or update.archive
            or update.remove
            or update.keep is not None
            or update.drained is not None
        ):
            return
        contents = Contents({name: text.encode() for name, text in update.files.items()})
        contents.add(update.parts)
        if contents:
            self._queue.write(contents)
        if update.archive or update.remove or update.keep is not None:
            with self._queue.hold_caught_up():
                self._move(update)
        if update.drained is True:
            files.write_atomic(queue / "drain", b"", mode=0o644)
        elif update.drained is False and files.remove(queue / "drain"):
            files.fsync_dir(queue)

    def _move(self, update: ReplicaUpdate) -> None:
        """Archive and remove job files."""
        queue = self._paths.queue
        touched: set[Path] = set()
        for name in update.archive:
            target = queue / "archive" / str(int(name[4:]) // constants.JOBS_PER_ARCHIVE_DIR)
            if not target.is_dir():
                files.ensure_dir(target, 0o750)
                files.fsync_dir(target.parent)
            if (queue / name).exists():
                (queue / name).rename(target / name)
                touched |= {queue, target}
        gone = set(update.remove)
        if update.keep is not None:
            kept = {f"job-{number}" for number in update.keep}
            gone |= {name for name in self._job_names() if name not in kept}
        for name in gone:
            if files.remove(queue / name):
                touched.add(queue)
        for directory in touched:
            files.fsync_dir(directory)

    @staticmethod
    def _prepare(queue: Path) -> None:
        for name in ("archive", "keys"):
            files.ensure_dir(queue / name, 0o750)
        version = queue / "version"
        if not version.exists():
            files.write_atomic(version, f"{constants.JOB_QUEUE_VERSION}\n")

    def replica_differing(self, manifest: dict[str, int]) -> list[str]:
        """Names of queue files whose content (CRC-32) is not as in the manifest."""
        wrong = []
        with self._lock:
            self._let_go()
            for name, crc in manifest.items():
                if not _QUEUE_FILE.fullmatch(name):
                    raise errors.ParameterError(f"{name!r:.80} is not a file of the job queue")
                try:
                    same = zlib.crc32((self._paths.queue / name).read_bytes()) == crc
                except FileNotFoundError:
                    same = False
                if not same:
                    wrong.append(name)
        return wrong


def _check_names(update: ReplicaUpdate) -> None:
    for name in (*update.files, *update.parts, *update.archive, *update.remove):
        if not _QUEUE_FILE.fullmatch(name):
            raise errors.ParameterError(f"{name!r:.80} is not a file of the job queue")

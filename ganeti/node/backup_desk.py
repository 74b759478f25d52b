"""Repositories that a node allows for backups, and the turns of backups on the node.

Directories are below those that ``backup-paths`` of this node lists. A repository of restic or borg
is one that a file in ``backup-repositories`` of this node describes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from ganeti import errors
from ganeti.backup import archive, definition, directory
from ganeti.backup.archive import Archive
from ganeti.backup.definition import Definition
from ganeti.backup.directory import Directory
from ganeti.backup.pace import Pace
from ganeti.backup.repository import Repository, Tell
from ganeti.base import files
from ganeti.model.backup import Manifest, is_name
from ganeti.node.context import NamedLocks, NodeContext
from ganeti.node.copying import Progress
from ganeti.rpc.backups import BackupPlace
from ganeti.storage import file_paths

#: Backups, restores and verifications that this node does at the same time; others wait.
PARALLEL = 2
#: Bytes that stay free where QEMU keeps what a guest overwrites: a guest whose disk is backed up
#: must never meet a full file system there.
RESERVE = 256 * 1024 * 1024
#: Seconds between two looks whether the master still wants what waits for its turn.
_LOOK = 1.0
#: Seconds until work of a master that has ended must have ended as well.
_SOON = 2.0
#: How the names of directories for restores and verifications end; no name of an instance does.
READ = "@read"


class Desk:
    """Gives backups their turn, their directories, and the word that they shall end."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._slots = threading.BoundedSemaphore(PARALLEL)
        self._locks = NamedLocks(context.clock)
        #: names of instances whose copying shall end
        self._ending: set[str] = set()

    def end(self, instance: str) -> None:
        """End what copies for an instance."""
        self._ending.add(instance)

    def _find_directory(self, repository: str) -> Path:
        """A directory that this node allows to be a repository.

        Raises:
            ParameterError: it does not.
        """
        paths = self._context.paths
        wanted = Path(paths.local(repository)) if repository else paths.backups
        if wanted == paths.backups:
            return wanted
        allowed = self._read_allowed()
        if ".." in wanted.parts or not any(files.is_inside(wanted, root) for root in allowed):
            raise errors.ParameterError(
                f"{repository} may not be a repository on this node: write it, or a directory above"
                f" it, into {paths.common(paths.backup_paths)} there"
            )
        return wanted

    def _read_allowed(self) -> tuple[Path, ...]:
        paths = self._context.paths
        try:
            text = files.read_text(paths.backup_paths)
        except FileNotFoundError:
            return ()
        except OSError as err:
            raise files.failure(err) from err
        found = file_paths.parse_allowed(text, str(paths.backup_paths))
        return tuple(Path(paths.local(str(each))) for each in found)

    def find_repository(self, repository: str, instance: str) -> Repository:
        """The backups of an instance; ParameterError for a repository that is not allowed."""
        if is_name(repository):
            context = self._context
            return Archive(self._load(repository), instance, context.clock, context.stopping.wait)
        return Directory(self._find_directory(repository), instance)

    def _load(self, repository: str) -> Definition:
        return definition.load(self._context.paths.backup_repositories / repository)

    def list_backups(self, repository: str, instance: str | None) -> list[Manifest]:
        """Backups of one instance or of all, the oldest of an instance first; GenericError."""
        if instance is not None:
            return self.find_repository(repository, instance).list_all()
        if is_name(repository):
            return archive.list_everything(self._load(repository))
        path = self._find_directory(repository)
        names = directory.list_instances(path)
        return [each for name in names for each in Directory(path, name).list_all()]

    @contextlib.contextmanager
    def take_turn(self, name: str, progress: Progress, purpose: str = "backup") -> Iterator[None]:
        """One at a time for an instance, and not too many on this node."""
        with self._locks.hold(name, purpose, _SOON):
            self._ending.discard(name)
            while not self._slots.acquire(timeout=_LOOK):
                self._check(name, progress)
            try:
                yield
            finally:
                self._slots.release()

    @contextlib.contextmanager
    def make_work(self, name: str) -> Iterator[Path]:
        """A directory of our own, which is removed afterwards."""
        path = self._context.paths.backup_work / name
        try:
            files.ensure_dir(path.parent, 0o700)
            files.ensure_dir(path, 0o700)
        except OSError as err:
            raise files.failure(err) from err
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def make_teller(self, name: str, progress: Progress, pace: Pace, work: Path | None) -> Tell:
        """Notes how far it is; raises when it shall end, or QEMU has no room for it."""

        def note(done: int, read: int) -> None:
            progress.add(done, zeros=not read)
            self._check(name, progress)
            if work is not None:
                _check_room(work)
            pace.note(read)

        return note

    @contextlib.contextmanager
    def read(
        self, found: Repository, place: BackupPlace, progress: Progress, *, writes: bool = False
    ) -> Iterator[tuple[Manifest, Path, Tell]]:
        """One backup, and a directory; with ``writes`` the file system of that may become full."""
        with (
            self.take_turn(place.instance, progress, "restore or verification"),
            self.make_work(f"{place.instance}{READ}") as work,
        ):
            tell = self.watch(found, place.instance, progress, work if writes else None)
            with found.lock(shared=True):
                yield found.find(place.id), work, tell

    def watch(
        self, found: Repository, instance: str, progress: Progress, work: Path | None = None
    ) -> Tell:
        """Have work in a repository end when it shall; how fast it is does not matter."""
        pace = Pace(0, self._context.clock, self._context.stopping.wait)
        tell = self.make_teller(instance, progress, pace, work)
        found.watch(lambda: tell(0, 0))
        return tell

    def _check(self, name: str, progress: Progress) -> None:
        if name in self._ending:
            raise errors.GenericError(f"the backup of {name} was ended as the user requested")
        term, _master = self._context.term.read_highest()
        if term != progress.term:
            # the job is lost, and with it the lock that kept others from the disks
            raise errors.GenericError(
                f"the backup of {name} was ended, because its master has ended"
            )
        progress.add(0)


def _check_room(work: Path) -> None:
    found = os.statvfs(work)
    free = found.f_bavail * found.f_frsize
    if free < RESERVE:
        raise errors.GenericError(
            f"the work was ended: only {free >> 20} MiB are left in {work} for what the guest"
            " writes meanwhile"
        )

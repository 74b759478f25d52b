"""A repository that is a directory of qcow2 files: each backup is a file for each disk, built on
the one before it.

::

    REPOSITORY/web1.example.com/20260131-020000.json     the backup: it is there, or there is none
                                20260131-020000-0.qcow2  what it added of disk 0
                                20260131-020000-0.sums   checksums of all of disk 0

``qemu-img convert`` of the qcow2 file is a restore by hand. What has no ``.json`` is the rest of a
backup that did not end; the next one removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganeti import errors
from ganeti.backup import copying, served, sums
from ganeti.backup.repository import Content, Look, Sink, Tell
from ganeti.backup.sums import Sums
from ganeti.base import files, process
from ganeti.base.text import plural
from ganeti.model import backup as model
from ganeti.model.backup import Manifest
from ganeti.net import nbd

_MODE, _DIRECTORY = 0o600, 0o700
_LOCK = ".lock"
#: End of the name of a manifest whose backup is being removed.
_GOING = ".removing"
#: Seconds for small works of qemu-img, and for joining two files.
_QUICK, _LONG = 60.0, 12 * 3600.0
_QCOW2 = b"QFI\xfb"


class Directory:
    """See :class:`ganeti.backup.repository.Repository`.

    The backups of one instance in a repository.

    Raises (all methods): GenericError when something in it is damaged or cannot be read.
    """

    def __init__(self, repository: Path, instance: str) -> None:
        self.label = str(repository)
        self.repository = repository
        self.instance = model.check_instance(instance)
        self.path = repository / self.instance

    def watch(self, look: Look) -> None:
        """Nothing to do: no program works for long without a client that is heard."""

    def list_all(self) -> list[Manifest]:
        """All backups, the oldest first; one whose file cannot be read says why."""
        return [each for backup in self._ids(".json") if (each := self._read_any(backup))]

    def _read_any(self, backup: str) -> Manifest | None:
        """One backup, maybe damaged; None when it is gone."""
        try:
            return self.find(backup)
        except errors.OpPrereqError:
            return None
        except errors.GenericError as err:
            return model.make_damaged(backup, self.instance, errors.text(err))

    def find(self, backup: str) -> Manifest:
        """One backup; OpPrereqError when there is none."""
        path = self._manifest(model.check_id(backup))
        try:
            return model.parse(files.read_text(path))
        except FileNotFoundError:
            raise errors.make_unknown_error(
                f"there is no backup {backup} of {self.instance} in {self.repository}",
            ) from None
        except OSError as err:
            raise errors.GenericError(f"cannot read {path}: {err.strerror}") from err
        except errors.GenericError as err:
            raise errors.GenericError(f"{path}: {errors.text(err)}") from err

    def newest(self) -> Manifest | None:
        """The last backup, maybe damaged; None without any."""
        ids = self._ids(".json")
        return self._read_any(ids[-1]) if ids else None

    def _ids(self, suffix: str) -> list[str]:
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        except OSError as err:
            raise errors.GenericError(f"cannot read {self.path}: {err.strerror}") from err
        found = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
        return sorted(filter(model.is_id, found))

    def _manifest(self, backup: str) -> Path:
        return self.path / f"{backup}.json"

    def disk(self, backup: str, index: int) -> Path:
        """The file with the content of a disk."""
        return self.path / f"{backup}-{index}.qcow2"

    def _sums(self, backup: str, index: int) -> Path:
        return self.path / f"{backup}-{index}.sums"

    def read_sums(self, manifest: Manifest, index: int) -> Sums:
        """Checksums of a disk at the time of a backup."""
        path, disk = self._sums(manifest.id, index), manifest.disks[index]
        try:
            return sums.unpack(path.read_bytes(), disk.size, disk.fingerprint)
        except OSError as err:
            raise errors.GenericError(f"cannot read {path}: {err.strerror}") from err
        except errors.GenericError as err:
            raise errors.GenericError(f"{path}: {errors.text(err)}") from err

    def check_chain(self, backup: str, index: int) -> None:
        """Refuse files that are built on something outside of the directory."""
        path: Path | None = self.disk(backup, index)
        seen: set[Path] = set()
        while path is not None:
            if path in seen:
                raise errors.GenericError(f"{path} is built on itself")
            seen.add(path)
            path = self._backing(path)

    def _backing(self, path: Path) -> Path | None:
        """The backing file of a file, by its header (docs/interop/qcow2.txt of QEMU)."""
        try:
            with path.open("rb") as stream:
                magic, _version, at, length = struct.unpack(">4sIQI", stream.read(20))
                stream.seek(at)
                name = os.fsdecode(stream.read(min(length, 1024))) if at else ""
        except (OSError, struct.error) as err:
            why = err.strerror if isinstance(err, OSError) else "it is cut off"
            raise errors.GenericError(f"cannot read {path}: {why}") from err
        if magic != _QCOW2 or "/" in name or ":" in name:
            raise errors.GenericError(f"{path} is not a file of a backup")
        return self.path / name if name else None

    def restore_disk(
        self, manifest: Manifest, index: int, target: Sink | None, work: Path, tell: Tell
    ) -> None:
        """Write the content of a disk, or only compare it with its checksums."""
        table = self.read_sums(manifest, index)
        with self.show_disk(manifest, index, work) as source:
            if target is None:
                copying.check(source, table, f"disk {index}", tell)
            else:
                copying.restore(source, target, table, tell)

    def place_disk(self, manifest: Manifest, index: int, work: Path, tell: Tell) -> Content:
        """The file of the backup itself: it shows what those that it is built on have, too."""
        self.restore_disk(manifest, index, None, work, tell)
        return Content(self.disk(manifest.id, index), "qcow2")

    @contextlib.contextmanager
    def show_disk(self, manifest: Manifest, index: int, work: Path) -> Iterator[nbd.Nbd]:
        """A connection that reads a disk."""
        self.check_chain(manifest.id, index)
        path = str(self.disk(manifest.id, index))
        with served.serve(path, "qcow2", work, contexts=[nbd.ALLOCATION]) as source:
            yield source

    # changes

    @contextlib.contextmanager
    def lock(self, *, shared: bool = False) -> Iterator[None]:
        """Nobody else changes the backups of this instance, on no node that locks the files.

        With ``shared`` others may read as well. Else what an interrupted change left is removed or
        completed first.

        Raises:
            GenericError: somebody does, or the repository is not there.
        """
        if not self.repository.is_dir():
            raise errors.GenericError(
                f"there is no repository {self.repository} on this node; mount it, or make the"
                " directory"
            )
        try:
            files.ensure_dir(self.path, _DIRECTORY)
            fd = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        except OSError as err:
            raise errors.GenericError(f"cannot use {self.path}: {err.strerror}") from err
        try:
            try:
                fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except OSError:
                raise errors.GenericError(
                    f"the backups of {self.instance} in {self.repository} are locked: a"
                    " backup, removal or restore is at work; try again when it has ended"
                ) from None
            if not shared:
                self._remove_leftovers()
            yield
        finally:
            os.close(fd)

    def _remove_leftovers(self) -> None:
        for backup in self._ids(_GOING):
            self._remove_files(backup)
        known = {*self._ids(".json"), *self._ids(_GOING)}
        for name in os.listdir(self.path):
            if name.endswith((".qcow2", ".sums")) and name.rpartition("-")[0] not in known:
                files.remove(self.path / name)

    def find_base(self, manifest: Manifest, index: int) -> Sums | None:
        """Checksums of a disk on which a new backup can be built."""
        self.check_chain(manifest.id, index)
        return self.read_sums(manifest, index)

    def find_chain(self, manifest: Manifest, index: int) -> tuple[str, ...]:
        """Nothing: each file names the one that it is built on."""
        return ()

    @contextlib.contextmanager
    def open_disk(
        self, backup: str, index: int, size: int, base: tuple[Manifest, int] | None, work: Path
    ) -> Iterator[Sink]:
        """Open a disk of a new backup for writing its changes."""
        below = self.disk(base[0].id, base[1]) if base is not None else None
        path = self.add_disk(backup, index, size, below)
        with served.serve(str(path), "qcow2", work, write=True) as target:
            yield target

    def add_disk(self, backup: str, index: int, size: int, base: Path | None) -> Path:
        """Make the file of a disk of a new backup, which shows what file ``base`` has; its path."""
        path = self.disk(backup, index)
        more: list[str] = []
        if base is not None:
            more = ["-b", base.name, "-F", "qcow2"]
        argv = ["qemu-img", "create", "-q", "-f", "qcow2", *more, path.name, str(size)]
        result = process.run(argv, timeout=_QUICK, cwd=self.path)
        if not result.ok:
            raise errors.GenericError(f"cannot make {path}: {result.explain()}")
        os.chmod(path, _MODE)
        return path

    def finish(self, manifest: Manifest, tables: Sequence[Sums]) -> None:
        """Make it a backup: all of its files are durable, then its manifest appears."""
        try:
            for index, table in enumerate(tables):
                files.write_atomic(self._sums(manifest.id, index), table.pack(), mode=_MODE)
                fd = os.open(self.disk(manifest.id, index), os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
        except OSError as err:
            raise errors.GenericError(
                f"cannot finish the backup in {self.path}: {err.strerror}"
            ) from err
        self.note(manifest)

    def note(self, manifest: Manifest) -> None:
        """Write or replace a manifest."""
        try:
            files.write_atomic(self._manifest(manifest.id), model.dump(manifest), mode=_MODE)
            files.fsync_dir(self.path)
        except OSError as err:
            raise files.failure(err) from err

    def discard(self, backup: str) -> None:
        """Remove what a backup that failed has written; no error when that fails, too."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self.path):
                if name.startswith(f"{backup}-"):
                    files.remove(self.path / name)

    def remove(self, backups: Sequence[str], tell: Tell) -> None:
        """Remove backups under the lock; what later ones are built on stays.

        It continues where an interruption left it.
        """
        for backup in backups:
            self._remove(model.check_id(backup))
            tell(0, 0)

    def _remove(self, backup: str) -> None:
        try:
            os.rename(self._manifest(backup), self.path / f"{backup}{_GOING}")
            files.fsync_dir(self.path)
        except OSError as err:
            raise errors.GenericError(f"cannot remove backup {backup}: {err.strerror}") from err
        self._remove_files(backup)

    def _remove_files(self, backup: str) -> None:
        """Files of later backups take over what is built on, one after the other.

        To commit a file into the one that it is built on changes nothing of what it shows, and then
        that one has the same content and takes its name.
        """
        try:
            for name in sorted(os.listdir(self.path)):
                if name.startswith(f"{backup}-") and name.endswith(".qcow2"):
                    self._remove_disk(self.path / name)
            for name in os.listdir(self.path):
                if name.startswith(f"{backup}-"):
                    files.remove(self.path / name)
            files.remove(self.path / f"{backup}{_GOING}")
        except OSError as err:
            raise errors.GenericError(f"cannot remove backup {backup}: {err.strerror}") from err

    def _remove_disk(self, path: Path) -> None:
        children = [
            each
            for each in self.path.glob("*.qcow2")
            if each != path and self._backing(each) == path
        ]
        if len(children) > 1:
            raise errors.GenericError(
                f"{plural(len(children), 'file')} are built on {path}; it must stay"
            )
        if not children:
            files.remove(path)
            return
        [child] = children
        argv = ["qemu-img", "commit", "-q", "-d", "-f", "qcow2", child.name]
        result = process.run(argv, timeout=_LONG, cwd=self.path)
        if not result.ok:
            raise errors.GenericError(f"cannot join {child} and {path}: {result.explain()}")
        os.rename(path, child)
        files.fsync_dir(self.path)


def list_instances(repository: Path) -> list[str]:
    """Names of the instances with backups in a repository, sorted.

    Raises:
        GenericError: it is not there, or cannot be read.
    """
    try:
        return sorted(
            entry.name
            for entry in os.scandir(repository)
            if entry.is_dir() and model.is_instance(entry.name)
        )
    except FileNotFoundError:
        raise errors.GenericError(
            f"there is no repository {repository} on this node; mount it, or make the directory"
        ) from None
    except OSError as err:
        raise errors.GenericError(f"cannot read {repository}: {err.strerror}") from err

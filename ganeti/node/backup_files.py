"""Node calls about single files of backups.

A helper guest mounts what is on the disks, so that no file system of a guest is read by this node.
It writes an archive to a disk of its own. The archive is kept as it is: nothing here unpacks it.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from ganeti import errors
from ganeti.backup.repository import Content, Repository, Tell
from ganeti.base import files
from ganeti.guest_os import helper
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.backup import Manifest, make_id
from ganeti.model.enums import DiskMode
from ganeti.node import helper_ends
from ganeti.node.backup_desk import Desk
from ganeti.node.context import NodeContext
from ganeti.node.copy_guests import CopyGuests, describe_copy
from ganeti.node.copying import Copies, Progress
from ganeti.node.helper_ends import Times
from ganeti.node.images import Images
from ganeti.rpc.backups import BackupPlace, FileRequest, FileResult
from ganeti.rpc.calls.backup_files import BackupFileCalls
from ganeti.rpc.objects import NodeDisk, NodeInstance
from ganeti.storage.file import describe_file

log = logging.getLogger(__name__)

#: Bytes that an archive may have more than the disks: headers, and holes of files.
_SURPLUS: Final = 1 << 30


class BackupFiles(BackupFileCalls):
    """Reads files of backups."""

    def __init__(
        self,
        context: NodeContext,
        images: Images,
        copies: Copies,
        desk: Desk,
        guests: CopyGuests,
    ) -> None:
        self._context = context
        self._images = images
        self._copies = copies
        self._desk = desk
        self._guests = guests

    def backup_files(self, place: BackupPlace, guest: NodeInstance, request: FileRequest) -> str:
        """Begin to read; ParameterError for a repository that is not allowed."""
        found = self._desk.find_repository(place.repository, place.instance)
        return self._copies.begin(
            lambda progress: self._read(found, place, guest, request, progress)
        )

    def backup_files_result(self, copy: str) -> FileResult:
        """Return the result of a copy, once; GenericError when it is lost."""
        found = self._copies.take_result(copy)
        if not isinstance(found, FileResult):
            raise errors.GenericError("the node daemon was restarted while it read the files")
        return found

    def _read(
        self,
        found: Repository,
        place: BackupPlace,
        guest: NodeInstance,
        request: FileRequest,
        progress: Progress,
    ) -> FileResult:
        with self._desk.read(found, place, progress, writes=True) as (manifest, work, tell):
            progress.size = manifest.size
            package = helper.pack_reading(len(manifest.disks), request.paths)
            disks = self._place_disks(found, manifest, work, tell)
            image = work / "image"
            self._images.put_in_file(request.image, image, progress)
            target = _make(work / "files.tar", manifest.size + _SURPLUS)
            own: list[tuple[NodeDisk, Content] | AttachedDisk] = [
                _describe(image),
                _describe(_make(work / "package", len(package), package)),
                AttachedDisk(describe_file(target, DiskMode.RW), str(target)),
            ]
            times = Times(request.startup_timeout, request.timeout)
            with self._guests.start(guest, [*own, *disks], work) as running:
                in_time = helper_ends.wait(
                    running.process, running.console, times, lambda: tell(0, 0), self._context.clock
                )
                text = running.console.read()
            helper_ends.judge("read", guest, text, times, self._context, in_time=in_time)
            return self._keep(place, target, helper.read_archive(text))

    def _place_disks(
        self, found: Repository, manifest: Manifest, work: Path, tell: Tell
    ) -> list[tuple[NodeDisk, Content]]:
        placed = []
        for index, disk in enumerate(manifest.disks):
            content = found.place_disk(manifest, index, work, tell)
            placed.append((describe_copy(disk, content, index), content))
        return placed

    def _keep(
        self, place: BackupPlace, written: Path, archive: helper.Archive | None
    ) -> FileResult:
        """Give an archive its name, without what is behind it on its disk."""
        directory = self._context.paths.restored_files
        path = directory / f"{place.instance}-{make_id(self._context.clock.now())}.tar"
        try:
            if archive is None or archive.size > written.stat().st_size:
                raise errors.OpExecError("the helper guest does not say how long its archive is")
            os.truncate(written, archive.size)
            files.ensure_dir(directory, 0o700)
            written.rename(path)
        except OSError as err:
            raise files.failure(err) from err
        log.info("read files of backup %s of %s", place.id, place.instance)
        return FileResult(path=str(path), files=archive.files, size=archive.size)


def _make(path: Path, size: int, data: bytes = b"") -> Path:
    """A new file of this size for root alone; FileError."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(data)
            stream.truncate(size)
    except OSError as err:
        raise files.failure(err) from err
    return path


def _describe(path: Path) -> tuple[NodeDisk, Content]:
    return describe_file(path, DiskMode.RW), Content(path, "raw")

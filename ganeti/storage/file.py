"""Template ``file``: a disk is a sparse regular file in a directory of its instance.

Nothing runs between the file and the hypervisor: ``assemble``, ``open`` and their opposites only
look. No method waits for more than the file system itself.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import msgspec

from ganeti import errors
from ganeti.model.enums import DiskMode, DiskTemplate
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.storage import file_paths
from ganeti.storage.interface import Device, Environment, PlanRequest, Traits
from ganeti.storage.system_errors import convert_os_errors

MIB = 1024 * 1024
#: Only the daemon and the hypervisor it starts may read a guest's data.
FILE_MODE = 0o600
#: Files that :meth:`FileDevice.plan` has named.
_PLANNED = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.file\.disk[0-9]+")
#: ioctl(2) that lets one file share the blocks of another (ioctl_ficlone(2)).
_FICLONE = 0x40049409
#: Its errors where that is not possible.
_CANNOT_SHARE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.EXDEV, errno.ENOSYS)
#: Another disk of the instance may remove the directory as empty before this one is in it.
_CREATE_ATTEMPTS = 5


def describe_file(path: Path, mode: DiskMode) -> NodeDisk:
    """A file as a disk that no configuration has. OSError when it is missing."""
    return NodeDisk(
        uuid=DiskUuid(str(uuid4())),
        dev_type=DiskTemplate.FILE,
        logical_id=("loop", str(path)),
        size=-(-path.stat().st_size // MIB),
        mode=mode,
    )


class _CannotShareError(Exception):
    """The file system has no reflinks."""


class FileParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """File disks have no parameters."""


class FileDevice(Device):
    """A regular file; ``logical_id`` is (driver, full path of the file).

    Every method checks the path first and raises FileStoragePathError when it is not allowed.
    """

    traits: ClassVar[Traits] = Traits(
        file_based=True, space_checked_as="file", directory="file_storage_dir"
    )
    params: ClassVar[type[msgspec.Struct]] = FileParams

    def __init__(self, disk: NodeDisk, env: Environment) -> None:
        super().__init__(disk, env)
        if len(disk.logical_id) != 2 or not isinstance(disk.logical_id[1], str):
            raise errors.BlockDeviceError(
                f"disk {disk.uuid}: a {disk.dev_type} disk is named by [driver, path],"
                f" not by {list(disk.logical_id)}"
            )

    @property
    def path(self) -> str:
        return str(self.disk.logical_id[1])

    def create(self, size: int, *, info: str = "") -> None:
        """Make a sparse file of ``size`` MiB, mode 0600, and its directory, mode 0750.

        ``info`` is not kept: a file has no place for it. The free space of the file system must
        hold the whole disk, although nothing of it is allocated yet.

        Raises:
            BlockDeviceError: the file exists, space is short, or the system refuses.
            FileStoragePathError: the path is not allowed.
        """
        if size <= 0:
            raise errors.BlockDeviceError(f"{self.path}: a disk of {size} MiB cannot be made")
        with convert_os_errors("create", self.path):
            for left in reversed(range(_CREATE_ATTEMPTS)):
                try:
                    self._create(size)
                    break
                except FileNotFoundError:
                    if not left:
                        raise
                except errors.BlockDeviceError:
                    self._remove_empty_directory(self.path)
                    raise

    def remove(self) -> None:
        """Delete the file, and its directory when that is empty then; done twice is fine."""
        with convert_os_errors("remove", self.path):
            try:
                with file_paths.open_parent(self.path, self.env) as (parent, name):
                    self._stat(parent, name)
                    os.unlink(name, dir_fd=parent)
                    os.fsync(parent)
            except FileNotFoundError:
                pass
            self._remove_empty_directory(self.path)

    def attach(self) -> bool:
        """Whether the file is there; BlockDeviceError when something else has its name."""
        with convert_os_errors("access", self.path):
            try:
                with file_paths.open_parent(self.path, self.env) as (parent, name):
                    self._stat(parent, name)
            except FileNotFoundError:
                return False
            return True

    def assemble(self) -> None:
        """Only checks that the file is there."""
        self._need()

    def shutdown(self) -> None:
        """Nothing to undo; the path is still checked."""
        file_paths.check_path(self.path, self.env)

    def open(self, *, exclusive: bool = True) -> None:
        """Only checks that the file is there: the hypervisor locks it while it runs."""
        self._need()

    def close(self) -> None:
        """Nothing to undo; the path is still checked."""
        file_paths.check_path(self.path, self.env)

    def grow(self, amount: int, *, dry_run: bool = False) -> None:
        """Make the file ``amount`` MiB longer; with ``dry_run`` only check that this can be done.

        Raises:
            BlockDeviceError: not there, negative amount, space is short, or the system refuses.
            FileStoragePathError: the path is not allowed.
        """
        if amount < 0:
            raise errors.BlockDeviceError(
                f"{self.path} cannot shrink by {-amount} MiB: disks can only grow"
            )
        with (
            convert_os_errors("grow", self.path),
            file_paths.open_parent(self.path, self.env) as (parent, name),
        ):
            old = self._stat(parent, name).st_size
            self._check_space(parent, amount)
            if dry_run:
                return
            fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                os.ftruncate(fd, old + amount * MIB)
                os.fsync(fd)
            finally:
                os.close(fd)

    def rename(self, new_id: Sequence[str]) -> None:
        """Move the file to the path of another logical id, on the same file system.

        Fine when that has been done already. The old directory goes when it is empty then, and
        ``self.disk`` has the new id afterwards.

        Raises:
            BlockDeviceError: neither file exists, the new one exists, or the system refuses.
            FileStoragePathError: one of the paths is not allowed.
        """
        target = type(self)(msgspec.structs.replace(self.disk, logical_id=tuple(new_id)), self.env)
        if target.path != self.path:
            self._move(target)
        self.disk = target.disk

    def snapshot(self, name: str, size: int) -> tuple[str, ...]:
        """Let another file in the same directory share the blocks of the disk (a reflink).

        ``size`` has no meaning here: what changes later takes room of the file system. A file of
        that name is replaced. Returns its logical id.

        Raises:
            BlockDeviceError: not there, or the file system cannot share blocks.
            FileStoragePathError: the path is not allowed.
        """
        name = name or f"{os.path.basename(self.path)}.snap"
        with (
            convert_os_errors("make a snapshot of", self.path),
            file_paths.open_parent(self.path, self.env) as (parent, own),
        ):
            if name == own or "/" in name:
                raise errors.BlockDeviceError(f"a snapshot of {self.path} needs another name")
            self._stat(parent, own)
            try:
                _share_blocks(parent, own, name)
            except _CannotShareError as err:
                raise errors.BlockDeviceError(
                    f"the file system of {self.path} cannot share blocks between files (XFS and"
                    " Btrfs can)"
                ) from err
        return self.plan_copy([str(part) for part in self.disk.logical_id], name)

    def status(self) -> BlockDevStatus:
        self._need()
        return BlockDevStatus(dev_path=self.path)

    @classmethod
    def plan(cls, request: PlanRequest) -> tuple[str, ...]:
        """``(driver, <dir>/<instance>/<uuid>.file.disk<index>)``.

        Raises:
            ParameterError: no directory, or an instance name that is not a plain file name.
        """
        name = request.instance_name
        if not request.file_dir:
            raise errors.ParameterError(
                f"no directory for the file disks of {name}: set the cluster's file storage"
                " directory or name one for the instance"
            )
        if not name or "/" in name or name in (".", ".."):
            raise errors.ParameterError(f"'{name}' cannot be the name of a directory")
        directory = request.file_dir.rstrip("/")
        file_name = f"{request.disk_uuid}.file.disk{request.index}"
        return (request.file_driver, f"{directory}/{name}/{file_name}")

    @classmethod
    def plan_copy(cls, logical_id: Sequence[str], name: str) -> tuple[str, ...]:
        """``(driver, <directory of the disk>/<name>)``."""
        driver, path = logical_id
        return (driver, f"{os.path.dirname(path)}/{name}")

    def _create(self, size: int) -> None:
        with file_paths.open_parent(self.path, self.env, create=True) as (parent, name):
            try:
                os.stat(name, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                self._check_space(parent, size)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(name, flags, FILE_MODE, dir_fd=parent)
            try:
                os.fchmod(fd, FILE_MODE)
                os.ftruncate(fd, size * MIB)
                os.fsync(fd)
                os.fsync(parent)
            except BaseException:  # an interrupt too: remove the unfinished disk and raise it
                os.unlink(name, dir_fd=parent)
                raise
            finally:
                os.close(fd)

    def _move(self, target: FileDevice) -> None:
        old, new = self.path, target.path
        with convert_os_errors(f"move to {new}", self.path):
            with file_paths.open_parent(new, self.env, create=True) as (new_parent, new_name):
                there = _exists(new_parent, new_name)
                try:
                    with file_paths.open_parent(old, self.env) as (old_parent, old_name):
                        self._stat(old_parent, old_name)
                        if there:
                            raise errors.BlockDeviceError(
                                f"cannot move {old} to {new}: that file exists already"
                            )
                        os.rename(old_name, new_name, src_dir_fd=old_parent, dst_dir_fd=new_parent)
                        os.fsync(old_parent)
                except FileNotFoundError:
                    if not there:
                        raise
                os.fsync(new_parent)
            self._remove_empty_directory(old)

    def _need(self) -> None:
        if not self.attach():
            raise errors.BlockDeviceError(
                f"disk file {self.path} does not exist: is its file system mounted?"
            )

    def _stat(self, parent: int, name: str) -> os.stat_result:
        """Facts about the file; FileNotFoundError when there is none."""
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            raise errors.BlockDeviceError(
                f"{self.path} is a {_kind(found.st_mode)}, not a regular file: it was not touched"
            )
        return found

    def _check_space(self, parent: int, needed: int) -> None:
        system = os.fstatvfs(parent)
        free = system.f_bavail * system.f_frsize // MIB
        if needed > free:
            raise errors.BlockDeviceError(
                f"needs {needed} MiB, {free} MiB free in {os.path.dirname(self.path)}"
            )

    def _remove_empty_directory(self, path: str) -> None:
        """Remove the directory of ``path`` unless it is in use or is an allowed directory."""
        directory = os.path.dirname(path)
        if os.path.realpath(directory) in {os.path.realpath(root) for root in self.env.file_roots}:
            return
        with (
            contextlib.suppress(FileNotFoundError),
            file_paths.open_parent(directory, self.env) as (parent, name),
        ):
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError as err:
                if err.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                    raise


def _share_blocks(parent: int, source: str, target: str) -> None:
    """Make a file of the same blocks.

    Raises:
        _CannotShareError: the file system cannot do that.
        OSError: it failed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target, dir_fd=parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    writing = os.open(target, flags, FILE_MODE, dir_fd=parent)
    try:
        reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            fcntl.ioctl(writing, _FICLONE, reading)
        finally:
            os.close(reading)
        os.fsync(writing)
        os.fsync(parent)
    except BaseException as err:  # an interrupt too: remove the new file
        os.unlink(target, dir_fd=parent)
        if isinstance(err, OSError) and err.errno in _CANNOT_SHARE:
            raise _CannotShareError from err
        raise
    finally:
        os.close(writing)


def _exists(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _kind(mode: int) -> str:
    for test, name in (
        (stat.S_ISDIR, "directory"),
        (stat.S_ISLNK, "symbolic link"),
        (stat.S_ISBLK, "block device"),
    ):
        if test(mode):
            return name
    return "special file"


def find_files(env: Environment) -> list[str]:
    """Files below the allowed directories that carry names of disks, as the cluster calls them.

    Links to directories are not followed. Blocks for a walk through all of them.
    """
    roots = {os.path.realpath(root): root for root in env.file_roots}
    return sorted(
        env.paths.common(root / Path(directory, name).relative_to(real))
        for real, root in roots.items()
        for directory, _below, names in os.walk(real)
        for name in names
        if _PLANNED.fullmatch(name)
    )

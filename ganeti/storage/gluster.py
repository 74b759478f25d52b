"""Template ``gluster``: a disk is a file on a volume of GlusterFS.

The volume is mounted on the node to make files; with access ``userspace`` the hypervisor opens
them by their address, else through the mount.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from ganeti import errors
from ganeti.base import files, process
from ganeti.base.json_types import JsonObject
from ganeti.rpc.objects import BlockDevStatus, NodeDisk
from ganeti.storage.interface import Device, Environment, PlanRequest, Traits
from ganeti.storage.system_errors import convert_os_errors

MIB = 1024 * 1024
TIMEOUT = 120.0
#: Directory of the volume that holds the disks.
DIRECTORY = "ganeti"
FILE_MODE = 0o600

_FILE = re.compile(rf"{DIRECTORY}/([A-Za-z0-9_][A-Za-z0-9_.-]*)")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_VOLUME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


class GlusterParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Parameters of template ``gluster``."""

    #: kernelspace or userspace
    access: str = "kernelspace"
    host: str = "127.0.0.1"
    port: int = 24007
    volume: str = "gv0"


class GlusterDevice(Device):
    """A file on the volume; ``logical_id`` is (driver, ``ganeti/<name>``)."""

    traits: ClassVar[Traits] = Traits(shared=True, directory="gluster_storage_dir")
    params: ClassVar[type[msgspec.Struct]] = GlusterParams

    def __init__(self, disk: NodeDisk, env: Environment) -> None:
        super().__init__(disk, env)
        found = _FILE.fullmatch(str(disk.logical_id[-1])) if len(disk.logical_id) == 2 else None
        if found is None:
            raise errors.BlockDeviceError(
                f"disk {disk.uuid}: a file on a Gluster volume is named by [driver,"
                f" {DIRECTORY}/name], not by {list(disk.logical_id)}"
            )
        self._name = found[1]
        given = {key: disk.params[key] for key in ("host", "port", "volume") if key in disk.params}
        self.place = GlusterParams(**given)
        if not _HOST.fullmatch(self.place.host) or not _VOLUME.fullmatch(self.place.volume):
            raise errors.BlockDeviceError(
                f"disk {disk.uuid}: {self.place.host}:{self.place.volume} is not a Gluster volume"
            )

    @property
    def path(self) -> str:
        return str(self.env.gluster_dir / DIRECTORY / self._name)

    def uri(self) -> str | None:
        if self.disk.params.get("access") != "userspace":
            return None
        return address(self.place, f"{DIRECTORY}/{self._name}")

    def create(self, size: int, *, info: str = "") -> None:
        """Make a sparse file of ``size`` MiB, mode 0600; ``info`` is not kept.

        Raises:
            BlockDeviceError: it exists, or the volume cannot be mounted or written.
        """
        if size <= 0:
            raise errors.BlockDeviceError(f"{self.path}: a disk of {size} MiB cannot be made")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with convert_os_errors("create", self.path), self._directory(create=True) as parent:
            self._check_space(parent, size)
            fd = os.open(self._name, flags, FILE_MODE, dir_fd=parent)
            try:
                os.ftruncate(fd, size * MIB)
                os.fsync(fd)
            except BaseException:  # an interrupt too: remove the unfinished disk and raise it
                os.unlink(self._name, dir_fd=parent)
                raise
            finally:
                os.close(fd)

    def remove(self) -> None:
        with (
            convert_os_errors("remove", self.path),
            contextlib.suppress(FileNotFoundError),
            self._directory() as parent,
        ):
            os.unlink(self._name, dir_fd=parent)

    def attach(self) -> bool:
        """Whether the file is there; mounts the volume to look."""
        with convert_os_errors("access", self.path):
            try:
                with self._directory() as parent:
                    found = os.stat(self._name, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                return False
        if not stat.S_ISREG(found.st_mode):
            raise errors.BlockDeviceError(f"{self.path} is not a regular file: it was not touched")
        return True

    def assemble(self) -> None:
        """Mount the volume; BlockDeviceError when the file is not on it."""
        self._need()

    def shutdown(self) -> None:
        """Nothing to undo: the mount is shared by all disks of the node."""

    def open(self, *, exclusive: bool = True) -> None:
        """Only checks that the file is there."""
        self._need()

    def close(self) -> None:
        """Nothing to undo."""

    def grow(self, amount: int, *, dry_run: bool = False) -> None:
        """Make the file ``amount`` MiB longer; with ``dry_run`` only look whether it can be.

        Raises:
            BlockDeviceError: not there, negative amount, or the volume refuses.
        """
        if amount < 0:
            raise errors.BlockDeviceError(
                f"{self.path} cannot shrink by {-amount} MiB: disks can only grow"
            )
        self._need()
        with convert_os_errors("grow", self.path), self._directory() as parent:
            self._check_space(parent, amount)
            if dry_run:
                return
            flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(self._name, flags, dir_fd=parent)
            try:
                os.ftruncate(fd, os.fstat(fd).st_size + amount * MIB)
                os.fsync(fd)
            finally:
                os.close(fd)

    def status(self) -> BlockDevStatus:
        self._need()
        return BlockDevStatus(dev_path=self.path)

    @classmethod
    def plan_copy(cls, logical_id: Sequence[str], name: str) -> tuple[str, ...]:
        """``(driver, ganeti/<name>)``."""
        return (logical_id[0], f"{DIRECTORY}/{name}")

    @classmethod
    def plan(cls, request: PlanRequest) -> tuple[str, ...]:
        """``(driver, ganeti/<uuid>.<index>)``"""
        return (request.file_driver, f"{DIRECTORY}/{request.disk_uuid}.{request.index}")

    @classmethod
    def plan_params(cls, request: PlanRequest) -> JsonObject:
        return dict(request.options)

    def _check_space(self, parent: int, needed: int) -> None:
        system = os.fstatvfs(parent)
        free = system.f_bavail * system.f_frsize // MIB
        if needed > free:
            raise errors.BlockDeviceError(
                f"{self.path} needs {needed} MiB, {free} MiB free on {source(self.place)}"
            )

    def _need(self) -> None:
        if not self.attach():
            raise errors.BlockDeviceError(f"disk file {self.path} does not exist")

    @contextlib.contextmanager
    def _directory(self, *, create: bool = False) -> Iterator[int]:
        """The directory of the disks on the mounted volume."""
        mount(self.place, self.env.gluster_dir)
        root = os.open(self.env.gluster_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(DIRECTORY, 0o750, dir_fd=root)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(DIRECTORY, flags, dir_fd=root)
            try:
                yield fd
            finally:
                os.close(fd)
        finally:
            os.close(root)


def mount(place: GlusterParams, directory: Path) -> None:
    """Mount a volume, unless it is mounted there. BlockDeviceError."""
    mounted = find_mounted_source(files.read_text(Path("/proc/self/mounts")), directory)
    if mounted is not None:
        if mounted != source(place):
            raise errors.BlockDeviceError(
                f"{mounted} is mounted on {directory}, not {source(place)}: unmount it"
            )
        return
    try:
        files.ensure_dir(directory, 0o755)
        process.run_checked(mount_argv(place, directory), timeout=TIMEOUT)
    except (OSError, errors.CommandError) as err:
        text = errors.text(err) if isinstance(err, errors.GanetiError) else str(err)
        raise errors.BlockDeviceError(f"cannot mount {source(place)}: {text}") from err


def source(place: GlusterParams) -> str:
    """Source of the mount, as in the list of mounts. Pure."""
    return f"{place.host}:/{place.volume}"


def mount_argv(place: GlusterParams, directory: Path) -> list[str]:
    """Pure."""
    options = f"server-port={place.port}"
    return ["mount", "-t", "glusterfs", "-o", options, source(place), str(directory)]


def find_mounted_source(text: str, directory: Path) -> str | None:
    """Find the source that is mounted on a directory; the last mount counts. Pure."""
    found = None
    for line in text.splitlines():
        what, where, *_rest = line.split(" ")
        if where.replace("\\040", " ") == str(directory):
            found = what
    return found


def address(place: GlusterParams, path: str) -> str:
    """The address that QEMU opens. Pure."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"gluster://{host}:{place.port}/{place.volume}/{path}"

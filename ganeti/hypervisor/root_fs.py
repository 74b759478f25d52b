"""The file system on the first disk of an instance, mounted on the node (chroot, lxc).

The root is the first partition of the disk, or the whole disk when it has no table of partitions.
A file, and a partition, is mounted through a loop device that the kernel frees with the mount.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base import files, process, retry
from ganeti.hypervisor import loops, mounts, occupants
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import DiskMode

log = logging.getLogger(__name__)

#: Programs that must be on the node.
PROGRAMS = ("mount", "umount", "partx")

_SECTOR = 512
_NO_TABLE = "failed to read partition table"
_QUICK = 30.0
#: Seconds for reading the journal of a file system, and for writing what is not on disk yet.
_MOUNT = 120.0
_UMOUNT = 300.0
#: Seconds that processes get to be gone after they were killed.
_KILL = 30.0
#: Seconds until a disk is free after the last mount of it went.
_FREE = 10.0


@dataclass(frozen=True)
class Part:
    """The place of a partition, in bytes."""

    offset: int
    size: int


def parse_partitions(text: str) -> list[Part]:
    """Partitions by ``partx --raw --noheadings --output START,SECTORS``.

    Raises:
        HypervisorError: a line has another form.
    """
    return [_part(line) for line in text.splitlines()]


def _part(line: str) -> Part:
    words = line.split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise errors.HypervisorError(f"partx printed a line of an unknown form: {line[:120]!r}")
    return Part(int(words[0]) * _SECTOR, int(words[1]) * _SECTOR)


def mount_argv(
    path: str, part: Part | None, point: Path, *, device: bool, read_only: bool
) -> list[str]:
    """How a disk is mounted; ``device``: it is not a file."""
    options = ["ro"] if read_only else []
    if part is not None or not device:
        options.append("loop")
    if part is not None:
        options += [f"offset={part.offset}", f"sizelimit={part.size}"]
    chosen = ["-o", ",".join(options)] if options else []
    return ["mount", *chosen, "--", path, str(point)]


def place(directory: Path, name: str) -> Path:
    """Return the mount point of a root as the kernel names it: without symbolic links."""
    return directory.resolve() / name


def find_root_disk(name: str, disks: Sequence[AttachedDisk]) -> AttachedDisk:
    """The disk that has the root.

    Raises:
        HypervisorError: the instance has none, or only an address.
    """
    if not disks:
        raise errors.HypervisorError(
            f"instance {name} has no disk; its first disk must hold the file system it runs in"
        )
    if not disks[0].path:
        raise errors.HypervisorError(
            f"disk 0 of instance {name} has no device on this node (only the address"
            f" {disks[0].uri}), so its file system cannot be mounted; set access=kernelspace"
        )
    return disks[0]


def is_mounted(point: Path) -> bool:
    """Whether something is mounted at a directory."""
    return mounts.find_mount(point, mounts.read()) is not None


def mount(disk: AttachedDisk, point: Path) -> None:
    """Mount the root of a disk at a directory, which is made.

    Raises:
        HypervisorError: no such disk, no file system on it, or mount's own words.
    """
    try:
        device = stat.S_ISBLK(os.stat(disk.path).st_mode)
    except OSError as err:
        raise errors.HypervisorError(f"cannot use disk {disk.path}: {err.strerror}") from err
    _directory(point)
    argv = mount_argv(
        disk.path,
        _root_part(disk.path),
        point,
        device=device,
        read_only=disk.disk.mode is DiskMode.RO,
    )
    result = process.run(argv, timeout=_MOUNT)
    if not result.ok:
        with contextlib.suppress(OSError):
            point.rmdir()
        raise errors.HypervisorError(
            f"{result.explain()}; has the OS definition made a file system on disk 0?"
        )


def _directory(point: Path) -> None:
    try:
        files.ensure_dir(point.parent, 0o711)
        files.ensure_dir(point, 0o700)
        if point.is_symlink():
            raise errors.HypervisorError(f"{point} is a symbolic link; remove it")
    except OSError as err:
        raise errors.HypervisorError(f"cannot make directory {point}: {err.strerror}") from err


def _root_part(path: str) -> Part | None:
    """The first partition, None when there is no table."""
    argv = ["partx", "--raw", "--noheadings", "--output", "START,SECTORS", "--", path]
    result = process.run(argv, timeout=_QUICK)
    if not result.ok:
        if _NO_TABLE in result.stderr:
            return None
        raise errors.HypervisorError(result.explain())
    parts = parse_partitions(result.stdout)
    if not parts:
        raise errors.HypervisorError(
            f"disk {path} has a table of partitions but no partition in it; its first partition,"
            " or all of it without a table, must hold the file system"
        )
    return parts[0]


def release(point: Path) -> None:
    """End every process that uses a root, unmount all that is in it, remove the directory.

    Returns when the disk is free. Idempotent.

    Raises:
        HypervisorError: processes that cannot be ended, umount's own words, or somebody else's
            mount namespace still has the disk mounted.
    """
    found = mounts.tree(point, mounts.read())
    if found:
        occupants.kill(point, _KILL)
        # Mounts that a guest bound from the node could take the node's with them.
        _run(["mount", "--make-rprivate", "--", str(point)], _QUICK)
        # Killed processes may have had mounts made until the end.
        found = mounts.tree(point, mounts.read())
        roots = [_Root.from_mount(entry) for entry in found if entry.point == str(point)]
        for entry in reversed(found):
            _run(["umount", "--no-canonicalize", "--", entry.point], _UMOUNT)
        for root in roots:
            _wait_free(root)
    try:
        point.rmdir()
    except FileNotFoundError:
        return
    except OSError as err:
        raise errors.HypervisorError(
            f"cannot remove {point}: {err.strerror}; inspect and remove its contents"
        ) from err


def _run(argv: list[str], timeout: float) -> None:
    result = process.run(argv, timeout=timeout)
    if not result.ok:
        raise errors.HypervisorError(result.explain())


@dataclass(frozen=True)
class _Root:
    """The file system that was mounted, to tell it from a later one with the same number."""

    device: str
    source: str
    #: file behind a loop device
    backing: str | None

    @classmethod
    def from_mount(cls, mount: mounts.Mount) -> _Root:
        return cls(mount.device, mount.source, loops.backing(mount.source))

    def is_reused(self) -> bool:
        """Whether its loop device belongs to another file, or to none, by now."""
        return self.backing is not None and loops.backing(self.source) != self.backing


def _wait_free(root: _Root) -> None:
    """Wait until no mount namespace has a file system; it is written to the end then.

    A namespace is given up in the background after its last process went, which nobody tells.
    """

    def is_gone() -> bool | None:
        return True if root.is_reused() or not _holders(root.device) else None

    if not retry.retry_until(is_gone, timeout=_FREE):
        raise errors.HypervisorError(
            f"{root.source} is unmounted, but processes with mount namespaces of their own still"
            f" have it: {', '.join(_holders(root.device)[:5])}; end them"
        )


def _holders(device: str) -> list[str]:
    """A process of each other mount namespace that has file systems of a device."""
    seen = {os.readlink("/proc/self/ns/mnt")}
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, errors.HypervisorError):  # it ended meanwhile
            namespace = os.readlink(f"/proc/{entry}/ns/mnt")
            if namespace not in seen:
                mounted = mounts.read(Path(f"/proc/{entry}/mountinfo"))
                seen.add(namespace)
                if any(mount.device == device for mount in mounted):
                    found.append(entry)
    return found

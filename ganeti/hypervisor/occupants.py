"""Processes that use a directory tree of mounts: finding and ending them.

A process uses a mount when its root, its working directory, its program or an open file is on it.
Mounts are told apart by their number, never by device: a guest may have mounted the node's ``/dev``
or ``/proc`` in its own tree, and nobody who uses those elsewhere may be touched.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.hypervisor import mounts

_MNT_ID = re.compile(r"^mnt_id:\s*(\d+)$", re.MULTILINE)
_PROC = Path("/proc")
#: Scans that may find new processes while all those found are stopped.
_ROUNDS = 20


@dataclass(frozen=True)
class Process:
    """A process that is held by a descriptor, so that its number cannot become another's."""

    pid: int
    fd: int
    name: str

    def send(self, number: signal.Signals) -> None:
        """Send a signal; no error when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, number)


@contextlib.contextmanager
def find_processes(point: Path) -> Iterator[list[Process]]:
    """Processes that use what is mounted at or below a directory, but for this one."""
    found: list[Process] = []
    try:
        _add(found, point)
        yield found
    finally:
        for process in found:
            os.close(process.fd)


def names(point: Path) -> list[str]:
    """``pid (program)`` of each process that uses a directory, for messages."""
    with find_processes(point) as found:
        return [f"{process.pid} ({process.name})" for process in found]


def wait_gone(point: Path, timeout: float) -> bool:
    """Wait until no process uses a directory; False after ``timeout`` seconds."""
    end = Deadline(timeout)
    while True:
        with find_processes(point) as found:
            if not found:
                return True
            if not _wait(found, end):
                return False


def ask(point: Path) -> None:
    """Send SIGTERM to each process that uses a directory."""
    with find_processes(point) as found:
        for process in found:
            process.send(signal.SIGTERM)
            process.send(signal.SIGCONT)


def kill(point: Path, timeout: float) -> None:
    """End each process that uses a directory; blocks up to ``timeout`` seconds.

    They are stopped first, so that none can start another one meanwhile.

    Raises:
        HypervisorError: some are still there, by number and name.
    """
    end = Deadline(timeout)
    with find_processes(point) as found:
        for _ in range(_ROUNDS):
            for process in found:
                process.send(signal.SIGSTOP)
            if not _add(found, point):
                break
        for process in found:
            process.send(signal.SIGKILL)
        _wait(found, end)
    left = names(point)
    if left:
        raise errors.HypervisorError(
            f"processes in {point} cannot be ended: {', '.join(left[:5])};"
            " they wait for a disk or a network file system"
        )


def _wait(processes: Iterable[Process], end: Deadline) -> bool:
    """Wait until all of them ended; False when the time is over."""
    for process in processes:
        poll = select.poll()
        poll.register(process.fd, select.POLLIN)
        if not poll.poll(int(end.left * 1000)):
            return False
    return True


def _add(found: list[Process], point: Path) -> bool:
    """Append those that are not in the list yet; whether there were any."""
    own = mounts.read()
    here = mounts.find_mount(point, own)
    numbers = _Numbers({mount.id for mount in mounts.tree(point, own)}, here)
    known = {process.pid for process in found}
    before = len(found)
    for entry in os.listdir(_PROC):
        if not entry.isdigit() or int(entry) in known or int(entry) in (1, os.getpid()):
            continue
        pid = int(entry)
        with contextlib.suppress(OSError):
            if not _uses(pid, numbers):
                continue
            fd = os.pidfd_open(pid)
            # The number may have become another process's before it was opened.
            if _uses(pid, numbers):
                found.append(Process(pid, fd, _name(pid)))
            else:
                os.close(fd)
    return len(found) > before


class _Numbers:
    """Numbers of the mounts, also of their copies in mount namespaces that guests made."""

    def __init__(self, own: set[int], here: mounts.Mount | None) -> None:
        self._own = own
        self._device = here.device if here else None
        self._by_namespace = {os.readlink("/proc/self/ns/mnt"): own}

    def find_numbers(self, pid: int) -> set[int]:
        namespace = os.readlink(f"/proc/{pid}/ns/mnt")
        if namespace not in self._by_namespace:
            mounted = mounts.read(_PROC / str(pid) / "mountinfo")
            self._by_namespace[namespace] = self._own | {
                mount.id for mount in mounted if mount.device == self._device
            }
        return self._by_namespace[namespace]


def _uses(pid: int, numbers: _Numbers) -> bool:
    """OSError when it ended meanwhile."""
    base = f"/proc/{pid}"
    try:
        wanted = numbers.find_numbers(pid)
    except errors.HypervisorError:
        return False  # it ended meanwhile
    if not wanted:
        return False
    if any(_mount_of(f"{base}/{link}") in wanted for link in ("root", "cwd", "exe")):
        return True
    return any(_read_mount_id(f"{base}/fdinfo/{fd}") in wanted for fd in os.listdir(f"{base}/fd"))


def _mount_of(link: str) -> int | None:
    """Number of the mount that a link of /proc leads to; opens nothing but the place itself."""
    try:
        fd = os.open(link, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None  # a thread of the kernel has no program
    try:
        return _read_mount_id(f"/proc/self/fdinfo/{fd}")
    finally:
        os.close(fd)


def _read_mount_id(fdinfo: str) -> int | None:
    try:
        match = _MNT_ID.search(Path(fdinfo).read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None  # closed meanwhile
    return int(match[1]) if match else None


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()

"""The process of a guest: is it the one we started, what does it use, how is it ended."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from ganeti.base import process, retry

_TICKS = os.sysconf("SC_CLK_TCK")


def is_ours(pid: int, pid_file: Path) -> bool:
    """Whether a process is the QEMU that was started with this pid file."""
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    try:
        return argv[argv.index(b"-pidfile") + 1] == os.fsencode(pid_file)
    except (ValueError, IndexError):
        # A zombie has no command line; so has not any other program this option.
        return False


def find(pid_file: Path) -> int | None:
    """The process that was started with this pid file, also when the file is gone.

    Looks at all processes of the node: some 5 ms.
    """
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return next((pid for pid in pids if is_ours(pid, pid_file)), None)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process, user and system; 0 when it is gone."""
    fields = _stat(pid)
    if not fields:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def is_zombie(pid: int) -> bool:
    """Whether a process has ended, and its parent has not taken note of that."""
    return _stat(pid)[:1] == [b"Z"]


def _stat(pid: int) -> list[bytes]:
    """Fields of /proc/<pid>/stat from the state on; none when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def measure_resident(pid: int) -> int:
    """MiB of memory that a process really has; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)


def kill(pid: int, pid_file: Path, timeout: float) -> bool:
    """SIGKILL a guest's process, which must still be the one of the pid file; False: it lives.

    Blocks until the process is gone, ``timeout`` seconds at most.
    """
    send(pid, pid_file, signal.SIGKILL)
    return process.wait_exit(pid, timeout)


def send(pid: int, pid_file: Path, number: signal.Signals) -> bool:
    """Send a signal to a guest's process, which must still be the one of the pid file."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        # The descriptor pins the process; checked after that, it cannot be another one.
        if not is_ours(pid, pid_file):
            return False
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def wait_stopped(pid: int, timeout: float) -> bool:
    """Wait until all threads of a process that was sent SIGSTOP have stopped, or it is gone."""

    def all_stopped() -> bool | None:
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            states = [(task / "stat").read_bytes().rpartition(b")")[2].split()[0] for task in tasks]
        except OSError:
            # A thread or all of it has just ended.
            return None if process.is_alive(pid) else True
        return True if all(state in (b"T", b"Z", b"X") for state in states) else None

    return retry.retry_until(all_stopped, timeout=timeout, largest=0.02) is True


def command_line(pid: int) -> tuple[str, ...]:
    """Arguments of a process; none when it is gone."""
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in data.removesuffix(b"\0").split(b"\0"))


def start_time(pid: int) -> float:
    """When a process began, in seconds since 1970; 0 when it is gone."""
    fields = _stat(pid)
    if not fields:
        return 0.0
    boot = next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
        if line.startswith("btime")
    )
    return boot + int(fields[19]) / _TICKS

"""External programs: argument lists only, always a time limit, whole process group killed."""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from ganeti import errors, paths
from ganeti.base import patience
from ganeti.base.clock import Deadline

#: ``PATH`` of programs started by the daemons unless told otherwise.
SAFE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Seconds a killed program gets to be gone.
KILL_WAIT = 1.0


def search_path() -> str:
    """Directories where programs are looked for.

    A cluster inside a directory looks into each node's own ``/usr/local/sbin`` first, so a node
    can have storage tools of its own.
    """
    if not paths.is_rooted():
        return SAFE_PATH
    return f"{paths.current().under('/usr/local/sbin')}:{SAFE_PATH}"


@dataclass(frozen=True)
class Result:
    """The result of a program: exit code (negative: signal), both outputs as text."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out

    def explain(self) -> str:
        """One line: the command, how it ended, the end of its output."""
        how = "timed out" if self.timed_out else f"exit code {self.code}"
        if self.code < 0 and not self.timed_out:
            how = f"signal {-self.code}"
        tail = (self.stderr or self.stdout).strip().splitlines()[-3:]
        return f"{shlex.join(self.argv)}: {how}" + (f": {' | '.join(tail)}" if tail else "")


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    input: bytes | None = None,
    log: Path | None = None,
    most: int | None = None,
    user: pwd.struct_passwd | None = None,
) -> Result:
    """Run a program to its end; blocks at most ``timeout`` seconds, and some more to kill it.

    The end is that of the program and of both outputs: something that it left in the background
    with its outputs is waited for, too. When the time is over its process group is killed.
    ``timeout`` is scaled for slow machines (see :mod:`ganeti.base.patience`).
    ``env`` replaces the environment (default: LC_ALL=C and PATH from :func:`search_path` only).
    With ``log`` both outputs are appended to that file and ``stdout`` of the result is empty.
    With ``most`` ``stdout`` has both outputs in their order, and no more bytes than that.
    ``user`` is whom it runs as, without other groups; only root can become another one.

    Raises:
        CommandError: the program cannot be started (missing, not executable, a zero byte in
            its words).
    """
    environment = {"PATH": search_path(), "LC_ALL": "C"} if env is None else dict(env)
    with contextlib.ExitStack() as stack:
        out: int = subprocess.PIPE
        err: int = subprocess.PIPE
        if log is not None:
            out = stack.enter_context(log.open("ab")).fileno()
            err = subprocess.STDOUT
        if most is not None:
            err = subprocess.STDOUT
        try:
            child = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=environment,
                cwd=cwd,
                start_new_session=True,
                **_identity(user),
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise errors.CommandError(f"cannot run {argv[0]}: {reason}") from error
        if most is None:
            stdout, stderr, timed_out = _communicate(child, input, patience.scale(timeout))
        else:
            (stdout, timed_out), stderr = _read_some(child, most, patience.scale(timeout)), None
    return Result(
        tuple(argv),
        -signal.SIGKILL if child.returncode is None else child.returncode,
        (stdout or b"").decode("utf-8", "replace"),
        (stderr or b"").decode("utf-8", "replace"),
        timed_out,
    )


def _communicate(
    child: subprocess.Popen[bytes], data: bytes | None, timeout: float
) -> tuple[bytes | None, bytes | None, bool]:
    try:
        out, err = child.communicate(data, timeout)
    except subprocess.TimeoutExpired:
        kill_group(child.pid)
        return *_read_rest(child), True
    except BaseException:  # an interrupt too: kill the program and raise it
        kill_group(child.pid)
        _read_rest(child)
        raise
    return out, err, False


def _read_some(child: subprocess.Popen[bytes], most: int, timeout: float) -> tuple[bytes, bool]:
    """The begin of what a program writes, and whether its time was over; the rest is dropped."""
    assert child.stdout is not None
    end = Deadline(timeout)
    kept, dropped, open_ = bytearray(), 0, True
    poller = select.poll()
    poller.register(child.stdout, select.POLLIN)
    with child.stdout as stream:
        while open_ and poller.poll(end.left * 1000):
            data = os.read(stream.fileno(), 1 << 16)
            open_ = bool(data)
            room = most - len(kept)
            kept += data[:room]
            dropped += len(data[room:])
    timed_out = open_ or not _ends(child, end.left)
    if timed_out:
        kill_group(child.pid)
        _ends(child, KILL_WAIT)
    if dropped:
        kept += f"\n[{dropped} bytes left out]\n".encode()
    return bytes(kept), timed_out


def _ends(child: subprocess.Popen[bytes], timeout: float) -> bool:
    """Wait for a child; False when it still runs after so many seconds."""
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        return False
    return True


class _Identity(TypedDict, total=False):
    """Arguments of Popen by which a program runs as a user."""

    user: int
    group: int
    extra_groups: list[int]


def _identity(user: pwd.struct_passwd | None) -> _Identity:
    if user is None or user.pw_uid == os.geteuid():
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _read_rest(child: subprocess.Popen[bytes]) -> tuple[bytes | None, bytes | None]:
    """The output of a killed program; takes at most twice ``KILL_WAIT`` seconds."""
    try:
        return child.communicate(timeout=KILL_WAIT)
    except subprocess.TimeoutExpired as late:
        # Something that left the process group still has the outputs open: nobody reads on.
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        # A program in an uninterruptible system call cannot even be killed.
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(KILL_WAIT)
        return late.output, late.stderr


def run_checked(argv: Sequence[str], **kwargs: object) -> Result:
    """Like :func:`run`; raises CommandError when the program fails or times out."""
    result = run(argv, **kwargs)  # type: ignore[arg-type]
    if not result.ok:
        raise errors.CommandError(result.explain())
    return result


def kill_group(pid: int) -> None:
    """SIGKILL a process group; no error when it is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def wait_exit(pid: int, timeout: float) -> bool:
    """Wait until a process that need not be our child ends; False after ``timeout`` seconds.

    Waits on a pidfd, so it returns at once when the process ends.
    """
    import select

    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if poll.poll(max(0, int(timeout * 1000))):
            return True
        return not is_alive(pid)
    finally:
        os.close(fd)

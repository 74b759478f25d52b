"""Start and stop of every daemon: one copy only, signals, background, readiness."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import pwd
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType

from ganeti import constants, errors
from ganeti.base import files, process, retry

#: Seconds in which a lock that nobody living holds must become free.
PROBE_WAIT = 0.5
#: New objects after which the collector looks at them, and how often it looks at older ones.
COLLECT_AFTER = (100_000, 10, 20)
#: ``M_ARENA_MAX`` of mallopt(3) of glibc
_M_ARENA_MAX = -8
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_PID = re.compile("[1-9][0-9]{0,9}")


class PidFile:
    """A locked file with the pid; the lock, not the number, says whether the daemon runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = files.FileLock(path, 0o644)

    def acquire(self) -> None:
        """Take the lock and write our pid.

        Raises:
            PidFileLockError: another copy runs; the text has its pid.
        """
        files.ensure_dir(self.path.parent, 0o775)
        # A process that asks whether the daemon runs has the lock for a moment (see running_pid).
        retry.retry_until(self._try_lock, timeout=PROBE_WAIT)
        if not self._lock.held:
            self._refuse()
        fd = self._lock.fileno()
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)

    def _try_lock(self) -> bool | None:
        try:
            self._lock.acquire()
        except errors.LockError:
            pid = read_pid(self.path)
            if pid is not None and process.is_alive(pid):
                self._refuse()
            return None
        return True

    def _refuse(self) -> None:
        pid = read_pid(self.path)
        raise errors.PidFileLockError(f"already running (pid {pid or 'unknown'}, lock {self.path})")

    def release(self) -> None:
        """Free the lock and empty the file. Idempotent."""
        if self._lock.held:
            with contextlib.suppress(OSError):
                os.ftruncate(self._lock.fileno(), 0)
        self._lock.release()


def read_pid(path: Path) -> int | None:
    """The pid in a pid file, or None; says nothing about whether it still runs."""
    try:
        text = files.read_text(path).strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if _PID.fullmatch(text) else None


def running_pid(path: Path) -> int | None:
    """The pid of the daemon that holds a pid file's lock, or None when nobody does."""
    return read_pid(path) if files.is_locked(path) else None


class StopSignal:
    """SIGTERM and SIGINT end :meth:`wait`; SIGHUP calls ``on_hup``. For the main thread only.

    The interpreter itself writes each signal into a pipe when it arrives. A handler in Python
    could not: one that comes just before ``read`` begins would only run after ``read`` ended.
    """

    def __init__(self, on_hup: Callable[[], None] | None = None) -> None:
        #: set once a stop was requested (after a signal by the thread in :meth:`wait`)
        self.event = threading.Event()
        self._asked = False
        self._on_hup = on_hup
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)

    def install(self) -> None:
        """Catch the signals from now on."""
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (*_STOP_SIGNALS, signal.SIGHUP):
            signal.signal(number, self._note_signal)

    def _note_signal(self, number: int, _frame: FrameType | None) -> None:
        # May interrupt anything, so it takes no lock. Needed only when the pipe was full.
        if number in _STOP_SIGNALS:
            self._asked = True

    def ask(self) -> None:
        """Ask for the stop as SIGTERM does; from any thread."""
        self._asked = True
        self.event.set()
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, bytes([signal.SIGTERM]))

    def wait(self) -> None:
        """Block until a stop signal came or :meth:`ask` was called; handles SIGHUP meanwhile.

        An error of ``on_hup`` is logged and does not end the daemon.
        """
        while not self._asked:
            number = os.read(self._reader, 1)[0]
            if number in _STOP_SIGNALS:
                self._asked = True
            elif number == signal.SIGHUP and self._on_hup is not None:
                try:
                    self._on_hup()
                except Exception:  # a log that cannot be opened must not end the daemon
                    logging.exception("SIGHUP could not be handled")
        self.event.set()


def become(user: str, own: Iterable[Path]) -> None:
    """Give up root for a user, for good; the files in ``own`` become that user's before.

    Raises:
        GenericError: there is no such user.
        OSError: a file cannot be given away, or we are not root.
    """
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise errors.GenericError(f"There is no user '{user}'") from None
    for path in own:
        with contextlib.suppress(FileNotFoundError):
            os.chown(path, entry.pw_uid, -1, follow_symlinks=False)
    os.initgroups(user, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


def tune_collector() -> None:
    """Let the collector look at new objects only, and only after many; call it when ready.

    Answers to large queries are made of tens of thousands of small lists, none of them in a cycle;
    with the usual thresholds 40% of the time of such a query went into looking for some.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def limit_arenas() -> None:
    """Let all threads share two heaps of the C library; call it before threads are started.

    By default each thread gets one of its own, up to eight for each core, and each keeps what was
    once needed there. Nothing happens with another C library.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_ARENA_MAX, 2)


def give_back_memory() -> None:
    """Return freed memory that the C library keeps to the system; takes some milliseconds."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def serve(
    stop: StopSignal, background: Background, probe: Callable[[], object], last_line: str
) -> None:
    """Report that the daemon is ready, and block until it is told to stop, which is logged.

    ``probe`` is that of :func:`watchdog`.
    """
    tune_collector()
    background.report_ready()
    with watchdog(probe):
        stop.wait()
    logging.info("%s", last_line)


class Background:
    """Go to the background, but let the caller wait until the daemon is ready or has failed.

    The parent exits with 0 when the child reports ready, else prints the child's message on
    standard error and exits with the code that the child gave.
    """

    def __init__(self) -> None:
        self._pipe: int | None = None

    def fork(self) -> None:
        """Call before any thread is started. Returns in the daemon only."""
        reader, writer = os.pipe()
        if os.fork():
            os.close(writer)
            _wait_for_child(reader)
        os.close(reader)
        os.setsid()
        if os.fork():
            os._exit(0)
        self._pipe = writer
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)

    def report_ready(self) -> None:
        """Tell the caller, and systemd when it started us, that requests are served."""
        self._report(b"0\n")
        _notify_systemd("READY=1")

    def report_failure(self, message: str, code: int = 1) -> None:
        """Tell the caller why the daemon does not run; prints it when in the foreground."""
        if self._pipe is None:
            print(message, file=sys.stderr)
        self._report(f"{code}\n{message}".encode())
        explain_end(message, code)

    def _report(self, data: bytes) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.write(self._pipe, data)
            os.close(self._pipe)
            self._pipe = None


def explain_end(message: str, code: int) -> None:
    """Tell systemd why a daemon ends before it is ready.

    With nothing to do on this node it counts as ready first: for systemd a daemon that ends before
    has failed, whatever its exit code is, and would be started again and again.
    """
    is_needed = code not in (constants.EXIT_NOTCLUSTER, constants.EXIT_NOTMASTER)
    status = f"STATUS={' '.join(message.splitlines())}"
    _notify_systemd(status if is_needed else f"READY=1\n{status}")


def _wait_for_child(reader: int) -> None:
    with os.fdopen(reader, "rb") as stream:
        data = stream.read().decode("utf-8", "replace")
    code, _, message = data.partition("\n")
    if not code:
        message, code = "the daemon died while starting; see its log", "1"
    if message:
        print(message, file=sys.stderr)
    os._exit(int(code))


@contextlib.contextmanager
def watchdog(probe: Callable[[], object]) -> Iterator[None]:
    """Report to systemd inside the block that the daemon answers, if its unit wants that.

    ``probe`` asks the daemon something as a client would, in a thread of its own. When it raises or
    does not return, systemd hears nothing, and starts the daemon again after ``WatchdogSec=``.
    """
    interval = _watchdog_interval()
    if interval is None:
        yield
        return
    stop = threading.Event()

    def report() -> None:
        while not stop.wait(interval):
            try:
                probe()
            except Exception:  # systemd counts; whatever it is, the daemon does not answer
                logging.exception("the daemon does not answer itself")
            else:
                _notify_systemd("WATCHDOG=1")

    thread = threading.Thread(target=report, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()


def _watchdog_interval() -> float | None:
    """Seconds between two reports: a third of what systemd allows; None when it does not watch."""
    try:
        limit = int(os.environ.get("WATCHDOG_USEC", "")) / 1e6
    except ValueError:
        return None
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return limit / 3


def _notify_systemd(state: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode(), address)

"""What daemons share: one copy only, signals, the background, systemd."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import daemon, files, process

REPOSITORY = Path(__file__).parents[3]


def python(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


# one copy only

_RUN = """
import sys
from pathlib import Path
from ganeti.base import daemon
pid_file = daemon.PidFile(Path(sys.argv[1]))
pid_file.acquire()
print("there", flush=True)
sys.stdin.read()
pid_file.release()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "x.pid"


@pytest.fixture
def running(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the pid file; ends at the end of its input."""
    child = python(_RUN, path)
    assert line_of(child) == "there"
    yield child
    child.kill()
    with child:
        pass


def test_a_second_copy_is_refused_and_told_the_pid(
    path: Path, running: subprocess.Popen[str]
) -> None:
    assert daemon.read_pid(path) == daemon.running_pid(path) == running.pid
    with pytest.raises(errors.PidFileLockError, match=rf"already running \(pid {running.pid}, "):
        daemon.PidFile(path).acquire()
    assert daemon.read_pid(path) == running.pid


def test_after_a_clean_end_nothing_runs_and_the_next_one_may(
    path: Path, running: subprocess.Popen[str]
) -> None:
    running.communicate(timeout=10)
    assert daemon.running_pid(path) is None
    assert daemon.read_pid(path) is None
    pid_file = daemon.PidFile(path)
    pid_file.acquire()
    assert daemon.running_pid(path) == os.getpid()
    pid_file.release()
    pid_file.release()
    assert daemon.running_pid(path) is None


def test_a_killed_daemon_does_not_run_whatever_its_file_says(
    path: Path, running: subprocess.Popen[str]
) -> None:
    running.kill()
    running.wait(10)
    assert daemon.read_pid(path) == running.pid
    assert daemon.running_pid(path) is None
    pid_file = daemon.PidFile(path)
    pid_file.acquire()
    assert daemon.read_pid(path) == os.getpid()
    pid_file.release()


def test_someone_who_only_asks_does_not_keep_a_daemon_from_starting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.ensure_dir(path.parent)
    path.write_text("")
    tried = threading.Event()
    real = files.FileLock.acquire

    def acquire(lock: files.FileLock) -> None:
        try:
            real(lock)
        except errors.LockError:
            tried.set()
            raise

    monkeypatch.setattr(files.FileLock, "acquire", acquire)
    with path.open() as asking:
        # What running_pid does for a moment.
        fcntl.flock(asking, fcntl.LOCK_SH)
        pid_file = daemon.PidFile(path)
        starting = threading.Thread(target=pid_file.acquire)
        starting.start()
        assert tried.wait(10)
    starting.join(10)
    assert daemon.running_pid(path) == os.getpid()
    pid_file.release()


def test_who_asks_at_the_same_time_is_not_told_a_stale_pid(path: Path) -> None:
    files.ensure_dir(path.parent)
    path.write_text("1\n")
    answers: list[int | None] = []
    asking = [
        threading.Thread(
            target=lambda: answers.extend(daemon.running_pid(path) for _ in range(100))
        )
        for _ in range(4)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(10)
    assert answers == [None] * 400


@pytest.mark.parametrize("content", [b"", b"x", b"-1", b"0", b"\xff\xfe", b"\xc2\xb2", b"9" * 5000])
def test_rubbish_in_a_pid_file_is_no_pid(path: Path, content: bytes) -> None:
    files.ensure_dir(path.parent)
    assert daemon.read_pid(path) is None
    path.write_bytes(content)
    assert daemon.read_pid(path) is None
    assert daemon.running_pid(path) is None


# signals

_SERVE = """
import sys
from ganeti.base import daemon
seen = []
def on_hup():
    print("hup", flush=True)
    if len(sys.argv) > 1:
        raise OSError("no log")
stop = daemon.StopSignal(on_hup)
stop.install()
print("there", flush=True)
stop.wait()
print("stops", stop.event.is_set(), flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("arguments", [[], ["failing"]])
def test_signals_are_obeyed(number: int, arguments: list[str]) -> None:
    child = python(_SERVE, *arguments)
    assert line_of(child) == "there"
    for _ in range(2):
        child.send_signal(signal.SIGHUP)
        assert line_of(child) == "hup"
    child.send_signal(number)
    out, _err = child.communicate(timeout=10)
    assert out == "stops True\n"
    assert child.returncode == 0


def test_a_flood_of_signals_is_survived() -> None:
    child = python(_SERVE)
    assert line_of(child) == "there"
    for _ in range(2000):
        child.send_signal(signal.SIGHUP)
    child.send_signal(signal.SIGTERM)
    out, _err = child.communicate(timeout=60)
    assert out.endswith("stops True\n")


_LATE = """
import os, signal
from ganeti.base import daemon
stop = daemon.StopSignal()
stop.install()
signal.signal(signal.SIGTERM, lambda _number, _frame: None)
os.kill(os.getpid(), signal.SIGTERM)
stop.wait()
print("stops", stop.event.is_set(), flush=True)
"""


def test_a_signal_whose_handler_never_runs_is_obeyed() -> None:
    # As if it came when Python had looked for signals and had not begun to read yet.
    child = python(_LATE)
    out, err = child.communicate(timeout=20)
    assert (out, err) == ("stops True\n", "")


_ASK = """
import os, threading
from ganeti.base import daemon
waiting, read = threading.Event(), os.read
os.read = lambda fd, size: (waiting.set(), read(fd, size))[1]
stop = daemon.StopSignal()
stop.install()
threading.Thread(target=lambda: waiting.wait(10) and stop.ask()).start()
stop.wait()
stop.wait()
print("stops", stop.event.is_set(), flush=True)
"""


def test_another_thread_may_ask_for_the_stop() -> None:
    child = python(_ASK)
    out, err = child.communicate(timeout=10)
    assert (out, err) == ("stops True\n", "")


# background

_BACKGROUND = """
import os, sys
from ganeti.base import daemon
background = daemon.Background()
background.fork()
mode, out = sys.argv[1:]
with open(out, "w") as stream:
    stream.write(f"{os.getpid()} {os.getcwd()}")
    for fd in (0, 1, 2):
        stream.write(" " + os.readlink(f"/proc/self/fd/{fd}"))
if mode == "ready":
    background.report_ready()
    print("nobody sees this")
elif mode == "failed":
    background.report_failure("cannot listen: port in use", 7)
elif mode == "crash":
    os._exit(1)
elif mode == "stay":
    background.report_ready()
    import signal
    signal.pause()
"""


def await_end(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = child.communicate(timeout=20)
    return child.returncode, out, err


@pytest.mark.parametrize(
    ("mode", "result"),
    [
        ("ready", (0, "", "")),
        ("failed", (7, "", "cannot listen: port in use\n")),
        ("crash", (1, "", "the daemon died while starting; see its log\n")),
    ],
)
def test_the_caller_learns_how_the_start_went(
    tmp_path: Path, mode: str, result: tuple[int, str, str]
) -> None:
    out = tmp_path / "out"
    assert await_end(python(_BACKGROUND, mode, out)) == result
    assert process.wait_exit(int(out.read_text().split()[0]), 10)


def test_the_daemon_lives_on_without_terminal_and_directory(tmp_path: Path) -> None:
    out = tmp_path / "out"
    caller = python(_BACKGROUND, "stay", out)
    assert await_end(caller)[0] == 0
    pid, *facts = out.read_text().split()
    assert process.is_alive(int(pid))
    assert facts == ["/", "/dev/null", "/dev/null", "/dev/null"]
    assert os.getsid(int(pid)) not in (os.getsid(0), int(pid))
    os.kill(int(pid), signal.SIGKILL)
    assert process.wait_exit(int(pid), 10)


def test_in_the_foreground_a_failure_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    daemon.Background().report_failure("cannot listen")
    assert capsys.readouterr().err == "cannot listen\n"


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    name = f"@ganeti-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(name.replace("@", "\0"))
        sock.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        daemon.Background().report_ready()
        assert sock.recv(100) == b"READY=1"


def test_a_deaf_systemd_disturbs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "missing"))
    daemon.Background().report_ready()
    assert capfd.readouterr() == ("", "")


def test_systemd_hears_as_long_as_the_daemon_answers_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "30000")
        answers = [OSError("hangs"), None, None]

        def probe() -> None:
            asked = answers.pop(0) if answers else OSError("hangs again")
            if asked is not None:
                raise asked

        with daemon.watchdog(probe):
            assert [systemd.recv(100) for _ in range(2)] == [b"WATCHDOG=1"] * 2
            systemd.settimeout(0.1)
            with pytest.raises(TimeoutError):
                systemd.recv(100)


def test_without_systemd_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    before = threading.active_count()
    with daemon.watchdog(lambda: pytest.fail("asked")):
        assert threading.active_count() == before

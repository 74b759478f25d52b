"""Runs ``gnt-*`` commands of tests quickly: each in a process of its own, forked from one that has
their modules loaded already.

A command behaves as one that was started with ``python -m ganeti.cli``: its arguments,
environment, output, exit code and death are its own. Only the loading of modules, which takes most
of its processor time, is done once. Tests of start-up, of terminals and of signals start commands
as usual.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
#: Longest request: arguments and environment as JSON.
_REQUEST = 1 << 20


class CommandServer:
    """The process with the loaded modules; it ends with the process that made it."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="commands-")
        self._path = f"{self._directory.name}/socket"
        listener = socket.socket(socket.AF_UNIX)
        with listener:
            listener.bind(self._path)
            listener.listen(64)
            # The server sees on its standard input that we have gone.
            self._child = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
            )

    def run(
        self, argv: Sequence[str], env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """``python -m ganeti.cli ARGV`` with nothing on its standard input.

        Raises:
            subprocess.TimeoutExpired: it was killed after ``timeout`` seconds.
        """
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.connect(self._path)
            connection.settimeout(timeout)
            request = json.dumps([list(argv), dict(env), os.getcwd()]).encode() + b"\n"
            socket.send_fds(connection, [request[:1]], [out.fileno(), err.fileno()])
            connection.sendall(request[1:])
            with connection.makefile() as answers:
                pid = int(answers.readline())
                try:
                    code = int(answers.readline())
                except TimeoutError:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(list(argv), timeout) from None
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode())
        return subprocess.CompletedProcess(list(argv), code, *texts)

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(10)
        self._directory.cleanup()


@functools.cache
def shared() -> CommandServer:
    """The server of this test process, started when it is wanted first."""
    made = CommandServer()
    atexit.register(made.close)
    return made


def serve(listener: socket.socket) -> None:
    """Answer requests until standard input ends."""
    package = importlib.import_module("ganeti.cli")
    for module in pkgutil.walk_packages(package.__path__, "ganeti.cli."):
        importlib.import_module(module.name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that supervise
    poll = select.poll()
    for fd in (0, listener.fileno()):
        poll.register(fd, select.POLLIN)
    while True:
        ready = [fd for fd, _event in poll.poll()]
        if 0 in ready:
            return
        connection, _address = listener.accept()
        if os.fork() == 0:
            listener.close()
            _supervise(connection)
            os._exit(0)
        connection.close()


def _supervise(connection: socket.socket) -> None:
    """Run one command; tell its process id and its exit code."""
    request, fds, _flags, _address = socket.recv_fds(connection, _REQUEST, 2)
    while not request.endswith(b"\n"):
        more = connection.recv(_REQUEST)
        if not more:
            return  # who asked has gone
        request += more
    argv, env, directory = json.loads(request)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        connection.close()
        for target, fd in enumerate([os.open(os.devnull, os.O_RDONLY), *fds]):
            os.dup2(fd, target)
        os.closerange(3, max(fds) + 1)
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(env)
        os._exit(_run(argv))
    connection.sendall(f"{pid}\n".encode())
    _pid, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):  # who asked has given up
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _run(argv: list[str]) -> int:
    from ganeti.cli import __main__ as entry

    sys.argv = [entry.__file__, *argv]
    try:
        code: object = entry.main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))

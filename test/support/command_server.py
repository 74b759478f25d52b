"""Runs programs for tests quickly: each in a process of its own, forked from one that has their
modules loaded already.

These are the commands (``gnt-*``), the daemons, htools and some more (by the names of their
modules), ``ganeti-node-setup``, ``tools/local-cluster`` and scripts of tests (by their paths). Each
behaves as one that was started as usual: its arguments, environment, output, exit code and death
are its own, and daemons go to the background. Only the loading of modules, which takes most of the
processor time, is done once. What differs is what ``/proc`` says: ``cmdline`` and ``environ`` are
those of the server. What such a program starts with ``sys.executable`` comes from here, too
(:data:`_SHIM`), and what a test starts with :attr:`CommandServer.python`. Tests of start-up, of
terminals and of signals start programs as usual.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[2]
#: What ``argv[0]`` says to run ``tools/local-cluster``.
LOCAL_CLUSTER = "local-cluster"
NODE_SETUP = "ganeti-node-setup"
#: Modules that are programs.
_PROGRAMS = (
    "ganeti.node.daemon",
    "ganeti.confd.daemon",
    "ganeti.mond.daemon",
    "ganeti.metad.daemon",
    "ganeti.master.daemon",
    "ganeti.rapi.daemon",
    "ganeti.watcher.program",
    "ganeti.node.offline_node",
    "ganeti.bootstrap.daemon_util",
    "ganeti.tools.doctor",
    "ganeti.tools.ocf_master_role",
    "ganeti.tools.ocf_nodes",
)
#: Scripts that the shim lets the server run.
_SCRIPTS = (str(REPOSITORY / "test" / "crash" / "faulty_program.py"),)
_HTOOLS = "ganeti.htools."
#: What programs load of it, and when, differs; here it is all loaded before.
_PACKAGES = (
    "ganeti.cli",
    "ganeti.hypervisor",
    "ganeti.ops",
    "ganeti.placement",
    "ganeti.query",
    "ganeti.storage",
)
#: Stands in for the interpreter, and for ``ganeti-node-setup`` on the nodes: it lets the server run
#: what the server can run, and waits for its end. In other namespaces and for other users it does
#: what it stands in for.
_SHIM = """\
#!{python} -IS
import os, socket, sys
def place():
    names = [os.readlink("/proc/self/ns/" + name) for name in ("mnt", "net", "pid")]
    return [*names, os.getuid(), os.readlink("/proc/self/root")]
def program(words):
    if os.path.basename(words[0]) == {setup!r}:
        return [{setup!r}, *words[1:]]
    if words[1:3] == ["-I", "-m"]:
        del words[1]
    if words[1:3] == ["-m", "ganeti.cli"]:
        return words[3:]
    if words[1:2] == ["-m"] and words[2].startswith({modules!r}):
        return words[2:]
    if words[1:2] == [{tool!r}]:
        return [{name!r}, *words[2:]]
    return words[1:] if words[1:2] and words[1] in {scripts!r} else None
wanted = program(list(sys.argv))
with socket.socket(socket.AF_UNIX) as connection:
    try:
        if wanted is None or place() != {place!r}:
            raise OSError
        connection.connect({path!r})
    except OSError:
        if os.path.basename(sys.argv[0]) == {setup!r}:
            os.execv({real!r}, [{real!r}, *sys.argv[1:]])
        os.execv({python!r}, [{python!r}, *sys.argv[1:]])
    import array, json
    request = json.dumps([wanted, dict(os.environ), os.getcwd()]).encode() + b"\\n"
    fds = array.array("i", [0, 1, 2])
    connection.sendmsg([request[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    connection.sendall(request[1:])
    for fd in (0, 1, 2):
        os.close(fd)
    answer = b""
    while part := connection.recv(100):
        answer += part
code = int(answer.split()[1])
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""
#: Longest request: arguments and environment as JSON.
_REQUEST = 1 << 20


class CommandServer:
    """The process with the loaded modules; it ends with the process that made it."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="commands-")
        self._path = f"{self._directory.name}/socket"
        _write_shim(Path(self._directory.name))
        listener = socket.socket(socket.AF_UNIX)
        with listener:
            listener.bind(self._path)
            listener.listen(64)
            # The server sees on its standard input that we have gone.
            self._child = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno()), self._directory.name],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
            )

    @property
    def python(self) -> str:
        """Path of an interpreter that runs those programs as they run here, and others as usual."""
        return str(_programs(Path(self._directory.name)) / "python")

    def run(
        self, argv: Sequence[str], env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a program (``argv[0]``, see above) with nothing on its standard input.

        Raises:
            subprocess.TimeoutExpired: it was killed after ``timeout`` seconds.
        """
        with (
            open(os.devnull, "rb") as nothing,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            socket.socket(socket.AF_UNIX) as connection,
        ):
            connection.connect(self._path)
            connection.settimeout(timeout)
            request = json.dumps([list(argv), dict(env), os.getcwd()]).encode() + b"\n"
            fds = [stream.fileno() for stream in (nothing, out, err)]
            socket.send_fds(connection, [request[:1]], fds)
            connection.sendall(request[1:])
            with connection.makefile() as answers:
                answers.readline()  # its process id
                try:
                    code = int(answers.readline())
                except TimeoutError:  # it ends with the connection
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
def find_shared() -> CommandServer:
    """The server of this test process, started when it is wanted first."""
    made = CommandServer()
    atexit.register(made.close)
    return made


def serve(listener: socket.socket, directory: Path) -> None:
    """Answer requests until standard input ends; ``directory`` has the shim."""
    # Too large to be in every fork: htools and the operations that need it load it.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    del sys.modules["numpy"]
    for name in (*_PROGRAMS, "ganeti.bootstrap.node_setup"):
        importlib.import_module(name)
    tool = _load_tool()
    tool.VENV = _programs(directory)  # type: ignore[attr-defined]
    sys.executable = str(tool.VENV / "python")
    gc.freeze()
    ended, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes us through the pipe
    waiting: dict[int, socket.socket] = {}  # who waits for the end of which process
    poll = select.poll()
    for fd in (0, listener.fileno(), ended):
        poll.register(fd, select.POLLIN)
    while True:
        ready = [fd for fd, _event in poll.poll()]
        if 0 in ready:
            return
        for pid, connection in waiting.items():
            if connection.fileno() in ready:  # who waited has gone
                poll.unregister(connection)
                os.kill(pid, signal.SIGKILL)
        if ended in ready:
            os.read(ended, 4096)
            for connection in _answer_ended(waiting):
                with contextlib.suppress(KeyError):
                    poll.unregister(connection)
                connection.close()
        if listener.fileno() in ready:
            connection, _address = listener.accept()
            pid = _start(connection, tool)
            if pid is None:
                connection.close()
            else:
                waiting[pid] = connection
                poll.register(connection, select.POLLIN)


def _start(connection: socket.socket, tool: ModuleType) -> int | None:
    """Fork the process of one request and tell its id; None: who asked has gone."""
    request, fds, _flags, _address = socket.recv_fds(connection, _REQUEST, 3)
    try:
        while not request.endswith(b"\n"):
            more = connection.recv(_REQUEST)
            if not more:
                return None
            request += more
        argv, env, directory = json.loads(request)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for target, fd in enumerate(fds):
                os.dup2(fd, target)
            os.closerange(3, max(_open_files()) + 1)
            os.chdir(directory)
            os.environ.clear()
            os.environ.update(env)
            os._exit(_run(argv, tool))
    finally:
        for fd in fds:
            os.close(fd)
    with contextlib.suppress(OSError):  # who asked has given up
        connection.sendall(f"{pid}\n".encode())
    return pid


def _open_files() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd")]


def _answer_ended(waiting: dict[int, socket.socket]) -> Iterator[socket.socket]:
    """Tell the exit codes of all processes that have ended; gives the connections."""
    with contextlib.suppress(ChildProcessError):  # none is left
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection = waiting.pop(pid)
            with contextlib.suppress(OSError):
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            yield connection


def _programs(directory: Path) -> Path:
    """Where the shim stands in for programs of the environment."""
    return directory / "bin"


def _write_shim(directory: Path) -> None:
    programs = _programs(directory)
    programs.mkdir()
    for path in Path(sys.executable).parent.iterdir():
        (programs / path.name).symlink_to(path)
    names = [os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "net", "pid")]
    text = _SHIM.format(
        python=sys.executable,
        setup=NODE_SETUP,
        real=str(Path(sys.executable).parent / NODE_SETUP),
        modules=(*_PROGRAMS, _HTOOLS),
        scripts=_SCRIPTS,
        tool=str(REPOSITORY / "tools" / LOCAL_CLUSTER),
        name=LOCAL_CLUSTER,
        place=[*names, os.getuid(), os.readlink("/proc/self/root")],
        path=str(directory / "socket"),
    )
    for name in ("python", NODE_SETUP):
        shim = programs / name
        shim.unlink(missing_ok=True)
        shim.write_text(text)
        shim.chmod(0o755)


def _load_tool() -> ModuleType:
    path = str(REPOSITORY / "tools" / LOCAL_CLUSTER)
    loader = importlib.machinery.SourceFileLoader("local_cluster_tool", path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def _run(argv: list[str], tool: ModuleType) -> int:
    from ganeti.cli import __main__ as entry

    try:
        sys.argv = argv
        if argv[0] == LOCAL_CLUSTER:
            code: object = tool.main()
        elif argv[0] in _PROGRAMS:
            code = importlib.import_module(argv[0]).main(argv[1:])
        elif argv[0] == NODE_SETUP:
            code = importlib.import_module("ganeti.bootstrap.node_setup").main()
        elif argv[0].startswith(_HTOOLS):
            code = importlib.import_module(argv[0]).main()
        elif argv[0].startswith("/"):
            runpy.run_path(argv[0], run_name="__main__")
            code = 0
        else:
            sys.argv = [entry.__file__, *argv]
            code = entry.main()
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
    serve(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))

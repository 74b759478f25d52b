"""A local cluster as tests use it: started by tools/local-cluster, driven by gnt-* commands."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import command_server

from ganeti import constants, paths
from ganeti.base import daemon, process, services

REPOSITORY = Path(__file__).resolve().parents[2]
TOOL = REPOSITORY / "tools" / "local-cluster"


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def tool(verb: str, directory: Path, *words: str, timeout: float = 120) -> Ran:
    """Run tools/local-cluster."""
    argv = [command_server.LOCAL_CLUSTER, verb, "--dir", str(directory), *words]
    result = command_server.find_shared().run(argv, os.environ, timeout)
    return Ran(result.returncode, result.stdout, result.stderr)


def run_program(argv: list[str], env: dict[str, str], timeout: float = 120) -> Ran:
    """Run what the command server can run; nothing that it writes may be a traceback."""
    result = command_server.find_shared().run(argv, env, timeout)
    assert "Traceback" not in result.stderr + result.stdout, result.stderr
    return Ran(result.returncode, result.stdout, result.stderr)


class Cluster:
    """A running cluster below a directory; ``node1`` is the master."""

    def __init__(self, directory: Path, nodes: int, hypervisor: str = "fake", *words: str) -> None:
        self.directory = directory
        self.names = [f"node{n}.example.com" for n in range(1, nodes + 1)]
        self._make(hypervisor, *words)

    def _make(self, hypervisor: str, *words: str) -> None:
        count = str(len(self.names))
        started = tool(
            "start", self.directory, "--nodes", count, "--hypervisor", hypervisor, "--keep", *words
        )
        if started.code:
            tool("stop", self.directory)  # its logs stay, nothing runs on
        assert started.code == 0, started.err + started.out

    def root(self, node: str = "node1") -> Path:
        return self.directory / node

    def paths(self, node: str = "node1") -> paths.Paths:
        return paths.Paths(self.root(node))

    def env(self, node: str = "node1") -> dict[str, str]:
        python = command_server.find_shared().python
        shell = f"{python} {REPOSITORY / 'tools' / 'local-cluster'} shell --dir"
        return {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "GANETI_ROOTDIR": str(self.root(node)),
            "GANETI_HOSTNAME": f"{node}.example.com",
            "GANETI_REMOTE_SHELL": f"{shell} {self.directory}",
        }

    def argv(self, program: str, *words: str) -> list[str]:
        return [sys.executable, "-m", "ganeti.cli", f"gnt-{program.removeprefix('gnt-')}", *words]

    def gnt(self, line: str, *words: str, node: str = "node1", timeout: float = 60) -> Ran:
        """Run a command: ``gnt("instance add -t file", "name")``."""
        program, *rest = line.split()
        command = [f"gnt-{program.removeprefix('gnt-')}", *rest, *words]
        return run_program(command, self.env(node), timeout)

    def run_module(self, module: str, *words: str, node: str = "node1") -> Ran:
        """Run a module that is a program, as ``python -m`` does."""
        return run_program([module, *words], self.env(node))

    def ok(self, line: str, *words: str, node: str = "node1", timeout: float = 60) -> Ran:
        """Like :meth:`gnt`; the command must succeed."""
        ran = self.gnt(line, *words, node=node, timeout=timeout)
        assert ran.code == 0, f"{line}: {ran.err}{ran.out}"
        return ran

    def add(self, name: str, *words: str, node: str = "node2") -> Ran:
        """Add a small instance with a file disk."""
        return self.gnt(
            f"instance add -n {node} -o noop -t file --disk 0:size=8M --no-nics",
            *words,
            name,
        )

    def cells(self, line: str, *words: str) -> list[list[str]]:
        """Rows of a list command without titles."""
        ran = self.ok(f"{line} --no-headers --separator=|", *words)
        return [row.split("|") for row in ran.lines]

    def pid(self, name: str, node: str = "node1") -> int | None:
        return daemon.running_pid(self.paths(node).pid_file(name))

    def kill_master(self) -> None:
        """SIGKILL to the master daemon, and wait until it is gone."""
        pid = self.pid(constants.MASTERD)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        process.wait_exit(pid, 10)

    def start_daemon(self, name: str, node: str = "node1", *options: str) -> Ran:
        """Start one of ``services.ALL``; returns when it is ready or has refused."""
        argv = [services.ALL[name].module, *options]
        result = command_server.find_shared().run(argv, self.env(node), 60)
        return Ran(result.returncode, result.stdout, result.stderr)

    def start_master(self) -> Ran:
        return self.start_daemon(constants.MASTERD)

    def disks(self) -> list[str]:
        """Files of disks on all nodes, relative to the node's root."""
        return sorted(
            str(path.relative_to(self.directory))
            for path in self.directory.glob("node*/srv/ganeti/file-storage/**/*")
            if path.is_file()
        )

    def config(self) -> tuple[bytes, bytes]:
        """What is written of the configuration."""
        where = self.paths()
        journal = where.journal_file.read_bytes() if where.journal_file.exists() else b""
        return where.config_file.read_bytes(), journal

    def destroy(self) -> None:
        tool("destroy", self.directory)


class CopiedCluster(Cluster):
    """A cluster as it was right after it was made, started from a copy of its files.

    The first of a kind in a test process is made as usual, stopped and kept. The next ones are
    that one again: same directory, addresses, certificates and uuids. Its daemons come from
    :mod:`command_server`. One at a time of each kind; use :func:`copy_cluster`.
    """

    def __init__(self, directory: Path, original: Path, nodes: int, hypervisor: str) -> None:
        self._original = original
        super().__init__(directory, nodes, hypervisor)

    def _make(self, hypervisor: str, *words: str) -> None:
        if not self._original.exists():
            super()._make(hypervisor, *words)
            assert tool("stop", self.directory).code == 0
            shutil.copytree(self.directory, self._original, symlinks=True)
        else:
            shutil.copytree(self._original, self.directory, symlinks=True)
        short = [name.partition(".")[0] for name in self.names]
        with ThreadPoolExecutor() as pool:
            started = list(pool.map(lambda node: self.start_daemon(constants.NODED, node), short))
        started += [self.start_daemon(name) for name in (constants.MASTERD, constants.RAPI)]
        for ran in started:
            assert ran.code == 0, ran.err + ran.out


@functools.cache
def _place() -> Path:
    """Where this test process has its copied clusters and what they are copied from."""
    place = Path(tempfile.mkdtemp(prefix="c", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


_in_use: set[str] = set()


@contextlib.contextmanager
def copy_cluster(nodes: int, hypervisor: str = "fake") -> Iterator[Cluster]:
    """A cluster in which nothing has happened yet; gone after the block."""
    kind = next(
        name
        for number in range(10)
        if (name := f"{hypervisor}{nodes}{number or ''}") not in _in_use
    )
    _in_use.add(kind)
    made = None
    try:
        made = CopiedCluster(_place() / kind, _place() / f"{kind}.original", nodes, hypervisor)
        yield made
    finally:
        if made is not None:
            made.destroy()
        _in_use.discard(kind)

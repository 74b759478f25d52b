"""A cluster whose nodes have network namespaces of their own, on one switch; needs root.

The switch is a bridge in a further namespace, so nothing of the machine's own network is touched,
and everything is gone with the processes that hold the namespaces. Addresses of neighbours are
fixed; a direction is cut by giving the sender a wrong one: what it sends is lost on the way
without a word, as in a broken network, and the other direction still works.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import power
import pytest

from ganeti import constants, paths
from ganeti.base import daemon, process, services

REPOSITORY = Path(__file__).resolve().parents[2]
NETWORK = "10.99.0"
DOMAIN = "example.com"
CLUSTER = f"cluster.{DOMAIN}"

#: (sender, receiver), numbers of nodes
Direction = tuple[int, int]


def needs_networks() -> pytest.MarkDecorator:
    """Skip the tests of a module where such a cluster cannot be made."""
    reason = _explain_unavailable()
    return pytest.mark.skipif(reason is not None, reason=str(reason))


@functools.cache
def _explain_unavailable() -> str | None:
    if os.getuid() != 0:
        return "needs root for network namespaces"
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            return f"needs the program {program}"
    holder = Namespace()
    try:
        made = holder.run(["ip", "link", "add", "br0", "type", "bridge"])
        return None if made.returncode == 0 else f"no bridge can be made: {made.stderr.strip()}"
    except OSError as err:
        return f"no network namespace can be made: {err}"
    finally:
        holder.end()


def _local_cluster() -> ModuleType:
    """The module of tools/local-cluster, which knows how small clusters are made."""
    loader = importlib.machinery.SourceFileLoader(
        "local_cluster_tool", str(REPOSITORY / "tools" / "local-cluster")
    )
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


class Namespace:
    """A network namespace, and others of these kinds, held by a process.

    ``setup`` are commands of a shell that run in it first.
    """

    def __init__(self, kinds: Sequence[str] = ("net",), setup: str = ":") -> None:
        self._kinds = [f"--{kind}" for kind in kinds]
        self._holder = subprocess.Popen(
            ["unshare", *self._kinds, "--", "sh", "-e", "-c", f"{setup}\necho; exec sleep 86400"],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        assert self._holder.stdout is not None
        if not self._holder.stdout.read(1):
            raise OSError(f"unshare {shlex.join(self._kinds)} failed")

    @property
    def pid(self) -> int:
        return self._holder.pid

    def enter(self, argv: list[str]) -> list[str]:
        return ["nsenter", "-t", str(self.pid), *self._kinds, "--", *argv]

    def run(self, argv: list[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.enter(argv), input=text, capture_output=True, text=True, check=False
        )

    def ip(self, *lines: str) -> None:
        """Commands of ip(8), one a line."""
        done = self.run(["ip", "-batch", "-"], "\n".join(lines) + "\n")
        assert done.returncode == 0, f"{lines}: {done.stderr}"

    def end(self) -> None:
        self._holder.kill()
        self._holder.wait()
        assert self._holder.stdout is not None
        self._holder.stdout.close()


@dataclass(frozen=True)
class Ran:
    """What a command did; ``code`` is None when it did not end in time."""

    code: int | None
    out: str
    err: str


class NetNode:
    """One node: a root directory, a namespace, an address."""

    def __init__(
        self, directory: Path, number: int, make_space: Callable[[int], Namespace]
    ) -> None:
        self.number = number
        self.short = f"node{number}"
        self.name = f"{self.short}.{DOMAIN}"
        self.address = f"{NETWORK}.{number}"
        self.root = directory / self.short
        self.paths = paths.Paths(self.root)
        self.space = make_space(number)
        self._directory = directory
        self._shell = directory / "remote-shell"

    @property
    def has_power(self) -> bool:
        """Whether programs can run here; see :mod:`power`."""
        return not power.marker(self._directory, self.short).exists()

    @property
    def env(self) -> dict[str, str]:
        return {
            **os.environ,
            paths.ROOTDIR_VARIABLE: str(self.root),
            paths.HOSTNAME_VARIABLE: self.name,
            "GANETI_REMOTE_SHELL": str(self._shell),
            "PYTHONPATH": str(REPOSITORY),
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        }

    def run(self, argv: list[str], timeout: float = 60) -> Ran:
        """Run a program as this node."""
        if not self.has_power:
            return Ran(None, "", f"{self.short} has no power")
        child = subprocess.Popen(
            self.space.enter(argv),
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            out, err = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            return Ran(None, out, err)
        return Ran(child.returncode, out, err)

    def gnt(self, line: str, timeout: float = 60) -> Ran:
        """``gnt("cluster master-failover")`` on this node."""
        program, *words = shlex.split(line)
        return self.run([sys.executable, "-m", "ganeti.cli", f"gnt-{program}", *words], timeout)

    # daemons -------------------------------------------------------------------------------

    def pid(self, name: str) -> int | None:
        return daemon.running_pid(self.paths.pid_file(name))

    def start(self, name: str, timeout: float = 60, options: Sequence[str] = ()) -> Ran:
        """Start a daemon; what it says when it does not run."""
        if self.pid(name) is not None:
            return Ran(0, "", "runs already")
        return self.run(services.ALL[name].argv(self.paths, *options), timeout)

    def signal(self, name: str, number: signal.Signals) -> bool:
        """Send a signal to a daemon; False when it does not run."""
        pid = self.pid(name)
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if number == signal.SIGKILL:
            process.wait_exit(pid, 10)
        return True

    def kill(self) -> None:
        """SIGKILL to everything that runs here, as by a power cut."""
        for name in (constants.MASTERD, constants.RAPI, constants.NODED):
            self.signal(name, signal.SIGKILL)

    # what it says of the master ------------------------------------------------------------

    def read_master(self) -> str:
        with contextlib.suppress(OSError):
            return self.paths.ssconf("master_node").read_text().strip()
        return ""

    def term(self) -> int:
        """The highest master term that the node has on disk."""
        try:
            return int(self.paths.epoch_file.read_text().split()[0])
        except FileNotFoundError:
            return 0

    def reigns(self) -> list[int]:
        """The terms in which this node was the master, oldest first, from its log."""
        log = self.paths.log / "master-daemon.log"
        with contextlib.suppress(FileNotFoundError):
            lines = log.read_text(errors="replace").splitlines()
            return [int(line.split()[-1]) for line in lines if "master in term" in line]
        return []


class NetCluster:
    """A cluster of nodes 1 to ``count`` on one switch; node 1 is the first master.

    ``others`` are hosts 101, 102, ... on the switch, which are no nodes; see :attr:`spaces`.
    ``make_space`` makes the namespace of a node from its number.
    """

    def __init__(
        self,
        directory: Path,
        count: int,
        others: int = 0,
        make_space: Callable[[int], Namespace] = lambda _number: Namespace(),
    ) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        self._cut: set[Direction] = set()
        self._lock = threading.Lock()
        self.switch = Namespace()
        self.nodes = {n: NetNode(directory, n, make_space) for n in range(1, count + 1)}
        #: the namespace of each host, by its number, which is the last part of its address
        self.spaces = {n: node.space for n, node in self.nodes.items()}
        self.spaces.update({101 + n: Namespace() for n in range(others)})
        try:
            self._wire()
            self._make()
        except BaseException:
            self.destroy()
            raise

    def _wire(self) -> None:
        self.switch.ip("link add br0 type bridge", "link set br0 up")
        for number, space in self.spaces.items():
            self.switch.ip(
                f"link add port{number} type veth peer name eth0 netns {space.pid}",
                f"link set port{number} master br0 up",
            )
            space.ip(
                "link set lo up",
                f"link set eth0 address {_mac(number)} up",
                f"addr add {NETWORK}.{number}/24 dev eth0",
            )
        for sender in self.spaces:
            self._neighbours(sender, {n: False for n in self.spaces if n != sender})

    def _make(self) -> None:
        tool = _local_cluster()
        shell = self.directory / "remote-shell"
        table = "\n".join(
            f"  {node.name}|{node.short}) enter='{shlex.join(node.space.enter([]))}'"
            f" name={node.name} root={shlex.quote(str(node.root))};;"
            for node in self.nodes.values()
        )
        shell.write_text(
            f'#!/bin/sh\ncase "$1" in\n{table}\n  *) exit 255;;\nesac\nshift\n'
            "test -e $root.off && exit 255\n"
            f"export {paths.ROOTDIR_VARIABLE}=$root {paths.HOSTNAME_VARIABLE}=$name\n"
            'exec $enter /bin/sh -c "$*"\n'
        )
        shell.chmod(0o755)
        hosts = [f"{NETWORK}.254 {CLUSTER} cluster"]
        hosts += [f"{node.address} {node.name} {node.short}" for node in self.nodes.values()]
        for node in self.nodes.values():
            power.holder_file(self.directory, node.short).write_text(str(node.space.pid))
            for part in ("etc/ganeti", "var/lib", "var/run", "var/log", "srv/ganeti", "var/lock"):
                (node.root / part).mkdir(parents=True, exist_ok=True)
            node.paths.hosts.write_text("\n".join(hosts) + "\n")
            (node.root / "srv/ganeti/os").symlink_to(REPOSITORY / "os")
        init = tool.init_command("fake", ssh=False)
        self._ok(self.nodes[1].gnt(shlex.join(["cluster", *init[1:]])))
        for node in list(self.nodes.values())[1:]:
            self._ok(self.nodes[1].gnt(f"node add --no-ssh-key-check {node.name}"))

    @staticmethod
    def _ok(ran: Ran) -> None:
        assert ran.code == 0, ran.err + ran.out

    # the network ---------------------------------------------------------------------------

    def _neighbours(self, sender: int, cut: dict[int, bool]) -> None:
        self.spaces[sender].ip(
            *(
                f"neigh replace {NETWORK}.{receiver} lladdr {_mac(receiver, wrong=is_cut)}"
                " nud permanent dev eth0"
                for receiver, is_cut in cut.items()
            )
        )

    def cut(self, directions: Iterable[Direction]) -> None:
        """From now on what one node sends to the other is lost; replaces all earlier cuts."""
        with self._lock:
            wanted = {(a, b) for a, b in directions if a != b}
            changed = wanted ^ self._cut
            for sender in {a for a, _b in changed}:
                self._neighbours(
                    sender, {b: (sender, b) in wanted for a, b in changed if a == sender}
                )
            self._cut = wanted

    @property
    def cuts(self) -> set[Direction]:
        return set(self._cut)

    def heal(self) -> None:
        self.cut(())

    # the end -------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Kill everything and remove the directory."""
        for node in self.nodes.values():
            node.kill()
        for namespace in (self.switch, *self.spaces.values()):
            namespace.end()
        shutil.rmtree(self.directory, ignore_errors=True)

    def describe(self) -> str:
        """Where everything stands, for the report of a failure."""
        lines = [
            json.dumps(
                {
                    "node": node.name,
                    "noded": node.pid(constants.NODED),
                    "masterd": node.pid(constants.MASTERD),
                    "told": node.read_master(),
                    "term": node.paths.epoch_file.read_text().strip()
                    if node.paths.epoch_file.exists()
                    else "",
                    "reigns": node.reigns(),
                }
            )
            for node in self.nodes.values()
        ]
        return "\n".join(lines)


def _mac(number: int, *, wrong: bool = False) -> str:
    return f"02:00:00:00:{'ff' if wrong else '00'}:{number:02x}"

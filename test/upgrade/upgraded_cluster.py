"""A cluster whose nodes use installed versions of this software, with places to die at.

Both versions have the code of this tree. The newer one has a member of the cluster that the older
one does not know. At each place in ``PLACES`` a program kills itself when the file ``die`` in the
root of its node names that place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import version_trees
from local_cluster import REPOSITORY, TOOL, Ran

from ganeti import constants, errors, paths
from ganeti.base import daemon, process, services
from ganeti.base.clock import SYSTEM
from ganeti.luxi.client import Client

OLD, NEW = "3.2", "3.3"
_DRIVER = "bootstrap/upgrade.py"
_SWITCH = "bootstrap/switch_version.py"
_CONVERT = "bootstrap/convert_config.py"
#: Name -> module, and lines of it with ``@`` where the program may die.
_PLACES: Mapping[str, tuple[str, str]] = {
    "intent": (_DRIVER, "        self._write(intent)\n        @\n        try:\n"),
    "hold": (_DRIVER, "            self._hold(facts)\n            @\n"),
    "node": (_DRIVER, "            self._switch_node(step.node)\n            @\n"),
    "master": (_DRIVER, "            self._switch_master(step.node)\n            @\n"),
    "end": (_DRIVER, "        @\n        files.remove(self.where.upgrade_intent)\n"),
    "master stopped": (_SWITCH, "                @\n                take_back = between()\n"),
    "copy kept": (_CONVERT, "    @\n    _write(where, jsonio.dumps_bytes(found.config))\n"),
    "converted": (
        _SWITCH,
        "                    @\n                    releases.use(version, where)\n",
    ),
    "linked": (_SWITCH, "            @\n            _start_again([*others, *master], where)\n"),
    "daemon stopped": (
        _SWITCH,
        "    for name in names:\n        services.stop(name, where)\n        @\n",
    ),
}
PLACES = list(_PLACES)
#: Those that the helper on another node passes.
NODE_PLACES = ["linked", "daemon stopped"]


def install(directory: Path, *, broken: bool = False) -> None:
    """Both versions, in ``directory/3.2`` and ``directory/3.3``."""
    for version in (OLD, NEW):
        root = version_trees.make(directory, version)
        for name, (module, text) in _PLACES.items():
            old = "".join(line for line in text.splitlines(True) if line.strip() != "@")
            call = f"__import__('ganeti.die').die.here({name!r})"
            version_trees.change(root, module, old, text.replace("@", call))
        version_trees.change(root, _DRIVER, "NODE_PATIENCE = 180.0", "NODE_PATIENCE = 30.0")
        (package,) = root.glob("venv/lib/*/site-packages/ganeti")
        shutil.copy(Path(__file__).with_name("die.py"), package / "die.py")
    version_trees.change(
        root,
        "model/cluster.py",
        "    cluster_name:",
        '    future_option: Annotated[str, doc("Not known before")] = "set"\n    cluster_name:',
    )
    if broken:
        version_trees.change(
            root,
            "master/daemon.py",
            'if __name__ == "__main__":\n',
            'if __name__ == "__main__":\n    sys.exit("this version is broken")\n',
        )


@dataclass
class Upgraded:
    """A cluster in a directory; ``node1`` is the master."""

    directory: Path
    library: Path
    count: int = 2
    hypervisor: str = "fake"
    names: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.names = [f"node{number}" for number in range(1, self.count + 1)]
        self.tool(
            "start",
            *("--nodes", str(self.count), "--hypervisor", self.hypervisor, "--keep"),
            *("--version", str(self.library / OLD)),
        )

    def tool(self, verb: str, *words: str) -> None:
        argv = [*TOOL, verb, "--dir", str(self.directory), *words]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def destroy(self) -> None:
        self.tool("destroy")

    def paths(self, node: str = "node1") -> paths.Paths:
        return paths.Paths(self.directory / node)

    def env(self, node: str = "node1") -> dict[str, str]:
        shell = f"{sys.executable} {REPOSITORY / 'tools' / 'local-cluster'} shell --dir"
        kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        return {
            **kept,
            "GANETI_ROOTDIR": str(self.directory / node),
            "GANETI_HOSTNAME": f"{node}.example.com",
            "GANETI_REMOTE_SHELL": f"{shell} {self.directory}",
            "PATH": f"{self.paths(node).version_link}/venv/bin:{os.environ['PATH']}",
        }

    def run(self, line: str, *words: str, node: str = "node1", timeout: float = 600) -> Ran:
        """Run a program of the version that a node uses."""
        program, *rest = line.split()
        path = self.paths(node).version_link / "venv/bin" / program
        ran = subprocess.run(
            [str(path), *rest, *words],
            env=self.env(node),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in ran.stderr + ran.stdout, ran.stderr + ran.stdout
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def ok(self, line: str, *words: str, node: str = "node1") -> Ran:
        ran = self.run(line, *words, node=node)
        assert ran.code == 0, f"{line}: {ran.code}: {ran.out}{ran.err}"
        return ran

    def die_at(self, place: str, node: str = "node1") -> None:
        """Have the next program that comes by there killed."""
        (self.directory / node / "die").write_text(place)

    def is_waiting_to_die(self, node: str = "node1") -> bool:
        return (self.directory / node / "die").exists()

    def versions(self) -> set[str]:
        """What all links lead to, and what all daemons run."""
        found = {self.paths(node).version_link.readlink().name for node in self.names}
        for node in self.names:
            for name in services.ALL:
                pid = daemon.running_pid(self.paths(node).pid_file(name))
                if pid is not None:
                    executable = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
                    found.add(Path(executable.decode()).parts[-4])
        return found

    def check(self, version: str) -> None:
        """All is of a version, whole and at work."""
        assert self.versions() == {version}
        for node in self.names:
            assert daemon.running_pid(self.paths(node).pid_file(constants.NODED))
        assert not self.paths().upgrade_intent.exists()
        assert self.ok("gnt-filter list --no-headers").out == ""
        assert f"Software version: {version}.0" in self.ok("gnt-cluster version").out
        self.ok("gnt-cluster verify")

    def guest_pid(self, instance: str, node: str) -> int:
        """Process of a guest of kvm."""
        (path,) = (self.paths(node).kvm / "pid").glob(instance)
        pid = int(path.read_text())
        assert process.is_alive(pid)
        return pid


class Submitter(threading.Thread):
    """Submits a small job every moment, and notes how long nobody took one."""

    def __init__(self, cluster: Upgraded) -> None:
        super().__init__(name="submitter")
        self._socket = cluster.paths().luxi_socket
        self._end = threading.Event()
        self.longest = 0.0
        self.jobs: list[int] = []

    def run(self) -> None:
        last = SYSTEM.monotonic()
        while not self._end.wait(0.1):
            try:
                client = Client(self._socket, reconnect_limit=0.0)
                op = {"OP_ID": "OP_TEST_DELAY", "duration": 0.0, "on_master": True}
                self.jobs.append(client.submit_job([op]))
                client.close()
            except (errors.GanetiError, OSError, TimeoutError):
                continue  # a moment without an interface
            now = SYSTEM.monotonic()
            self.longest = max(self.longest, now - last)
            last = now

    def stop(self) -> None:
        self._end.set()
        self.join()

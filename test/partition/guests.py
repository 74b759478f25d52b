"""The guests of a cluster in namespaces: where each one runs, and who moves them about."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable

from net_cluster import NetCluster

from ganeti import constants, errors
from ganeti.luxi.client import Client

#: Seconds between two looks, and between two jobs.
_LOOK = 0.2
_MOVE = 6.0


def find(cluster: NetCluster) -> dict[str, list[str]]:
    """The nodes on which each guest runs, by what is there and not by what a daemon says."""
    found: dict[str, list[str]] = {}
    for node in cluster.nodes.values():
        with contextlib.suppress(FileNotFoundError):
            for path in node.paths.fake_hypervisor.iterdir():
                if not path.name.startswith("."):
                    found.setdefault(path.name, []).append(node.short)
    return found


def find_doubled(cluster: NetCluster) -> dict[str, list[str]]:
    """Guests that run on two nodes at the same time."""
    # One that ends here and begins there between two reads is not on both nodes in both looks.
    first = {name for name, nodes in find(cluster).items() if len(nodes) > 1}
    if not first:
        return {}
    return {k: nodes for k, nodes in find(cluster).items() if k in first and len(nodes) > 1}


class GuestWatch(threading.Thread):
    """Looks all the time whether a guest runs twice, and records where guests run."""

    def __init__(self, cluster: NetCluster, note: Callable[[str], None]) -> None:
        super().__init__(name="guest-watch", daemon=True)
        self._cluster = cluster
        self._note = note
        self._stop_asked = threading.Event()
        self._known: dict[str, list[str]] = {}
        self.problems: list[str] = []

    def run(self) -> None:
        while not self._stop_asked.wait(_LOOK):
            doubled = find_doubled(self._cluster)
            if doubled and not self.problems:
                self.problems.append(f"guests run twice: {doubled}")
                self._note(self.problems[-1])
            self._note_moves(find(self._cluster))

    def _note_moves(self, found: dict[str, list[str]]) -> None:
        for name in sorted({*found, *self._known}):
            before, now = self._known.get(name, []), found.get(name, [])
            if before != now:
                self._note(f"{name} runs on {', '.join(now) or 'no node'}")
        self._known = found

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(10)


class GuestMover(threading.Thread):
    """An administrator who moves, stops and starts instances, whatever becomes of the jobs."""

    def __init__(
        self, cluster: NetCluster, names: list[str], seed: int, note: Callable[[str], None]
    ) -> None:
        super().__init__(name="guest-mover", daemon=True)
        self._cluster = cluster
        self._names = names
        self._note = note
        self._random = random.Random(seed)
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.wait(_MOVE):
            name = self._random.choice(self._names)
            target = self._random.choice(list(self._cluster.nodes.values())).name
            op = self._random.choice(
                (
                    {"OP_ID": "OP_INSTANCE_MIGRATE", "target_node": target},
                    {"OP_ID": "OP_INSTANCE_FAILOVER", "target_node": target},
                    {"OP_ID": "OP_INSTANCE_SHUTDOWN"},
                    {"OP_ID": "OP_INSTANCE_STARTUP"},
                    {"OP_ID": "OP_INSTANCE_STARTUP"},
                )
            )
            self._submit({**op, "instance_name": name})

    def _submit(self, op: dict[str, str]) -> None:
        for node in self._cluster.nodes.values():
            if node.pid(constants.MASTERD) is None:
                continue
            try:
                with Client(node.paths.luxi_socket, connect_timeout=1.0, io_timeout=2.0) as client:
                    job = client.submit_job([op])
            except (errors.GanetiError, OSError):
                continue
            where = op.get("target_node", "").partition(".")[0]
            self._note(f"{node.short}: job {job}: {op['OP_ID']} {op['instance_name']} {where}")
            return

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(10)

"""Clients that want changes all the time, on every node, and remember what was acknowledged."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from net_cluster import NetCluster, NetNode

from ganeti import errors
from ganeti.luxi.client import Client

#: Seconds between two changes of one client.
PACE = 0.08
#: Seconds after which a silent master is given up (the client waits twice as long).
PATIENCE = 2.0
FINAL = ("success", "error", "canceled")


@dataclass(frozen=True)
class Ack:
    """A change that a master reported as made."""

    tag: str
    #: node whose tag it is, and node that was the master
    target: str
    master: str
    #: term of that master
    term: int
    job: int
    #: monotonic times: before it was requested, after it was reported
    asked: float
    told: float


class Book:
    """What was acknowledged; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acks: list[Ack] = []
        #: job ids that a master handed out, with its node
        self.jobs: dict[int, str] = {}
        self.problems: list[str] = []

    def job(self, number: int, master: str) -> None:
        with self._lock:
            before = self.jobs.setdefault(number, master)
            if before != master:
                self.problems.append(f"job id {number} was given by {before} and by {master}")

    def ack(self, ack: Ack) -> None:
        with self._lock:
            self.acks.append(ack)

    def two_masters(self) -> list[str]:
        """Changes of a master that were requested after a later master had reported one."""
        found = []
        newest: Ack | None = None
        told = sorted(self.acks, key=lambda ack: ack.told)
        index = 0
        for ack in sorted(self.acks, key=lambda ack: ack.asked):
            while index < len(told) and told[index].told < ack.asked:
                if newest is None or told[index].term > newest.term:
                    newest = told[index]
                index += 1
            if newest is not None and ack.term < newest.term:
                found.append(f"{ack} was acknowledged although {newest} was before it")
        return found


def tag(client: Client, target: str, name: str) -> tuple[int, str]:
    """Set a tag on a node; the job's id and how it ended (empty: nobody knows)."""
    number = submit(client, target, name)
    return number, outcome(client, number)


def submit(client: Client, target: str, name: str) -> int:
    return client.submit_job(
        [{"OP_ID": "OP_TAGS_SET", "kind": "node", "name": target, "tags": [name]}]
    )


def outcome(client: Client, number: int, timeout: float = 8.0) -> str:
    end = time.monotonic() + timeout
    previous = None
    while time.monotonic() < end:
        change = client.wait_for_job_change(number, ["status"], previous, None, 1)
        if change is not None:
            previous = change.values
            if previous[0] in FINAL:
                return str(previous[0])
    return ""


class TagWriter(threading.Thread):
    """Sets tags through one node as long as there is a master on it."""

    def __init__(
        self,
        cluster: NetCluster,
        node: NetNode,
        book: Book,
        prefix: str,
        pace: float = PACE,
    ) -> None:
        super().__init__(name=f"client-{node.short}", daemon=True)
        self._cluster = cluster
        self._node = node
        self._book = book
        self._prefix = prefix
        self._pace = pace
        self._stop_asked = threading.Event()

    def run(self) -> None:
        number = 0
        while not self._stop_asked.wait(self._pace):
            socket = self._node.paths.luxi_socket
            if not socket.exists():
                continue
            number += 1
            try:
                with Client(socket, connect_timeout=1.0, io_timeout=PATIENCE) as client:
                    self._run_one(client, number)
            except (errors.GanetiError, OSError):
                continue  # no master here, or not for long: nothing was acknowledged

    def _run_one(self, client: Client, number: int) -> None:
        targets = list(self._cluster.nodes.values())
        target = targets[number % len(targets)].name
        name = f"{self._prefix}-{self._node.number}-{number}"
        before = self._node.reigns()[-1:]
        asked = time.monotonic()
        job = submit(client, target, name)
        self._book.job(job, self._node.name)
        if outcome(client, job) != "success":
            return
        told = time.monotonic()
        if self._node.reigns()[-1:] == before and before:  # else it is not known whose it is
            self._book.ack(Ack(name, target, self._node.name, before[0], job, asked, told))
        else:
            self._book.ack(Ack(name, target, self._node.name, 10**9, job, asked, told))

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(60)

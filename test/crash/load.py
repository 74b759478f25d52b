"""A mixed load of many clients, each of which writes down what was acknowledged to it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.luxi.client import Client

FINAL = ("success", "error", "canceled")
#: Seconds of a job that is canceled while it runs.
LONG = 3.0
GONE = (errors.ConnectionClosedError, errors.NoMasterError, TimeoutError, OSError)


def run_job(socket: Path, change: dict[str, Any], died: threading.Event) -> None:
    """Hand in a job and wait for its end, or for that of the master, which sets ``died``."""
    client = Client(socket, reconnect_limit=0.0)
    with contextlib.suppress(*GONE), client:
        job = client.submit_job([change])
        while not died.is_set():
            [[status]] = client.query_jobs([job], ["status"])
            if status in FINAL:
                return
            client.wait_for_job_change(job, ["status"], [status], None, 1)


Ops = list[dict[str, Any]]


@dataclass
class Acknowledged:
    """What clients were told, over all rounds. Only grows; guarded by ``lock``."""

    #: job -> the mark in its first opcode
    jobs: dict[int, str] = field(default_factory=dict)
    #: key -> job
    keys: dict[str, int] = field(default_factory=dict)
    #: keys whose submission was not answered, and the opcodes
    open_keys: dict[str, Ops] = field(default_factory=dict)
    #: job -> status that was seen
    ended: dict[int, str] = field(default_factory=dict)
    archived: set[int] = field(default_factory=set)
    canceled: set[int] = field(default_factory=set)
    priorities: dict[int, int] = field(default_factory=dict)
    #: (kind, object, tag) -> whether it must be there
    tags: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    #: name -> whether it must be there
    instances: dict[str, bool] = field(default_factory=dict)
    #: rule -> whether it must be there
    filters: dict[str, bool] = field(default_factory=dict)
    #: None: a request to change it was not answered
    drained: bool | None = False
    unexpected: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def job(self, job_id: int, mark: str) -> int:
        with self.lock:
            if self.jobs.get(job_id, mark) != mark:
                self.unexpected.append(
                    f"job id {job_id} was given to {self.jobs[job_id]} and to {mark}"
                )
            self.jobs[job_id] = mark
        return job_id

    def end(self, job_id: int, status: str) -> None:
        with self.lock:
            before = self.ended.setdefault(job_id, status)
            if before != status:
                self.unexpected.append(f"job {job_id} was {before} and is {status} now")


def delay(mark: str, seconds: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"OP_ID": "OP_TEST_DELAY", "duration": seconds, "comment": mark, **more}


def tags(verb: str, kind: str, name: str, tag: str, mark: str) -> dict[str, Any]:
    return {"OP_ID": f"OP_TAGS_{verb}", "kind": kind, "name": name, "tags": [tag], "comment": mark}


class Load:
    """One round of the load. Clients stop when their connection breaks."""

    def __init__(
        self,
        socket: Path,
        round_number: int,
        known: Acknowledged,
        nodes: Sequence[str],
        leftovers: Sequence[str],
    ) -> None:
        self._socket = socket
        self._round = round_number
        self._known = known
        self._nodes = list(nodes)
        self._leftovers = list(leftovers)
        self._over = threading.Event()
        works = (
            self._singles,
            self._submit_many,
            self._tags,
            self._instances,
            self._manage,
            self._rules,
        )
        self._threads = [
            threading.Thread(target=self._client, args=(work,), name=work.__name__)
            for work in works
        ]
        self._watcher = threading.Thread(target=self._client, args=(self._watch,), name="watch")

    def run(self) -> None:
        """Run all clients; returns when every one is done, or the master has ended."""
        self._watcher.start()
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), f"client {thread.name} hangs"
        self._over.set()
        self._watcher.join(60)
        assert not self._watcher.is_alive(), "a client hangs"

    def _client(self, work: Callable[[Client], None]) -> None:
        try:
            with Client(self._socket, io_timeout=15.0, reconnect_limit=0.0) as client:
                work(client)
        except GONE:
            self._over.set()
        except Exception as err:  # a thread has nobody above it
            self._unexpected(f"{work.__name__}: {type(err).__name__}: {err}")

    def _unexpected(self, text: str) -> None:
        with self._known.lock:
            self._known.unexpected.append(f"round {self._round}: {text}")

    def _mark(self, what: str) -> str:
        return f"r{self._round}-{what}"

    # building blocks -----------------------------------------------------------------------

    def _submit(self, client: Client, mark: str, ops: Ops, key: str | None = None) -> int:
        while not self._over.is_set():
            try:
                return self._known.job(client.submit_job(ops, key), mark)
            except errors.JobQueueDrainError:
                self._over.wait(0.01)
        raise errors.ConnectionClosedError("the round is over")

    def _wait(
        self, client: Client, job_id: int, *, expect: str = "success", also: Sequence[str] = ()
    ) -> None:
        """Wait for the end of a job as ``gnt-job wait`` does.

        Another end than the expected one is fine with one of ``also`` in its result.
        """
        values: list[Any] | None = None
        while not self._over.is_set():
            try:
                change = client.wait_for_job_change(job_id, ["status"], values, None, 10)
            except errors.JobLost:
                return  # archived, so it has ended
            if change is None:
                continue
            values = change.values
            if values[0] is None:
                return
            if values[0] in FINAL:
                self._known.end(job_id, values[0])
                if values[0] != expect:
                    # With this field archived jobs answer, too: another client may be quicker.
                    why = str(client.query_jobs([job_id], ["opresult", "archived"]))
                    if not any(words in why for words in also):
                        self._unexpected(f"job {job_id} ended as {values[0]}, not {expect}: {why}")
                return
        raise errors.ConnectionClosedError("the round is over")

    def _do(
        self, client: Client, mark: str, op: dict[str, Any], *, also: Sequence[str] = ()
    ) -> None:
        self._wait(client, self._submit(client, mark, [op]), also=also)

    # clients -------------------------------------------------------------------------------

    def _singles(self, client: Client) -> None:
        for number in range(2):
            mark = self._mark(f"key-{number}")
            ops = [delay(mark)]
            with self._known.lock:
                self._known.open_keys[mark] = ops
            job_id = self._submit(client, mark, ops, key=mark)
            with self._known.lock:
                del self._known.open_keys[mark]
                self._known.keys[mark] = job_id
            again = client.submit_job(ops, mark)
            if again != job_id:
                self._unexpected(f"key {mark} gave jobs {job_id} and {again}")
            self._wait(client, job_id)

    def _submit_many(self, client: Client) -> None:
        marks = [self._mark(f"many-{number}") for number in range(3)]
        tag = marks[1]
        after = {"depends": [[-1, ["success"]]]}
        jobs = [
            [delay(marks[0], on_nodes=self._nodes[:1])],
            [{**tags("SET", "cluster", "", tag, marks[1]), **after}, delay(f"{marks[1]}+1")],
            [delay(marks[2], **after)],
        ]
        try:
            taken = client.submit_many_jobs(jobs)
        except errors.JobQueueDrainError:
            return
        ids = [
            self._known.job(item.job_id, mark)
            for item, mark in zip(taken, marks)
            if item.job_id is not None
        ]
        if len(ids) != len(jobs):
            self._unexpected(f"{marks}: {taken}")
        for job_id in ids:
            self._wait(client, job_id)
        self._known.tags["cluster", "", tag] = True

    def _tags(self, client: Client) -> None:
        node = self._nodes[0]
        first, second = ("cluster", "", self._mark("a")), ("node", node, self._mark("b"))
        for target in (first, second):
            self._do(client, target[2], tags("SET", *target, target[2]))
            self._known.tags[target] = True
        # what is being removed may be there or not
        del self._known.tags[first]
        mark = self._mark("del")
        self._do(client, mark, tags("DEL", *first, mark))
        self._known.tags[first] = False
        self._remove_old_tags(client)

    def _remove_old_tags(self, client: Client) -> None:
        """An object can have so many only."""
        for kind, name in (("cluster", ""), ("node", self._nodes[0])):
            with self._known.lock:
                old = [
                    target
                    for target, there in self._known.tags.items()
                    if there and target[:2] == (kind, name)
                ][:-5]
                for target in old:
                    del self._known.tags[target]
            if old:
                mark = self._mark(f"clean-{kind}")
                op = tags("DEL", kind, name, "", mark)
                self._do(client, mark, {**op, "tags": [target[2] for target in old]})
                self._known.tags.update((target, False) for target in old)

    def _instances(self, client: Client) -> None:
        for name in self._leftovers:
            # A job of the last round may go on and be quicker.
            self._remove(client, name, also=("is not known", "removed meanwhile"))
        name = f"{self._mark('vm')}.example.com"
        mark = self._mark("add")
        disks = [{"size": 8}] if self._round % 4 == 0 else []
        op = {
            "OP_ID": "OP_INSTANCE_CREATE",
            "instance_name": name,
            "mode": "create",
            "nics": [],
            "pnode": self._nodes[-1],
            "disks": disks,
            "os_type": "noop",
            "comment": mark,
            "disk_template": "file" if disks else "diskless",
            "no_install": not disks,
            "start": bool(disks),
        }
        self._do(client, mark, op)
        self._known.instances[name] = True
        if self._round % 2 == 0:
            del self._known.instances[name]
            self._remove(client, name)

    def _remove(self, client: Client, name: str, *, also: Sequence[str] = ()) -> None:
        mark = self._mark(f"remove-{name}")
        self._known.instances.pop(name, None)
        op = {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": name, "comment": mark}
        self._do(client, mark, op, also=also)
        self._known.instances[name] = False

    def _manage(self, client: Client) -> None:
        """Archive, cancel, change priorities, drain."""
        known = self._known
        with known.lock:
            ended = sorted(set(known.ended) - known.archived)
        for job_id in ended[:2]:
            gone = client.query_jobs([job_id], ["status"])[0][0] is None
            if client.archive_job(job_id) or gone:
                known.archived.add(job_id)
            else:
                self._unexpected(f"job {job_id} was not archived")
        # With everything in the archive, no live job tells which ids were used.
        client.auto_archive_jobs(-1 if self._round % 5 == 0 else 1, 10)
        long_mark, mark = self._mark("long"), self._mark("held")
        running = self._submit(client, long_mark, [delay(long_mark, LONG)])
        held = self._submit(client, mark, [{**delay(mark), "depends": [[running, []]]}])
        if client.change_job_priority(held, -7)[0]:
            known.priorities[held] = -7
        if client.cancel_job(held) == (True, f"Job {held} has been canceled"):
            known.canceled.add(held)
        self._wait(client, held, expect="canceled")
        client.cancel_job(running)
        self._wait(client, running, expect="canceled", also=["None"])
        if self._round % 3 == 0:
            for flag in (True, False):
                known.drained = None
                client.set_drain_flag(flag)
                known.drained = flag

    def _rules(self, client: Client) -> None:
        predicates = [["jobid", [">", "id", 10**9]]]
        uuid = client.replace_filter(None, 5, predicates, "ACCEPT", [])
        self._known.filters[uuid] = True
        if self._round % 2:
            del self._known.filters[uuid]
            client.delete_filter(uuid)
            self._known.filters[uuid] = False

    def _watch(self, client: Client) -> None:
        """Look at all jobs again and again, as a monitoring program does."""
        while not self._over.is_set():
            for job_id, status in client.query_jobs(None, ["id", "status"]):
                if status in FINAL:
                    self._known.end(job_id, status)
            self._over.wait(0.002)

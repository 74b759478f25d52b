"""Random schedules of faults, and what must hold after each of them."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import clients
from net_cluster import NetCluster, NetNode, Ran
from waiting import wait_for

from ganeti import constants, errors
from ganeti.base import jsonio
from ganeti.base.file_journal import FileJournal
from ganeti.config.store import read_config
from ganeti.luxi.client import Client
from ganeti.model import base

#: Seconds in which everything must be well again once nothing is broken any more.
CALM = 90.0
UNKNOWN_TERM = 10**9


class Broken(AssertionError):
    """Something that must always hold does not."""


class Schedule:
    """One random course of events on a cluster; every choice comes from the seed."""

    #: seconds between two changes of one client
    pace = clients.PACE

    def __init__(self, cluster: NetCluster, seed: int) -> None:
        self.cluster = cluster
        self.seed = seed
        self.random = random.Random(seed)
        self.book = clients.Book()
        self.story: list[str] = []
        self._began = time.monotonic()
        self._terms: dict[str, int] = {}
        self._frozen: list[tuple[NetNode, str]] = []
        self._commands: list[threading.Thread] = []

    # the course of events ------------------------------------------------------------------

    def run(self) -> None:
        """Disturb the cluster, end all disturbances, look whether all is well.

        Raises:
            Broken: it is not; the text has the whole story.
        """
        writers = [
            clients.TagWriter(self.cluster, node, self.book, f"s{self.seed}", self.pace)
            for node in self.cluster.nodes.values()
        ]
        for writer in writers:
            writer.start()
        try:
            self._disturb()
            self._end_faults()
            for writer in writers:
                writer.stop()
            self._check()
        except AssertionError as err:
            raise Broken(self._report(str(err))) from err
        finally:
            for writer in writers:
                writer.stop()

    def _disturb(self) -> None:
        for _ in range(self.random.randint(5, 8)):
            self._step()
            time.sleep(self.random.choice((0.2, 0.5, 1.0, 2.0)))  # the schedule's own time
            self._check_terms()

    def note(self, text: str) -> None:
        self.story.append(f"{time.monotonic() - self._began:6.2f} s  {text}")

    def _report(self, problem: str) -> str:
        story = "\n".join(self.story)
        return f"seed {self.seed}: {problem}\n{story}\n{self.cluster.describe()}"

    def _step(self) -> None:
        steps: list[tuple[int, Callable[[], None]]] = [
            (4, self._cut_off),
            (3, self._cut_some),
            (3, self._cut_one_way),
            (3, self.heal),
            (2, self._kill),
            (3, self._restart),
            (2, self._freeze),
            (2, self._thaw),
            (6, self._failover),
            (2, self._start_old_master),
        ]
        weights = [weight for weight, _step in steps]
        self.random.choices([step for _weight, step in steps], weights)[0]()

    def _masters(self) -> list[NetNode]:
        return [n for n in self.cluster.nodes.values() if n.pid(constants.MASTERD) is not None]

    def _victim(self) -> NetNode:
        """Mostly a master, sometimes any node."""
        masters = self._masters()
        if masters and self.random.random() < 0.8:
            return self.random.choice(masters)
        return self.random.choice(list(self.cluster.nodes.values()))

    def _list_others(self, node: NetNode) -> list[int]:
        return [number for number in self.cluster.nodes if number != node.number]

    def _cut_off(self) -> None:
        node = self._victim()
        ways = {(node.number, n) for n in self._list_others(node)}
        self.note(f"{node.short} is cut off")
        self.cluster.cut(self.cluster.cuts | ways | {(b, a) for a, b in ways})

    def _cut_some(self) -> None:
        node = self._victim()
        others = self._list_others(node)
        some = self.random.sample(others, self.random.randint(1, min(3, len(others))))
        ways = {(node.number, n) for n in some}
        self.note(f"{node.short} is cut off from {some}")
        self.cluster.cut(self.cluster.cuts | ways | {(b, a) for a, b in ways})

    def _cut_one_way(self) -> None:
        node = self._victim()
        others = self._list_others(node)
        some = self.random.sample(others, self.random.randint(1, min(4, len(others))))
        if self.random.random() < 0.5:
            self.note(f"what {node.short} sends to {some} is lost")
            self.cluster.cut(self.cluster.cuts | {(node.number, n) for n in some})
        else:
            self.note(f"what {some} send to {node.short} is lost")
            self.cluster.cut(self.cluster.cuts | {(n, node.number) for n in some})

    def heal(self) -> None:
        self.note("the network is whole")
        self.cluster.heal()

    def _kill(self) -> None:
        node = self._victim()
        what = self.random.choice(("all", constants.MASTERD, constants.NODED))
        self.note(f"kill -9 {what} on {node.short}")
        if what == "all":
            node.kill()
        else:
            node.signal(what, signal.SIGKILL)

    def _restart(self) -> None:
        """Daemons as after a boot: node daemons, and a master daemon where one belongs."""
        for node in self.cluster.nodes.values():
            if node.pid(constants.NODED) is None:
                self.note(f"boot of {node.short}: {_brief(node.start(constants.NODED))}")
                if node.read_master() == node.name:
                    self._run_beside(f"masterd of {node.short}", lambda n=node: _start_master(n))

    def _freeze(self) -> None:
        node = self._victim()
        name = self.random.choice((constants.MASTERD, constants.MASTERD, constants.NODED))
        if node.signal(name, signal.SIGSTOP):
            self.note(f"{name} of {node.short} is frozen")
            self._frozen.append((node, name))

    def _thaw(self) -> None:
        for node, name in self._frozen:
            if node.signal(name, signal.SIGCONT):
                self.note(f"{name} of {node.short} continues")
        self._frozen.clear()

    def _failover(self) -> None:
        node = self.random.choice(list(self.cluster.nodes.values()))
        self._run_beside(f"failover to {node.short}", lambda: failover(node))
        time.sleep(self.random.choice((0.0, 1.0, 5.0)))  # the failover gets so far

    def _start_old_master(self) -> None:
        old = [n for n in self.cluster.nodes.values() if n.reigns() and not n.pid("ganeti-masterd")]
        if old:
            node = self.random.choice(old)
            self._run_beside(f"masterd of {node.short}", lambda: _start_master(node))

    def _run_beside(self, what: str, command: Callable[[], Ran]) -> None:
        """Run a command beside the other steps."""
        self.note(f"{what} begins")

        def work() -> None:
            self.note(f"{what}: {_brief(command())}")

        thread = threading.Thread(target=work, name=what, daemon=True)
        thread.start()
        self._commands.append(thread)

    # the end -------------------------------------------------------------------------------

    def _end_faults(self) -> None:
        """End all faults; the cluster, or at worst an administrator, finds a master."""
        self.note("all faults end")
        self.cluster.heal()
        self._thaw()
        for node in self.cluster.nodes.values():
            if node.pid(constants.NODED) is None:
                started = node.start(constants.NODED)
                assert started.code == 0, started.err
        for thread in self._commands:
            thread.join(150)
            assert not thread.is_alive(), f"{thread.name} did not end"
        self.master = self._find_master()
        self.note(f"{self.master.short} is the master")

    def _find_master(self) -> NetNode:
        """The one node whose master daemon commits; made by hand when there is none."""
        end = time.monotonic() + CALM
        said: list[str] = []
        while time.monotonic() < end:
            for node in self._masters():
                if self._commits(node):
                    return node
            if not self._masters():
                said += self._make_master()
            time.sleep(0.5)  # a master may come by itself, and no event tells
        raise AssertionError("nobody can be the master: " + "\n".join(said[-8:]))

    def _make_master(self) -> list[str]:
        """What an administrator does who finds no master; gives what was said."""
        said = []
        nodes = list(self.cluster.nodes.values())
        todo = [(n, _start_master, "masterd of") for n in nodes if n.read_master() == n.name]
        todo += [(n, failover, "failover to") for n in nodes]
        for node, command, what in todo:
            ran = command(node)
            said.append(f"{what} {node.short}: {_brief(ran)}")
            self.note(said[-1])
            if ran.code == 0:
                break
        return said

    def _commits(self, node: NetNode) -> bool:
        try:
            with Client(node.paths.luxi_socket, connect_timeout=1.0, io_timeout=3.0) as client:
                name = f"s{self.seed}-end-{len(self.story)}"
                return clients.tag(client, node.name, name)[1] == "success"
        except (errors.GanetiError, OSError) as err:
            self.note(f"{node.short} does not commit: {str(err)[:150]}")
            return False

    # what must hold ------------------------------------------------------------------------

    def _check_terms(self) -> None:
        for node in self.cluster.nodes.values():
            term = node.term()
            assert term >= self._terms.get(node.name, 0), f"the term of {node.name} went back"
            self._terms[node.name] = term

    def _check(self) -> None:
        assert not self.book.problems, self.book.problems
        known = [ack for ack in self.book.acks if ack.term != UNKNOWN_TERM]
        self.book.acks = known
        found = self.book.two_masters()
        assert not found, found[:3]
        _wait(lambda: self._masters() == [self.master], lambda: f"masters: {self._masters()}")
        self._check_terms()
        _wait(lambda: not self._unfinished(), lambda: f"unfinished: {self._unfinished()}")
        _wait(lambda: not self._differences(), lambda: f"copies differ: {self._differences()}")
        self._check_acknowledged()
        verify = self.master.gnt("job list --running")
        assert verify.code == 0, verify.err

    def _check_acknowledged(self) -> None:
        config = read_config(self.master.paths)
        tags = {n.name: set(n.tags) for n in config.nodes.values()}
        lost = [ack for ack in self.book.acks if ack.tag not in tags[ack.target]]
        assert not lost, f"{len(lost)} of {len(self.book.acks)} acknowledged changes: {lost[:5]}"
        queue = self.master.paths.queue
        there = {path.name for path in (*queue.glob("job-*"), *queue.glob("archive/*/job-*"))}
        there |= set(FileJournal(queue).read_pending())
        gone = [number for number in self.book.jobs if f"job-{number}" not in there]
        assert not gone, f"acknowledged jobs are gone: {gone[:10]}"
        self.note(f"{len(self.book.acks)} changes and {len(self.book.jobs)} jobs are there")

    def _unfinished(self) -> list[list[object]]:
        try:
            with Client(self.master.paths.luxi_socket, io_timeout=5.0) as client:
                rows = client.query_jobs(None, ["id", "status"])
        except errors.GanetiError as err:
            return [[str(err)]]
        return [row for row in rows if row[1] not in clients.FINAL]

    def _list_others_with_data(self) -> list[NetNode]:
        """Candidates but for the master, which have its data in the end."""
        return [node for node in self.cluster.nodes.values() if node is not self.master]

    def _differences(self) -> list[str]:
        """What the copies of the other candidates have otherwise than the master."""
        found = []
        wanted, files = _state(self.master)
        for node in self._list_others_with_data():
            try:
                config, jobs = _state(node)
            except errors.GanetiError as err:
                found.append(f"{node.short}: {errors.text(err)}")
                continue
            if config != wanted:
                found.append(f"{node.short}: configuration")
            names = sorted(k for k in {*files, *jobs} if files.get(k) != jobs.get(k))
            if names:
                found.append(f"{node.short}: {names[:5]}")
        return found


def _state(node: NetNode) -> tuple[str, dict[str, bytes]]:
    config = jsonio.dumps(base.to_wire(read_config(node.paths).data))
    jobs = {path.name: _content(path) for path in node.paths.queue.glob("job-*")}
    return config, {**jobs, **FileJournal(node.paths.queue).read_pending()}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # replaced by a part that is archived meanwhile
        return b""


def failover(node: NetNode) -> Ran:
    return node.gnt("cluster master-failover", timeout=140)


def _start_master(node: NetNode) -> Ran:
    return node.start(constants.MASTERD, timeout=60)


def _brief(ran: Ran) -> str:
    last = (ran.err or ran.out).strip().splitlines()
    return f"exit code {ran.code}" + (f", {last[-1][:240]}" if last else "")


def _wait(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    wait_for(condition, what, CALM, pause=0.1)

"""Random schedules of faults where an etcd cluster decides about the master; nobody helps."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import chaos
from etcd_server import EtcdServers, Member
from net_cluster import NetCluster, NetNode

from ganeti import constants

#: Numbers of the members of etcd on the switch.
MEMBERS = (101, 102, 103)
#: Seconds in which somebody must be the master once nothing is broken any more.
LATEST = 240.0
#: Seconds between two starts of a daemon that has ended, as systemd makes them.
RESTART = 5.0
#: Seconds in which a daemon that goes on after a pause finds out that its lease is over.
NOTICE = 5.0

_LINE = re.compile(
    r"^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d+).*(master in term (\d+)|stepping down|stopping)",
    re.MULTILINE,
)


@dataclass
class Reign:
    """One term of a master, by its log and by what was done to it."""

    node: str
    term: int
    begin: float
    end: float | None = None


class EtcdSchedule(chaos.Schedule):
    """One random course of events; the cluster must come back by itself."""

    def __init__(self, cluster: NetCluster, servers: EtcdServers, seed: int) -> None:
        super().__init__(cluster, seed)
        self.servers = servers
        self._still: list[Member] = []
        #: when a master daemon was killed or stood still, and for the second when it went on
        self._killed: list[tuple[str, float]] = []
        self._pauses: list[list[float | str]] = []

    # the course of events ------------------------------------------------------------------

    def _step(self) -> None:
        steps: list[tuple[int, Callable[[], None]]] = [
            (3, self._cut_off),
            (2, self._cut_some),
            (2, self._cut_one_way),
            (3, self._cut_from_etcd),
            (2, self._cut_member),
            (2, self._freeze_member),
            (2, self._kill_member),
            (2, self._mend_members),
            (3, self.heal),
            (3, self._kill),
            (3, self._restart),
            (3, self._freeze),
            (2, self._thaw),
            (2, self._failover),
        ]
        weights = [weight for weight, _step in steps]
        self.random.choices([step for _weight, step in steps], weights)[0]()
        time.sleep(self.random.choice((0.0, 1.0, 5.0, 12.0, 20.0)))  # the schedule's own time

    def _cut_from_etcd(self) -> None:
        node = self._victim()
        some = self.random.sample(MEMBERS, self.random.randint(1, len(MEMBERS)))
        ways = {(node.number, n) for n in some}
        back = {(b, a) for a, b in ways}
        both = self.random.choice((ways | back, ways | back, ways, back))
        self.note(f"{node.short} and etcd {some} are cut off from each other")
        self.cluster.cut(self.cluster.cuts | both)

    def _cut_member(self) -> None:
        number = self.random.choice(MEMBERS)
        ways = {(number, n) for n in MEMBERS if n != number}
        self.note(f"etcd {number} is cut off from the other members")
        self.cluster.cut(self.cluster.cuts | ways | {(b, a) for a, b in ways})

    def _freeze_member(self) -> None:
        for member in self.random.sample(self.servers.members, self.random.choice((1, 1, 2))):
            if member.signal(signal.SIGSTOP):
                self.note(f"{member.name} is frozen")
                self._still.append(member)

    def _kill_member(self) -> None:
        for member in self.random.sample(self.servers.members, self.random.choice((1, 1, 2))):
            if member.signal(signal.SIGKILL):
                self.note(f"kill -9 {member.name}")

    def _mend_members(self) -> None:
        self.note("all members of etcd run")
        for member in self._still:
            member.signal(signal.SIGCONT)
        self._still.clear()
        self.servers.start(wait=False)

    def _kill(self) -> None:
        before = {node.name: node.pid(constants.MASTERD) for node in self._masters()}
        super()._kill()
        now = time.time()
        for node in self.cluster.nodes.values():
            if before.get(node.name) and node.pid(constants.MASTERD) != before[node.name]:
                self._killed.append((node.name, now))

    def _freeze(self) -> None:
        now = time.time()
        super()._freeze()
        known = {pause[0] for pause in self._pauses if pause[2] == 0.0}
        for node, name in self._frozen:
            if name == constants.MASTERD and node.name not in known:
                self._pauses.append([node.name, now, 0.0])

    def _thaw(self) -> None:
        super()._thaw()
        for pause in self._pauses:
            pause[2] = pause[2] or time.time()

    # the end -------------------------------------------------------------------------------

    def _end_faults(self) -> None:
        self._mend_members()
        super()._end_faults()

    def _find_master(self) -> NetNode:
        """The master that came by itself; daemons are started as systemd does it."""
        end = time.monotonic() + LATEST
        refused: set[str] = set()
        while time.monotonic() < end:
            for node in self._masters():
                if self._commits(node):
                    return node
            for node in self.cluster.nodes.values():
                if node.read_master() == node.name and node.name not in refused:
                    ran = node.start(constants.MASTERD, timeout=60)
                    if ran.code:
                        self.note(f"masterd of {node.short}: {ran.err.strip()[-240:]}")
                    if ran.code == constants.EXIT_NOTMASTER:
                        refused.add(node.name)
            time.sleep(RESTART)
        raise AssertionError(f"no master within {LATEST:.0f} s")

    def _check(self) -> None:
        super()._check()
        reigns = self.find_reigns()
        for before, after in pairwise(reigns):
            assert before.end is not None, f"{before} has no end, and {after} began"
            assert before.end <= after.begin, f"{before} and {after} acted at the same time"
        self.note(f"{len(reigns)} masters, one after the other")

    def find_reigns(self) -> list[Reign]:
        """All masters of this cluster, by their terms."""
        found = [reign for node in self.cluster.nodes.values() for reign in self._read_reigns(node)]
        return sorted(found, key=lambda reign: reign.term)

    def _read_reigns(self, node: NetNode) -> list[Reign]:
        log = node.paths.log / "master-daemon.log"
        if not log.exists():
            return []
        text = log.read_text(errors="replace")
        reigns: list[Reign] = []
        for stamp, _what, term in _LINE.findall(text):
            moment = datetime.fromisoformat(stamp.replace(",", ".")).timestamp()
            if term:
                reigns.append(Reign(node.name, int(term), moment))
            elif reigns and reigns[-1].end is None:
                reigns[-1].end = self._find_end(node.name, moment)
        for reign, following in zip(reigns, [*reigns, None][1:], strict=False):
            deaths = [at for name, at in self._killed if name == node.name and at >= reign.begin]
            if deaths and (reign.end is None or deaths[0] < reign.end):
                reign.end = self._find_end(node.name, deaths[0])
            if reign.end is None and following is not None:
                reign.end = following.begin
        return reigns

    def _find_end(self, node: str, moment: float) -> float:
        """When it acted for the last time: before a pause from which it did not come back."""
        for name, begin, end in self._pauses:
            assert isinstance(begin, float)
            assert isinstance(end, float)
            if name == node and begin <= moment <= (end or moment) + NOTICE:
                return begin
        return moment

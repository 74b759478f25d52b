"""Random schedules of faults where an etcd cluster decides about the master; nobody helps."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from etcd_server import EtcdServers, Member
from net_cluster import NetCluster
from unaided import Pause, UnaidedSchedule

from ganeti import constants

#: Numbers of the members of etcd on the switch.
MEMBERS = (101, 102, 103)


class EtcdSchedule(UnaidedSchedule):
    """One random course of events; the cluster must come back by itself."""

    def __init__(self, cluster: NetCluster, servers: EtcdServers, seed: int) -> None:
        super().__init__(cluster, seed)
        self.servers = servers
        self._still: list[Member] = []

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
        before = self._list_master_pids()
        super()._kill()
        self._note_deaths(before)

    def _freeze(self) -> None:
        now = time.time()
        super()._freeze()
        known = {pause.node for pause in self._pauses if not pause.end}
        for node, name in self._frozen:
            if name == constants.MASTERD and node.name not in known:
                self._pauses.append(Pause(node.name, now))

    def _thaw(self) -> None:
        super()._thaw()
        for pause in self._pauses:
            pause.end = pause.end or time.time()

    # the end -------------------------------------------------------------------------------

    def _end_faults(self) -> None:
        self._mend_members()
        super()._end_faults()

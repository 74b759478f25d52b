"""One random schedule of faults over a simulated cluster, from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from claims import Program
from masters import Game
from world import BrokenPromiseError, Device, Faults, Host, State, StoreHost, World

from ganeti.recovery.role import Claim, Record

#: Seconds during which faults happen, and after the last one for everything to be whole again.
#: After a power cut of all a boot takes up to 300, and nodes that stay off are fenced 600 after it.
FAULTY = 120.0
RECOVERY = 1200.0
GUESTS = 3


@dataclass
class Outcome:
    """How one schedule ended."""

    seed: int
    nodes: int
    kinds: list[str]
    counts: dict[str, int]
    problem: str = ""
    #: seconds from the end of the faults until everything was whole
    recovered: float = 0.0
    steps: int = 0
    story: list[str] = field(default_factory=list)


class Schedule:
    """A cluster of 3 to 9 nodes and what happens to it."""

    def __init__(self, seed: int, deciders: str = "nodes") -> None:
        """``deciders``: the nodes vote, a store has the role, or the nodes vote with a witness."""
        self.seed = seed
        self.rng = rng = random.Random(seed)
        self.kinds: list[str] = []
        #: hosts that stay cut off
        self.left_out: frozenset[str] = frozenset()
        self.world = World(
            rng, node_lease=30.0, failover_after=15, fence_after=rng.choice((30.0, 60.0))
        )
        self.game = Game(self.world)
        count = rng.choice((3, 3, 4, 5, 5, 6, 7, 9))
        candidates = max(3, min(count, rng.choice((3, 5, 9))))
        for number in range(count):
            self._add_host(f"node{number + 1}", candidate=number < candidates)
        if deciders == "store":
            self._add_store(StoreHost(self.world))
        elif deciders == "witness":
            self._choose_witness()

    def _choose_witness(self) -> None:
        """Two candidates that can be the master, or four, and a witness without guests."""
        hosts = list(self.world.hosts.values())
        count = 2 if len(hosts) < 5 else random.Random(self.seed).choice((2, 4))
        for number, host in enumerate(hosts):
            host.is_candidate = number <= count
        hosts[count].is_witness = True

    def _add_store(self, store: StoreHost) -> None:
        own = random.Random(self.seed)
        store.rate = 1.0 + own.uniform(-0.0099, 0.0099)
        store.decides_alone = own.random() < 0.3
        self.world.store = store
        store.content.claim(Record(), Claim(1, next(iter(self.world.hosts))), 15)

    def _add_host(self, name: str, *, candidate: bool) -> None:
        rng, world = self.rng, self.world
        host = Host(world, name, candidate=candidate)
        host.rate = 1.0 + rng.uniform(-0.0099, 0.0099)
        host.has_watchdog = rng.random() < 0.5
        if rng.random() < 0.7:
            host.device = Device(rng.choice(("works", "works", "works", "fails", "lies")))
        host.machine.wants_watchdog = host.has_watchdog
        host.up_before = random.Random(f"{name} {self.seed}").choice((0.0, 300.0, 3600.0))
        world.hosts[name] = host

    def begin(self) -> None:
        """A healthy cluster with guests, a minute after its start."""
        world, hosts = self.world, list(self.world.hosts.values())
        names = [host.name for host in hosts]
        own = random.Random(f"services {self.seed}")
        homes = {f"guest{n}": self.rng.choice(names) for n in range(GUESTS)}
        for host in hosts:
            host.term = host.term.claim(1, names[0]) or host.term
            host.ssconf = names[0]
            if host.is_candidate:
                host.state = State((1, 0), homes, master=names[0])
            host.supervised = own.random() < 0.8
            world.schedule(own.uniform(0.0, 300.0), self.game.watch, host)
            host.plan_wake()
        self.game.writes = any(host.is_witness for host in hosts)
        self.game.crown(hosts[0], 1, hosts[0].clock())
        world.run(45.0)

    def play(self) -> Outcome:
        """Begin, faults, the end of all faults, and what became of it."""
        world = self.world
        problem = ""
        end = 0.0
        try:
            self.begin()
            self._plan_faults(world.now, world.now + FAULTY)
            world.run(world.now + FAULTY)
            self._heal()
            end = world.now
            if not world.run(end + RECOVERY, self.is_whole):
                problem = f"not whole after {RECOVERY:.0f} s: {self.explain()}"
        except BrokenPromiseError as err:
            problem = str(err)
        return Outcome(
            self.seed,
            len(world.hosts),
            self.kinds,
            world.counts,
            problem,
            world.now - end,
            world.steps,
            world.story,
        )

    # faults ------------------------------------------------------------------------------------

    def _plan_faults(self, begin: float, end: float) -> None:
        rng = self.rng
        for _ in range(rng.choice((1, 2, 3, 4, 6))):
            kind = rng.choice(tuple(FAULTS))
            self.kinds.append(kind)
            moment = rng.uniform(begin, end - 20.0)
            self.world.at(moment, FAULTS[kind], self, rng.uniform(1.0, 90.0))
        if self.seed % 4 == 3:
            self._plan_pause(begin)
        elif self.seed % 16 in (4, 8):
            self._plan_stop(begin)
        if self.seed % 8 == 1:
            self._plan_blackout(begin)
        if self.seed % 5 < 2:
            self._plan_strikes(begin)
        if self.world.store is not None:
            self._plan_store_faults(self.world.store, begin)

    def _plan_store_faults(self, store: StoreHost, begin: float) -> None:
        """With numbers of its own, so that the other faults are those of the seed."""
        own = random.Random(f"store {self.seed}")
        for _ in range(own.choice((0, 1, 1, 2, 3))):
            kind = own.choice(tuple(STORE_FAULTS))
            self.kinds.append(kind)
            moment, seconds = begin + own.uniform(0, 100.0), own.uniform(1.0, 60.0)
            self.world.at(moment, STORE_FAULTS[kind], self, store, own, seconds)

    def _make_devices_true(self) -> None:
        """A device that lies is one fault; a node that was released and cut off, a second."""
        for host in self.world.hosts.values():
            if host.device is not None and host.device.mode == "lies":
                host.device.mode = "works"

    def _plan_stop(self, begin: float) -> None:
        """With numbers of its own, so that the other faults are those of the seed."""
        own = random.Random(~self.seed)
        self._make_devices_true()
        for _ in range(own.choice((1, 1, 2))):
            self.kinds.append(STOP)
            self.world.at(begin + own.uniform(0, 100.0), self.stop_master, own.uniform(1.0, 90.0))

    def _plan_pause(self, begin: float) -> None:
        """With numbers of its own, so that the other faults are those of the seed."""
        own = random.Random(~self.seed)
        self._make_devices_true()
        for _ in range(own.choice((1, 1, 2))):
            self.kinds.append(PAUSE)
            self.world.at(begin + own.uniform(0, 100.0), self.pause, own.uniform(1.0, 90.0))
        if own.random() < 0.5:
            self.kinds.append(LATE_RELEASE)
            moment = begin + own.uniform(0, 20.0)
            seconds = own.uniform(8.0, 25.0)
            self.world.at(moment, self.pause, seconds)
            self.world.at(moment + seconds - 6.0, self.delay_releases, own)

    def _plan_blackout(self, begin: float) -> None:
        """All servers lose power, and boot in very different times."""
        own = random.Random(f"blackout {self.seed}")
        self.kinds.append(BLACKOUT)
        self.world.at(begin + own.uniform(0, 100.0), self.cut_all_power, own)

    def cut_all_power(self, own: random.Random) -> None:
        self.world.note("power of all fails")
        for host in self.world.hosts.values():
            host.cut_power()
            if own.random() < 0.9:
                self.world.schedule(5.0, host.begin_boot, own.uniform(15.0, 300.0))

    def _plan_strikes(self, begin: float) -> None:
        """The master fails, and so do some that try to take its place, at any of their steps."""
        own = random.Random(f"strikes {self.seed}")
        self.kinds.append(STRIKE)
        left = [own.choice((1, 1, 2, 3, 4))]

        def strike(program: Program, step: str) -> None:
            if left[0] and own.random() < 0.25:
                left[0] -= 1
                self._strike(program, step, own)

        def begin_strikes() -> None:
            self.game.note_step = strike
            for master in self.game.find_acting():
                self._end_master(master.host, own)

        self.game.writes = True
        for master in self.game.find_acting():
            master.write()
        self.world.at(begin + own.uniform(0, 60.0), begin_strikes)

    def _end_master(self, host: Host, own: random.Random) -> None:
        how = own.choice(("power", "cut", "daemon"))
        if how == "power":
            self.world.note(f"power of {host.name} fails")
            host.cut_power()
            self.world.schedule(own.uniform(10.0, 120.0), host.switch_on)
        elif how == "cut":
            self._cut_some([host], own)
        else:
            self.world.note(f"master daemon of {host.name} is killed")
            self.game.kill_master(host)

    def _strike(self, program: Program, step: str, own: random.Random) -> None:
        """Something ends the program or its server; others are cut off or lose power meanwhile."""
        host = program.host
        self.world.note(f"{host.name}: the {program.name} is struck when it {step}")
        how = own.choice(("program", "program", "power", "cut", "freeze", "freeze"))
        if how == "program":
            program.kill()
        elif how == "freeze":
            host.freeze("master", own.uniform(5.0, 60.0))
        elif how == "power":
            host.cut_power()
            self.world.schedule(own.uniform(5.0, 60.0), host.switch_on)
        else:
            self._cut_some([host], own)
        others = [other for other in self.world.hosts.values() if other is not host]
        for _ in range(own.choice((0, 1, 1, 2))):
            other = own.choice(others)
            if own.random() < 0.5:
                self.world.note(f"power of {other.name} fails")
                other.cut_power()
                if own.random() < 0.5:
                    self.world.schedule(own.uniform(5.0, 90.0), other.switch_on)
            else:
                self._cut_some([other], own)
        if own.random() < 0.3:
            self.world.cut.clear()

    def _cut_some(self, inside: list[Host], own: random.Random) -> None:
        """Cut these off, both ways, for some seconds."""
        self._cut([host.name for host in inside])
        self.world.schedule(own.uniform(1.0, 60.0), self.world.cut.clear)

    def _cut(self, names: list[str]) -> None:
        self.world.note(f"{', '.join(names)} cut off")
        for one in names:
            for other in self.world.hosts:
                if other not in names:
                    self.world.cut |= {(one, other), (other, one)}

    def _pick(self) -> Host:
        """A host; more often the one with the master daemon."""
        hosts = list(self.world.hosts.values())
        masters = [host for host in hosts if host.master is not None]
        return self.rng.choice(masters if masters and self.rng.random() < 0.4 else hosts)

    def _may_stand_still(self, host: Host) -> bool:
        """A device that lies is one fault; a node daemon that does not obey would be a second."""
        return host.device is None or host.device.mode != "lies" or host.has_watchdog

    def lose_messages(self, seconds: float) -> None:
        rng = self.rng
        self.world.faults = Faults(
            loss=rng.choice((0.0, 0.05, 0.3)),
            late=rng.choice((0.0, 0.05, 0.2)),
            twice=rng.choice((0.0, 0.1)),
        )
        self.world.schedule(seconds, self._mend_messages)

    def _mend_messages(self) -> None:
        self.world.faults = Faults()

    def cut_off(self, seconds: float) -> None:
        """One node, or a part of them, one way or both ways."""
        rng, world = self.rng, self.world
        names = list(world.hosts)
        inside = {self._pick().name} | {n for n in names if rng.random() < 0.2}
        way = rng.choice(("both", "both", "in", "out"))
        for one in inside:
            for other in names:
                if other not in inside:
                    if way != "in":
                        world.cut.add((one, other))
                    if way != "out":
                        world.cut.add((other, one))
        world.schedule(seconds, world.cut.clear)

    def flap(self, seconds: float) -> None:
        """A link that comes and goes."""
        for _ in range(4):
            self.world.schedule(self.rng.uniform(0, seconds), self.cut_off, seconds / 8)

    def crash(self, seconds: float) -> None:
        host = self._pick()
        self.world.note(f"power of {host.name} fails")
        host.cut_power()
        if self.rng.random() < 0.5:
            self.world.schedule(seconds, host.switch_on)

    def kill_node_daemon(self, seconds: float) -> None:
        host = self._pick()
        if self._may_stand_still(host):
            self.world.note(f"node daemon of {host.name} is killed")
            host.end_daemon()
            self.world.schedule(
                min(seconds, 10.0) if self.rng.random() < 0.5 else seconds, host.start_daemon
            )

    def kill_master(self, seconds: float) -> None:
        host = self._pick()
        if host.runs_master:
            self.world.note(f"master daemon of {host.name} is killed")
            self.game.kill_master(host)

    def stop_master(self, seconds: float) -> None:
        """An administrator stops the master daemon, and starts it again later."""
        for master in self.game.find_acting():
            self.world.note(f"{master.host.name} is stopped as the master")
            master.stop(seconds)

    def freeze(self, seconds: float) -> None:
        """A process, or all of them, stands still."""
        host = self._pick()
        for process in self.rng.choice((("node",), ("master",), ("node", "master"))):
            if process == "master" or self._may_stand_still(host):
                self.world.note(f"{process} daemon of {host.name} stands still for {seconds:.0f} s")
                host.freeze(process, seconds)

    def stall(self, seconds: float) -> None:
        host = self._pick()
        if self._may_stand_still(host):
            self.world.note(f"disks of {host.name} stand still for {seconds:.0f} s")
            host.stalled_until = self.world.now + seconds

    def pause(self, seconds: float) -> None:
        """An administrator wants no recovery for a while."""
        for master in self.game.find_acting():
            self.world.note(f"recovery pauses for {seconds:.0f} s")
            master.change(paused_until=self.world.now + seconds)

    def delay_releases(self, own: random.Random) -> None:
        """Around the end of a pause, releases of a node come late or twice, and it is cut off.

        Such a release is on its way already, so it comes after the cut, too.
        """
        world = self.world
        homes = sorted(
            {home for one in self.game.find_acting() for home in one.state.homes.values()}
        )
        host = world.hosts[own.choice(homes or sorted(world.hosts))]
        world.note(f"releases of {host.name} come late or twice")
        host.release_delays = lambda: (*own.choice(((), (0.0,))), own.uniform(3.0, 20.0))
        way = own.choice(("in", "in", "out"))
        world.schedule(own.uniform(6.0, 14.0), self._cut_slowly, host, way, own.uniform(5.0, 30.0))

    def _cut_slowly(self, host: Host, way: str, pause: float) -> None:
        """First one way, then both ways."""
        self._cut_one_way(host, way)
        self.world.schedule(pause, self._cut_one_way, host, "out" if way == "in" else "in")
        self.world.schedule(pause + 90.0, self._join, host)

    def _cut_one_way(self, host: Host, way: str) -> None:
        for other in self.world.hosts:
            if other != host.name:
                self.world.cut.add((other, host.name) if way == "in" else (host.name, other))

    def _join(self, host: Host) -> None:
        host.release_delays = None
        self.world.cut = {pair for pair in self.world.cut if self.left_out & set(pair)}

    def cut_store(self, store: StoreHost, own: random.Random, seconds: float) -> None:
        """The store and some nodes do not reach each other, one way or both ways."""
        masters = [host.name for host in self.world.hosts.values() if host.master is not None]
        some = {name for name in self.world.hosts if own.random() < 0.4}
        some |= {name for name in masters if own.random() < 0.5}
        way = own.choice(("both", "both", "in", "out"))
        for name in some:
            if way != "in":
                self.world.cut.add((name, store.name))
            if way != "out":
                self.world.cut.add((store.name, name))
        self.world.schedule(seconds, self.world.cut.clear)

    def freeze_store(self, store: StoreHost, own: random.Random, seconds: float) -> None:
        """Its members have no majority for a while; what was sent to them comes late."""
        self.world.note(f"the store stands still for {seconds:.0f} s")
        store.frozen["node"] = self.world.now + seconds * own.random()

    def elect_in_store(self, store: StoreHost, own: random.Random, seconds: float) -> None:
        """Its members choose a leader, for which every lease begins again."""
        self.world.note("the store has another leader")
        store.frozen["node"] = self.world.now + own.uniform(0.5, 4.0)
        store.content.extend(self.world.failover_after)

    def hurry(self, store: StoreHost, own: random.Random, seconds: float) -> None:
        """Candidates try to take over each second, whether or not they hear the master."""
        for host in self.world.hosts.values():
            if host.is_candidate:
                for moment in range(int(seconds)):
                    self.world.schedule(moment + own.random(), self.game.try_at_once, host)

    def disarm(self, seconds: float) -> None:
        """An administrator switches a watchdog off, and later on again."""
        host = self._pick()
        if host.has_watchdog and self._may_disarm(host):
            host.machine.wants_watchdog = False
            self.world.schedule(seconds, self._arm, host)

    def _may_disarm(self, host: Host) -> bool:
        return host.device is None or host.device.mode != "lies"

    @staticmethod
    def _arm(host: Host) -> None:
        host.machine.wants_watchdog = True

    # the end -----------------------------------------------------------------------------------

    def _heal(self) -> None:
        world = self.world
        world.note("all faults end")
        self.game.writes = False
        world.cut = set()
        world.faults = Faults()
        for host in world.hosts.values():
            host.thaw()
            host.release_delays = None
            host.stalled_until = min(host.stalled_until, world.now)
            if host.on:
                host.start_daemon()
        if world.store is not None:
            world.store.frozen["node"] = min(world.store.frozen["node"], world.now)
        self.game.note_step = lambda _program, _step: None
        groups = list(self._list_groups())
        for group in groups:
            for host in group:
                if sum(h.on for h in group) <= len(group) // 2:
                    host.switch_on()
        if STRIKE in self.kinds and self.seed % 3 == 0:
            self._leave_some_out(groups)

    def _list_groups(self) -> Iterator[list[Host]]:
        """Hosts of which more than half are needed, whichever copy of the state is the newest."""
        hosts = list(self.world.hosts.values())
        for offline in {host.state.offline: None for host in hosts if host.state is not None}:
            voters = [host for host in hosts if host.name not in offline]
            yield voters
            yield [host for host in voters if host.is_candidate]

    def _leave_some_out(self, groups: list[list[Host]]) -> None:
        """Some hosts that are not needed stay cut off."""
        own = random.Random(f"left out {self.seed}")
        for host in own.sample(list(self.world.hosts.values()), 2):
            others = self.left_out | {host.name}
            if all(
                sum(h.on and h.name not in others for h in group) > len(group) // 2
                for group in groups
            ):
                self.left_out = others
                self._cut([host.name])
                self.world.cut |= {(host.name, StoreHost.name), (StoreHost.name, host.name)}

    def is_whole(self) -> bool:
        return self.explain() == ""

    def explain(self) -> str:
        """What is not whole yet; empty when all is."""
        acting = self.game.find_acting()
        if len(acting) != 1:
            return f"{len(acting)} masters act"
        master = acting[0]
        for guest, home in master.state.homes.items():
            host = self.world.hosts[home]
            if guest not in host.running and self._is_owed(master, host):
                return f"{guest} does not run on {home} (on: {host.on})"
        return ""

    def _is_owed(self, master: object, host: Host) -> bool:
        """Whether its guests must run: the node lives, or its death can be proven."""
        if host.on and host.name not in self.left_out:
            return True
        return host.device is not None and host.device.mode != "fails"


FAULTS = {
    "messages lost, late, doubled": Schedule.lose_messages,
    "network cut": Schedule.cut_off,
    "flapping link": Schedule.flap,
    "power failure": Schedule.crash,
    "node daemon killed": Schedule.kill_node_daemon,
    "master daemon killed": Schedule.kill_master,
    "process frozen": Schedule.freeze,
    "disks stall": Schedule.stall,
    "watchdog switched off": Schedule.disarm,
}
STORE_FAULTS = {
    "store cut off": Schedule.cut_store,
    "store without a majority": Schedule.freeze_store,
    "store with another leader": Schedule.elect_in_store,
    "candidates in a hurry": Schedule.hurry,
}
STRIKE = "candidates struck while they take over"
PAUSE = "pause for maintenance"
LATE_RELEASE = "release late or twice"
STOP = "master daemon stopped"
BLACKOUT = "power failure of all"


def play(seed: int, deciders: str = "nodes") -> Outcome:
    return Schedule(seed, deciders).play()

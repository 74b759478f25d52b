"""A cluster that exists only in memory: hosts, their clocks, the network, fence devices.

Time is a number. Everything that happens is an entry in one queue, so a seed plays the same
schedule again. The decisions are those of :mod:`ganeti.recovery` and :mod:`ganeti.config.vote`;
this module performs their effects as the daemons do.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memory_store import MemoryStore

from ganeti.recovery import bounds
from ganeti.recovery.master import LONGEST_BOOT
from ganeti.recovery.node import Called, Effect, GuestsEnded, NodeMachine, Tick
from ganeti.recovery.terms import Term

#: Seconds between two calls of the master, and until a call fails.
PERIOD = 5.0
#: Seconds until a daemon that has ended is started again.
RESTART = 5.0


class BrokenPromiseError(AssertionError):
    """Something happened that must never happen."""


@dataclass(slots=True)
class Faults:
    """What goes wrong with messages; probabilities for each."""

    loss: float = 0.0
    late: float = 0.0
    twice: float = 0.0


@dataclass(slots=True)
class State:
    """What the candidates have copies of."""

    position: tuple[int, int]
    homes: dict[str, str]
    #: the master according to the configuration
    master: str = ""
    offline: frozenset[str] = frozenset()
    #: until when an administrator wants no recovery
    paused_until: float = 0.0
    #: positions of all changes that are in it
    changes: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Device:
    """The fence device of a host: works, fails, or lies."""

    mode: str = "works"


class Host:
    """One server: what is on its disk, what runs on it, and its clock."""

    def __init__(self, world: World, name: str, *, candidate: bool) -> None:
        self.world = world
        self.name = name
        self.is_candidate = candidate
        #: a candidate that does not take over
        self.is_witness = False
        self.rate = 1.0
        self.has_watchdog = False
        self.device: Device | None = None
        # on disk
        self.term = Term()
        self.state: State | None = None
        #: whether the state was made here
        self.made_here = False
        #: how many of its last changes its number does not count, after a power cut
        self.uncounted = 0
        #: the boot in which it was written
        self.state_boot = 0
        #: the master according to the ssconf files
        self.ssconf = ""
        #: whether an administrator has stopped the master daemon
        self.stopped = False
        self.rights: dict[str, tuple[int, int]] = {}
        # until the power is cut
        self.on = True
        #: it has power and no daemon yet
        self.boots = False
        #: how long it was up when the schedule began; 0 after a boot
        self.up_before = 0.0
        self.boot = 0
        self.booted = 0.0
        self.running: set[str] = set()
        self.stalled_until = 0.0
        # processes: until when they stand still, and what waits for them
        self.frozen = {"node": 0.0, "master": 0.0}
        self.machine = self._make_machine()
        #: counts lives of the node daemon, so that what a dead one was to do is dropped
        self.life = 0
        self.daemon_up = True
        #: after how many seconds each copy of a release from the lease comes; None: as other calls
        self.release_delays: Callable[[], tuple[float, ...]] | None = None
        #: when the watchdog was fed for the last time before the daemon stood still or ended
        self.fed = 0.0
        #: the master daemon: while it starts, and when it serves
        self.starting: Any = None
        self.master: Any = None
        #: whether systemd starts a master daemon again that has failed
        self.supervised = True
        self.fed_check = False
        #: how often the watchdog was switched off
        self.switched_off = 0
        self._wake: float | None = None

    def _make_machine(self) -> NodeMachine:
        rng = self.world.rng
        machine = NodeMachine(f"{self.name}.{self.boot}", self.clock(), rng.random)
        machine.wants_watchdog = self.has_watchdog
        return machine

    @property
    def runs_master(self) -> bool:
        """Whether a master daemon runs, if it serves or not."""
        return self.starting is not None or self.master is not None

    # time --------------------------------------------------------------------------------------

    def clock(self) -> float:
        """This host's clock: seconds since its boot, by its own rate."""
        return (self.world.now - self.booted) * self.rate

    def to_true(self, moment: float) -> float:
        return self.booted + moment / self.rate

    @property
    def booting_until(self) -> float:
        """Until when others may be booting that got power with this host, on its clock."""
        return LONGEST_BOOT - self.up_before

    # what is on disk ---------------------------------------------------------------------------

    def write_state(self, state: State, *, made_here: bool) -> None:
        self.state, self.made_here, self.uncounted = state, made_here, 0
        self.state_boot = self.boot

    @property
    def position(self) -> tuple[int, int]:
        """How new its state is, as its file says."""
        if self.state is None:
            return (0, 0)
        term, number = self.state.position
        return term, max(0, number - self.uncounted)

    # power and processes -----------------------------------------------------------------------

    def cut_power(self) -> None:
        if not self.on:
            return
        self.on = False
        if self.made_here:  # the master does not flush its number
            own = random.Random(f"{self.name} {self.boot} {self.world.now}")
            self.uncounted += own.choice((0, 1, 5))
        self.running.clear()
        self.end_daemon()
        self.end_master()

    def begin_boot(self, seconds: float) -> None:
        """Power is back; the daemons run after so many seconds."""
        self.boots = True
        self.world.schedule(seconds, self.switch_on)

    def switch_off(self) -> None:
        """What a fence device does."""
        if self.boots:
            raise BrokenPromiseError(f"{self.name} is switched off while it boots")
        self.cut_power()

    def switch_on(self) -> None:
        self.boots = False
        if self.on:
            return
        self.on = True
        self.up_before = 0.0
        self.boot += 1
        self.booted = self.world.now
        self.frozen = {"node": 0.0, "master": 0.0}
        self.stalled_until = 0.0
        self.start_daemon()
        self.world.schedule(RESTART, self.world.boot_master, self, self.boot)

    def end_daemon(self) -> None:
        """The node daemon is killed; its guests go on."""
        self.life += 1
        if self.daemon_up:
            self._note_fed()
        self.daemon_up = False

    def start_daemon(self) -> None:
        if not self.on or self.daemon_up:
            return
        kept = self.machine.holder.keep()
        self.machine = self._make_machine()
        self.machine.restore(kept, self.clock())  # of another boot after a power cut
        self.daemon_up = True
        self._wake = None
        self.plan_wake()

    def end_master(self) -> None:
        self.starting = self.master = None

    def freeze(self, process: str, seconds: float) -> None:
        until = self.world.now + seconds
        if process == "node" and self.frozen["node"] <= self.world.now:
            self._note_fed()
        self.frozen[process] = max(self.frozen[process], until)

    def thaw(self) -> None:
        for process in self.frozen:
            self.frozen[process] = min(self.frozen[process], self.world.now)

    # the node daemon ---------------------------------------------------------------------------

    def plan_wake(self) -> None:
        wake = self.machine.find_wake()
        if wake is None or (self._wake is not None and self._wake <= wake):
            return
        self._wake = wake
        self.world.at(max(self.to_true(wake) + 1e-6, self.world.now), self._tick, self.life)

    def _tick(self, life: int) -> None:
        if life != self.life or not self.daemon_up:
            return
        if self.world.put_off(self, "node", self._tick, life):
            return
        self._wake = None
        self.perform(self.machine.feed(Tick(self.clock())))
        self.plan_wake()

    def hear_call(self, grant: Any) -> None:
        """A call of the master whose term counts."""
        if grant is not None:
            self.perform(self.machine.feed(Called(self.clock(), grant)))
        self.plan_wake()

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if effect is Effect.ATTEMPT:
                self.world.attempt(self)
            elif effect is Effect.END_GUESTS:
                self.world.schedule(self.world.rng.uniform(0.05, 2.0), self._end_guests, self.life)
            elif effect is Effect.FEED and not self.fed_check:
                self.fed_check = True
                self.fed = self.world.now
                self._check_watchdog(self.boot, self.switched_off)
            elif effect is Effect.DISARM:
                self.fed_check = False
                self.switched_off += 1

    def _end_guests(self, life: int) -> None:
        """SIGKILL; a guest whose disk stands still does not die of it."""
        if life != self.life:
            return
        if self.stalled_until > self.world.now:
            self.world.at(self.stalled_until, self._end_guests, life)
            return
        if not self.machine.holder.may_act(self.clock()):
            self.running.clear()
        self.machine.feed(GuestsEnded(self.clock()))

    # the watchdog ------------------------------------------------------------------------------

    def _note_fed(self) -> None:
        self.fed = self.find_last_fed()

    def find_last_fed(self) -> float:
        """When the watchdog was fed for the last time, which happens each second."""
        until = self.machine.holder.acts_until
        active = self.daemon_up and self.frozen["node"] <= self.world.now
        if not active or until is None:
            return self.fed
        return max(self.fed, min(self.world.now, self.to_true(until)))

    def _check_watchdog(self, boot: int, switched_off: int) -> None:
        if switched_off != self.switched_off:
            return
        if boot != self.boot or not self.on:
            self.fed_check = False
            return
        last = self.find_last_fed()
        limit = bounds.count_watchdog(self.world.node_lease)
        if self.world.now - last >= limit - 1e-6:
            self.fed_check = False
            self.world.count("reset by the watchdog")
            self.cut_power()
            self.world.schedule(20.0, self.switch_on)
            return
        self.world.at(last + limit, self._check_watchdog, boot, switched_off)


class StoreHost:
    """The store that holds the role of the master: one service, as its members agree."""

    name = "store"

    def __init__(self, world: World) -> None:
        self.world = world
        self.rate = 1.0
        self.on = self.daemon_up = True
        self.frozen = {"node": 0.0}
        self.content = MemoryStore(self.clock)
        #: whether a master need not reach a majority of the candidates
        self.decides_alone = False

    def clock(self) -> float:
        return self.world.now * self.rate


@dataclass
class World:
    """The queue of what happens, the network and the hosts."""

    rng: random.Random
    node_lease: float
    failover_after: int
    fence_after: float
    now: float = 0.0
    hosts: dict[str, Host] = field(default_factory=dict)
    #: None: the nodes vote
    store: StoreHost | None = None
    faults: Faults = field(default_factory=Faults)
    cut: set[tuple[str, str]] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    steps: int = 0

    def __post_init__(self) -> None:
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self.attempt: Callable[[Host], None] = lambda _host: None
        self.boot_master: Callable[[Host, int], None] = lambda _host, _boot: None

    def at(self, moment: float, what: Callable[..., None], *args: Any) -> None:
        self._number += 1
        heapq.heappush(self._queue, (moment, self._number, what, args))

    def schedule(self, seconds: float, what: Callable[..., None], *args: Any) -> None:
        self.at(self.now + seconds, what, *args)

    def put_off(
        self, host: Host | StoreHost, process: str, what: Callable[..., None], *args: Any
    ) -> bool:
        """Whether a process stands still; then the same is done when it continues."""
        until = host.frozen[process]
        if until <= self.now:
            return False
        self.at(until, what, *args)
        return True

    def run(self, until: float, done: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass; True when ``done`` was true at one of the seconds looked at."""
        look = self.now
        while self._queue and self._queue[0][0] <= until:
            moment, _number, what, args = heapq.heappop(self._queue)
            self.now = max(self.now, moment)
            self.steps += 1
            if self.steps > 200_000:
                raise BrokenPromiseError(f"endless: {what} at {self.now}")
            what(*args)
            if self.now >= look:
                look = self.now + 1.0
                if done():
                    return True
        self.now = until
        return done()

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def note(self, text: str) -> None:
        self.story.append(f"{self.now:9.3f} {text}")

    # messages ----------------------------------------------------------------------------------

    def send(
        self,
        source: Host | StoreHost,
        target: Host | StoreHost,
        what: Callable[..., None],
        *args: Any,
    ) -> None:
        """Deliver a message to a process that decides itself whether it still lives."""
        if (source.name, target.name) in self.cut:
            return
        faults, rng = self.faults, self.rng
        if source is target:
            self.schedule(0.001, what, *args)
            return
        times = 1
        if faults.loss and rng.random() < faults.loss:
            return
        if faults.twice and rng.random() < faults.twice:
            times = 2
        for _ in range(times):
            delay = rng.random() * 0.05
            if faults.late and rng.random() < faults.late:
                delay += rng.random() * 60.0
            self.schedule(delay, what, *args)

    def call(
        self,
        source: Host,
        target: Host | StoreHost,
        serve: Callable[[], Any],
        answer: Callable[[Any], None],
        lives: Callable[[], bool],
        seconds: float = PERIOD,
    ) -> None:
        """A node call: served by the node daemon; ``answer`` is called once, None for no answer.

        ``lives`` says whether the caller still runs; it stands still when its process does.
        """
        open_ = [True]

        def end(value: Any) -> None:
            if not open_[0]:
                return
            if not lives():
                open_[0] = False
                return
            if self.put_off(source, "master", end, value):
                return
            open_[0] = False
            answer(value)

        def receive() -> None:
            if not target.on or not target.daemon_up:
                return
            if self.put_off(target, "node", receive):
                return
            self.send(target, source, end, serve())

        self.send(source, target, receive)
        self.schedule(seconds, end, None)

"""The master role in the simulator: copies of the state, fencing, starts, and who begins to act."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from claims import STORE_PATIENCE, MasterStart, Program, Takeover
from world import PERIOD, RESTART, BrokenPromiseError, Host, StoreHost, World

from ganeti.config import vote
from ganeti.master.copy_round import count_needed_copies
from ganeti.recovery import bounds, role, standby
from ganeti.recovery.ladder import Failed, Ladder, Look, Proven, Rung, Try, Wait
from ganeti.recovery.master import (
    Answered,
    Fence,
    FenceEnded,
    Followed,
    MasterMachine,
    Settings,
    StepDown,
    Tick,
)
from ganeti.recovery.node import AttemptEnded, Signed

#: Seconds until a renewal in the store that failed is tried again.
_STORE_PAUSE = 0.25
#: Seconds until ssconf files are sent again, and between two runs of the watcher.
_SSCONF_PAUSE = 15.0
_WATCHER_PERIOD = 300.0


class Master:
    """One master daemon. It ends when its machine says so."""

    def __init__(self, game: Game, host: Host, number: int, claimed: float) -> None:
        """``claimed``: when it began to claim its term, on the clock of its host."""
        assert host.state is not None
        self.game = game
        self.world = game.world
        self.host = host
        self.number = number
        self.state = dataclasses.replace(host.state, position=(number, 1))
        host.write_state(self.state, made_here=True)
        world, now = self.world, host.clock()
        settings = Settings(world.failover_after, world.fence_after, world.node_lease)
        self.machine = MasterMachine(settings, contact=claimed, booting_until=host.booting_until)
        self._follow(now + bounds.count_waiting(world.failover_after))
        self.contacts: dict[str, float] = {}
        self.seen_running: dict[str, tuple[str, ...]] = {}
        self.starts = 0
        self._commits: list[tuple[tuple[int, int], set[str], Callable[[], None]]] = []
        self._stops = False
        #: when the lease in the store began
        self._role_since = claimed
        world.schedule(0.0, self._loop)
        world.schedule(0.0, self._send_ssconf, frozenset(world.hosts))
        if self.game.writes:
            world.schedule(1.0, self.write)
        if world.store is not None:
            world.schedule(0.0, self._renew_role, world.store)

    def lives(self) -> bool:
        return self.host.master is self

    def _follow(self, now: float) -> None:
        world = self.world
        online = [name for name in world.hosts if name not in self.state.offline]
        provable = [n for n in online if n != self.host.name]
        self.machine.follow_nodes(online, provable, now)

    # every few seconds -------------------------------------------------------------------------

    def _loop(self) -> None:
        world, host = self.world, self.host
        if not self.lives() or world.put_off(host, "master", self._loop):
            return
        if not self._observe():
            return
        for other in world.hosts.values():
            if other.name in self.state.offline:
                continue
            if other.is_candidate:
                self._send_state(other)
            self._call_node(other)
        self._start_guests()
        world.schedule(PERIOD / host.rate, self._loop)

    def _observe(self) -> bool:
        """What the machine wants now; False when this daemon has ended."""
        now = self.host.clock()
        paused = self._stops or self.state.paused_until > self.world.now
        self.machine.set_paused(now, paused=paused)
        for effect in self.machine.feed(Tick(now)):
            if isinstance(effect, StepDown):
                self.end("lost the majority", again=True)
                return False
            if isinstance(effect, Fence):
                self.world.count("fencing begun")
                self._fence(effect.node)
        return True

    def stop(self, pause: float) -> None:
        """An administrator stops the daemon: it releases all nodes and ends some seconds later."""
        self._stops = True
        if not self._observe():
            return
        for _ in range(2):
            for other in self.world.hosts.values():
                if other.name not in self.state.offline:
                    self._call_node(other)
        self.world.schedule(self.world.rng.uniform(0.1, 10.0), self._quit, pause)

    def _quit(self, pause: float) -> None:
        if self.lives():
            self.host.end_master()
            self.host.stopped = True
            self.world.schedule(pause, self.game.start_master, self.host)

    def end(self, why: str, *, again: bool = False) -> None:
        """``again``: it has not been replaced, so it is started again."""
        if not self.lives():
            return
        self.world.note(f"{self.host.name} ends as master of term {self.number}: {why}")
        self.world.count("master stepped down")
        self.host.end_master()
        self.game.note_end(self.host, again=again)

    def _send_ssconf(self, left: frozenset[str]) -> None:
        """Every node learns who the master is; who does not answer is told again."""
        world, host, number = self.world, self.host, self.number
        if not self.lives() or world.put_off(host, "master", self._send_ssconf, left):
            return
        missing = set(left)

        def write(other: Host) -> bool | None:
            term = other.term.hear(number, host.name)
            if term is None:
                return None
            other.term, other.ssconf = term, host.name
            return True

        for name in sorted(left - self.state.offline):
            world.call(
                host,
                world.hosts[name],
                lambda name=name: write(world.hosts[name]),
                lambda done, name=name: missing.discard(name) if done else None,
                self.lives,
            )
        if left:
            seconds = _SSCONF_PAUSE / host.rate
            world.schedule(seconds, lambda: self._send_ssconf(frozenset(missing)))

    def _send_state(self, other: Host) -> None:
        sent, state, number = self.host.clock(), self.state, self.number
        limit = self.world.failover_after

        def serve() -> bool | None:
            term = other.term.hear(number, self.host.name)
            if term is None:
                return False
            other.term = term
            other.machine.feed(Signed(other.clock(), limit))
            other.plan_wake()
            if other is not self.host and (
                other.state is None or other.state.position < state.position
            ):
                other.write_state(state, made_here=False)
                if other.runs_master:
                    self.game.stop_master(other, "another master writes here", again=True)
            return True

        def answer(ok: bool | None) -> None:
            if ok is None:
                return
            if not ok:
                self.end("deposed")
                return
            self.contacts[other.name] = max(sent, self.contacts.get(other.name, 0.0))
            self._count_contact()
            self._note_copy(other.name, state.position)

        self.world.call(self.host, other, serve, answer, self.lives)

    def _count_contact(self) -> None:
        voters = [h.name for h in self.world.hosts.values() if h.is_candidate]
        voters = [name for name in voters if name not in self.state.offline]
        moments = sorted((self.contacts.get(name, -1.0) for name in voters), reverse=True)
        moment = moments[vote.majority(len(voters)) - 1]
        store = self.world.store
        if store is not None:
            moment = self._role_since if store.decides_alone else min(moment, self._role_since)
        if moment >= 0:
            for effect in self.machine.feed(Followed(moment)):
                if isinstance(effect, StepDown):
                    self.end("lost the majority, and found it again too late", again=True)

    def _renew_role(self, store: StoreHost) -> None:
        """Renew the lease in the store, as long as this master may act."""
        world, host = self.world, self.host
        if not self.lives() or world.put_off(host, "master", self._renew_role, store):
            return
        since, claim = host.clock(), role.Claim(self.number, host.name)
        if not self.machine.may_act(since):
            return
        seconds = world.failover_after

        def answer(granted: Any) -> None:
            if granted is False:
                self.end("lost the role", again=True)
                return
            if granted is not None:
                self._role_since = since
                self._count_contact()
            pause = _STORE_PAUSE if granted is None else seconds / role.RENEWALS
            world.schedule(pause / host.rate, self._renew_role, store)

        world.call(
            host,
            store,
            lambda: store.content.renew(claim, seconds) or False,
            answer,
            self.lives,
            STORE_PATIENCE,
        )

    def _call_node(self, other: Host) -> None:
        sent = self.host.clock()
        grant, number = self.machine.grant(other.name, sent), self.number

        def serve() -> Any:
            term = other.term.hear(number, self.host.name)
            if term is None:
                return False
            other.term = term
            other.hear_call(grant)
            return other.machine.make_stamp(other.clock()), tuple(sorted(other.running))

        def answer(value: Any) -> None:
            if value is None:
                return
            if value is False:
                self.end("deposed")
                return
            stamp, running = value
            self.machine.feed(Answered(sent, other.name, stamp, self.host.clock()))
            self.seen_running[other.name] = running

        delays = other.release_delays
        if delays is not None and grant is not None and not grant.seconds:
            self._send_late(other, serve, delays())
        else:
            self.world.call(self.host, other, serve, answer, self.lives)

    def _send_late(self, other: Host, serve: Callable[[], Any], delays: tuple[float, ...]) -> None:
        """Deliver a call at these moments; its answers are lost."""

        def receive() -> None:
            if not other.on or not other.daemon_up:
                return
            if not self.world.put_off(other, "node", receive):
                serve()

        for delay in delays:
            self.world.schedule(delay, receive)

    # changes -----------------------------------------------------------------------------------

    def change(self, then: Callable[[], None] = lambda: None, **values: Any) -> None:
        """Change the state; ``then`` follows when a majority of the candidates has it."""
        term, sequence = self.state.position
        position = (term, sequence + 1)
        changes = (*self.state.changes, position)
        self.state = dataclasses.replace(self.state, position=position, changes=changes, **values)
        self.host.write_state(self.state, made_here=True)
        self._commits.append((position, {self.host.name}, then))
        for other in self.world.hosts.values():
            if (
                other.is_candidate
                and other is not self.host
                and other.name not in self.state.offline
            ):
                self._send_state(other)
        self._note_copy(self.host.name, position)

    def write(self) -> None:
        """A job changes something, every few seconds."""
        if not (self.lives() and self.game.writes):
            return
        if self.world.put_off(self.host, "master", self.write):
            return
        if self.machine.may_act(self.host.clock()):
            self.change()
        self.world.schedule(self.world.rng.uniform(1.0, 10.0), self.write)

    def _note_copy(self, name: str, position: tuple[int, int]) -> None:
        voters = [h.name for h in self.world.hosts.values() if h.is_candidate]
        online = sum(name not in self.state.offline for name in voters)
        needed = count_needed_copies(online)
        done = []
        for entry in self._commits:
            if position >= entry[0]:
                entry[1].add(name)
                if len(entry[1]) >= needed:
                    done.append(entry)
        for entry in done:
            self._commits.remove(entry)
            self.game.acknowledged.add(entry[0])
            entry[2]()

    # fencing -----------------------------------------------------------------------------------

    def _fence(self, name: str) -> None:
        target = self.world.hosts[name]
        devices = [Rung.AGENT] if target.device is not None else []
        machine = self.machine
        ladder = Ladder(
            devices,
            lease_over=machine.find_lease_end(name),
            watchdog=machine.is_armed(name),
        )
        self._climb(ladder, target)

    def _climb(self, ladder: Ladder, target: Host) -> None:
        world, host = self.world, self.host
        if not self.lives() or world.put_off(host, "master", self._climb, ladder, target):
            return
        if not self._observe():
            return
        step = ladder.decide(host.clock())
        if isinstance(step, Wait):
            world.at(host.to_true(step.until) + 1e-6, self._climb, ladder, target)
        elif isinstance(step, Try):
            world.schedule(world.rng.uniform(0.5, 4.0), self._switch_off, ladder, target)
        elif isinstance(step, Look):
            self._call_again(ladder, target)
        elif isinstance(step, Failed):
            world.count("not proven")
            self._end_fence(target, proven=False)
        elif isinstance(step, Proven):
            world.count(f"proven by {step.rung.value}")
            self._give_away(target)

    def _switch_off(self, ladder: Ladder, target: Host) -> None:
        device = target.device
        assert device is not None
        if device.mode == "works":
            target.switch_off()
        ladder.note_result("cannot be reached" if device.mode == "fails" else "")
        self._climb(ladder, target)

    def _call_again(self, ladder: Ladder, target: Host) -> None:
        def answer(value: bool | None) -> None:
            ladder.note_call(answers=value is not None)
            self._climb(ladder, target)

        self.world.call(self.host, target, lambda: True, answer, self.lives)

    def _end_fence(self, target: Host, *, proven: bool) -> None:
        self.machine.feed(FenceEnded(self.host.clock(), target.name, proven))

    def _give_away(self, dead: Host) -> None:
        """The node is offline from now on, and its guests live elsewhere."""
        now = self.host.clock()
        fresh = [
            name
            for name, heard in self.machine.heard.items()
            if name not in (dead.name, *self.state.offline) and now - heard < 2 * PERIOD
        ]
        if not fresh:
            self._end_fence(dead, proven=False)
            return
        homes = {
            guest: self.world.rng.choice(fresh) if home == dead.name else home
            for guest, home in self.state.homes.items()
        }
        offline = self.state.offline | {dead.name}
        self.world.note(f"{self.host.name} moves the guests of {dead.name}")

        def then() -> None:
            self.world.count("node replaced")
            self._end_fence(dead, proven=True)
            self._follow(self.host.clock())

        self.change(then, homes=homes, offline=offline)

    # guests ------------------------------------------------------------------------------------

    def _start_guests(self) -> None:
        if self._commits:
            return
        for guest, home in self.state.homes.items():
            running = self.seen_running.get(home)
            known = self.machine.nodes.get(home)
            if running is None or guest in running or known is None or known.fencing:
                continue
            self._start(guest, self.world.hosts[home])

    def _start(self, guest: str, target: Host) -> None:
        now = self.host.clock()
        if not self.machine.may_act(now):
            return
        self.starts += 1
        right = (self.number, self.starts)
        grant, number = self.machine.grant(target.name, now), self.number
        world = self.world

        def run(life: int) -> None:
            if life != target.life or not target.on:
                return
            if world.put_off(target, "node", run, life):
                return
            if target.machine.may_start(target.clock()):
                self.game.begin(guest, target)

        def serve() -> bool:
            term = target.term.hear(number, self.host.name)
            if term is None:
                return False
            target.term = term
            target.hear_call(grant)
            if right <= target.rights.get(guest, (0, 0)) or guest in target.running:
                return True
            if not target.machine.may_start(target.clock()):
                return True
            target.rights[guest] = right
            delay = world.rng.uniform(0.1, 2.0) + max(0.0, target.stalled_until - world.now)
            world.schedule(delay, run, target.life)
            return True

        self.world.call(self.host, target, serve, lambda _value: None, self.lives)


class Game:
    """The rules of the vote around a world, and what must never happen in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: whether jobs run all the time
        self.writes = False
        #: positions of the changes that clients count on
        self.acknowledged: set[tuple[int, int]] = set()
        world.attempt = self.attempt
        world.boot_master = self.boot_master
        #: what happens when a program reaches a step
        self.note_step: Callable[[Program, str], None] = lambda _program, _step: None

    # invariants --------------------------------------------------------------------------------

    def find_acting(self) -> list[Master]:
        return [
            host.master
            for host in self.world.hosts.values()
            if host.on and host.master is not None and host.master.machine.may_act(host.clock())
        ]

    def begin(self, guest: str, host: Host) -> None:
        """A guest begins to run; nowhere else may it run at this moment."""
        others = [h.name for h in self.world.hosts.values() if h is not host and guest in h.running]
        host.running.add(guest)
        self.world.note(f"{guest} runs on {host.name}")
        self.world.count("guest started")
        if others:
            raise BrokenPromiseError(f"{guest} runs on {host.name} and on {others}")

    def crown(self, host: Host, number: int, claimed: float) -> None:
        host.master = Master(self, host, number, claimed)
        self.world.note(f"{host.name} is the master of term {number}")
        self.world.count("master began")
        lost = self.acknowledged.difference(host.state.changes)
        if lost and host.master in self.find_acting():  # else its lease ended before it began
            raise BrokenPromiseError(f"{host.name} begins as the master without {sorted(lost)}")
        acting = self.find_acting()
        if len(acting) > 1:
            raise BrokenPromiseError(
                f"masters that act: {', '.join(sorted(m.host.name for m in acting))}"
            )

    # who tries to become the master --------------------------------------------------------------

    def attempt(self, host: Host) -> None:
        """A candidate has not heard the master for long enough."""
        paused = host.state is not None and host.state.paused_until > self.world.now
        if paused or not self._is_standby(host):
            self.end_attempt(host)
            return
        self.world.count("attempt to take over")
        Takeover(self, host)

    @staticmethod
    def _is_standby(host: Host) -> bool:
        return (
            host.state is not None
            and not host.is_witness
            and standby.is_standby(
                host.name, (host.ssconf, host.term.master), serves=host.runs_master or host.stopped
            )
        )

    def end_attempt(self, host: Host) -> None:
        host.machine.feed(AttemptEnded(host.clock(), self._is_standby(host)))
        host.plan_wake()

    def try_at_once(self, host: Host) -> None:
        """A candidate tries to take over whether or not it hears the master: the store decides."""
        if host.on and host.daemon_up and not host.runs_master and host.state is not None:
            Takeover(self, host)

    # the master daemon of a host ----------------------------------------------------------------

    def start_master(self, host: Host, then: Callable[[Any], None] | None = None) -> None:
        """Start it unless it runs; ``then`` is called when it serves, or has ended."""
        if host.on and host.state is not None and not host.runs_master:
            MasterStart(self, host)
        if host.starting is not None and then is not None:
            host.starting.listeners.append(then)
        elif then is not None:
            self.world.schedule(0.01, then, None)

    def stop_master(self, host: Host, why: str, *, again: bool = False) -> None:
        """``again``: it is killed, so it is started again."""
        if host.master is not None:
            host.master.end(why, again=again)
        elif host.starting is not None and again:
            host.starting.kill()
        elif host.starting is not None:
            host.starting.end_in_good_order()

    def kill_master(self, host: Host) -> None:
        if host.starting is not None:
            host.starting.kill()
        elif host.master is not None:
            host.end_master()
            self.note_end(host, again=True)

    def note_end(self, host: Host, *, again: bool) -> None:
        """A master daemon has ended."""
        if again and host.supervised:
            self.world.schedule(RESTART, self.boot_master, host, host.boot)

    def boot_master(self, host: Host, boot: int) -> None:
        """As systemd does: at a boot, and after a failure."""
        if host.boot == boot:
            self.start_master(host)

    def watch(self, host: Host) -> None:
        """The watcher of a host, which runs every few minutes."""
        self.world.schedule(_WATCHER_PERIOD, self.watch, host)
        if host.ssconf == host.name:
            self.start_master(host)

"""The master role in the simulator: the vote, the claim, copies of the state, fencing, starts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

from world import PERIOD, RESTART, BrokenPromiseError, Host, State, StoreHost, World

from ganeti import errors
from ganeti.config import vote
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.recovery import bounds, role
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
from ganeti.rpc.client import Answer
from ganeti.rpc.replica import MasterView

_SILENT = errors.RpcError("no answer")
#: Seconds until a question to the store fails, and until a renewal that failed is tried again.
_STORE_PATIENCE = 1.25
_STORE_PAUSE = 0.25


class Electorate:
    """As much of a configuration as the vote looks at, as one host's copy has it."""

    def __init__(self, world: World, state: State, master: str) -> None:
        self.nodes = {
            host.name: Node(
                uuid=host.name,
                name=host.name,
                primary_ip="",
                secondary_ip="",
                group="",
                master_candidate=host.is_candidate,
                offline=host.name in state.offline,
            )
            for host in world.hosts.values()
        }
        self.cluster = self
        self.master_node = master


class Master:
    """One master daemon. It ends when its machine says so."""

    def __init__(self, game: Game, host: Host, number: int, claimed: float) -> None:
        """``claimed``: when it began to claim its term, on the clock of its host."""
        assert host.state is not None
        self.game = game
        self.world = game.world
        self.host = host
        self.number = number
        self.state = dataclasses.replace(host.state, position=(number, 0))
        host.state = self.state
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
                self.end("lost the majority")
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
            self.world.schedule(pause, self.game.resume, self.host)

    def end(self, why: str) -> None:
        if not self.lives():
            return
        self.world.note(f"{self.host.name} ends as master of term {self.number}: {why}")
        self.world.count("master stepped down")
        self.host.end_master()
        self.world.schedule(RESTART, self.game.resume, self.host)

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
                other.state = state
                if other.master is not None:
                    other.master.end("another master writes here")
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
                    self.end("lost the majority, and found it again too late")

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
                self.end("lost the role")
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
            _STORE_PATIENCE,
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
        self.state = self.host.state = dataclasses.replace(self.state, position=position, **values)
        self._commits.append((position, {self.host.name}, then))
        for other in self.world.hosts.values():
            if (
                other.is_candidate
                and other is not self.host
                and other.name not in self.state.offline
            ):
                self._send_state(other)
        self._note_copy(self.host.name, position)

    def _note_copy(self, name: str, position: tuple[int, int]) -> None:
        voters = [h.name for h in self.world.hosts.values() if h.is_candidate]
        needed = vote.majority(sum(name not in self.state.offline for name in voters))
        done = []
        for entry in self._commits:
            if position >= entry[0]:
                entry[1].add(name)
                if len(entry[1]) >= needed:
                    done.append(entry)
        for entry in done:
            self._commits.remove(entry)
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
        world.attempt = self.attempt
        world.resume_master = self.resume

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
        acting = self.find_acting()
        if len(acting) > 1:
            raise BrokenPromiseError(
                f"masters that act: {', '.join(sorted(m.host.name for m in acting))}"
            )

    # the vote ----------------------------------------------------------------------------------

    def attempt(self, host: Host) -> None:
        """A candidate has not heard the master for long enough."""
        self.world.count("attempt to take over")
        paused = host.state is not None and host.state.paused_until > self.world.now
        if host.master is not None or host.state is None or paused:
            self._end_attempt(host)
            return
        Election(self, host, if_silent=True).ask()

    def try_at_once(self, host: Host) -> None:
        """A candidate tries to take over whether or not it hears the master: the store decides."""
        if host.on and host.daemon_up and host.master is None and host.state is not None:
            Election(self, host, if_silent=True).ask()

    def resume(self, host: Host) -> None:
        """A master daemon is started again where it was; it serves when it wins a vote."""
        if not host.on or host.master is not None or host.state is None:
            return
        if host.term.master != host.name:
            return
        Election(self, host, if_silent=False).ask()

    def _end_attempt(self, host: Host) -> None:
        host.machine.feed(AttemptEnded(host.clock()))
        host.plan_wake()


class Election:
    """One attempt of one host: ask, judge, claim, judge again."""

    def __init__(self, game: Game, host: Host, *, if_silent: bool) -> None:
        assert host.state is not None
        self.game, self.world, self.host = game, game.world, host
        self.if_silent = if_silent
        self.boot, self.life = host.boot, host.machine
        self.config: Any = Electorate(self.world, host.state, host.term.master)
        self.number = 0
        self.known: dict[str, int] = {}
        self.claimed = 0.0

    def _lives(self) -> bool:
        return self.host.on and self.host.boot == self.boot and self.host.master is None

    def _gather(self, hosts: list[Host], serve: Callable[[Host], Any], then: Any) -> None:
        answers: dict[str, Any] = {}

        def note(name: str, value: Any) -> None:
            node = self.config.nodes[name]
            answers[name] = (
                Answer(node, error=_SILENT) if value is None else Answer(node, value=value)
            )
            if len(answers) == len(hosts):
                then(answers)

        for other in hosts:
            self.world.call(
                self.host,
                other,
                lambda other=other: serve(other),
                lambda value, name=other.name: note(name, value),
                self._lives,
            )

    @staticmethod
    def _view(other: Host) -> MasterView:
        candidate = other.machine.candidate
        return MasterView(
            master=other.term.master,
            epoch=other.term.number,
            position=other.state.position if other.state is not None else (0, 0),
            config_serial=1 if other.state is not None else None,
            silence=other.clock() - candidate.heard if candidate is not None else None,
        )

    def _describe_self(self) -> vote.Own:
        state = self.host.state
        assert state is not None
        return vote.Own(self.config.nodes[self.host.name], 1, 0, state.position, False)

    def ask(self) -> None:
        if self.world.store is not None:
            self._ask_store(self.world.store, self._judge_record)
        else:
            self._ask_nodes(self._judge_silence)

    def _ask_nodes(self, then: Callable[[dict[str, Any]], None]) -> None:
        voters = [h for h in self.world.hosts.values() if not self.config.nodes[h.name].offline]
        self._gather(voters, self._view, then)

    def _judge_silence(self, answers: dict[str, Any]) -> None:
        if self.if_silent and vote.find_living_master(
            self.config, answers, self.world.failover_after, own=self.host.name
        ):
            self._give_up()
            return
        self._ask_nodes(self._judge)

    def _judge(self, answers: dict[str, Any]) -> None:
        own = self._describe_self()
        votes = self.world.store is None
        retiring = self.config.master_node if self.if_silent else ""
        problem = vote.explain_missing_answers(self.config, own, answers, vote=votes)
        if votes:
            problem = problem or self._find_other(own, answers)
        problem = problem or vote.find_newer_data(self.config, own, answers, retiring=retiring)
        if problem is not None:
            self._give_up()
        elif self.if_silent:
            self._stop_old(answers)
        else:
            self._choose_number(answers)

    def _choose_number(self, answers: Any) -> None:
        seen = [answer.value.epoch for answer in answers.values() if answer.value is not None]
        self.number = max([self._describe_self().position[0], *seen]) + 1
        self.known = {n: a.value.epoch for n, a in answers.items() if a.value is not None}
        awake = [self.world.hosts[name] for name, answer in answers.items() if answer.ok]
        if self.world.store is not None:
            self._take_role(self.world.store, awake)
        else:
            self._claim(awake)

    def _stop_old(self, answers: dict[str, Any]) -> None:
        """Stop the old master: the one that most nodes follow."""
        views = [answer.value.master for answer in answers.values() if answer.value is not None]
        followed = Counter(views).most_common(1)
        name = followed[0][0] if followed and followed[0][0] in self.world.hosts else ""
        if not name or name == self.host.name:
            name = self.config.master_node
        old = self.world.hosts.get(name)
        if old is None or not answers[name].ok:
            self._leave_out(answers, name, {}, stopped=False)
            return

        def serve() -> Any:
            if old.frozen["master"] > self.world.now:
                return False  # the daemon does not end in time
            if old.master is not None:
                old.master.end("stopped for its successor")
            return self._view(old)

        def answer(view: Any) -> None:
            now = {name: Answer(self.config.nodes[name], value=view)} if view else {}
            self._leave_out(answers, name, now, stopped=bool(view))

        self.world.call(self.host, old, serve, answer, self._lives)

    def _leave_out(
        self, answers: dict[str, Any], old: str, now: dict[str, Any], *, stopped: bool
    ) -> None:
        found: Any = {**answers, **now}
        try:
            rest = vote.leave_out_old_master(
                self.config,
                self._describe_self(),
                found,
                NodeUuid(old),
                stopped=stopped,
                vote=self.world.store is None,
            )
        except errors.TooFewVotesError:
            self._give_up()
        else:
            self._choose_number({name: answers[name] for name in answers if name in rest})

    def _find_other(self, own: vote.Own, answers: dict[str, Any]) -> str | None:
        """Why the nodes do not let this one be the master."""
        limit = self.world.failover_after
        if self.if_silent:
            return vote.find_living_master(self.config, answers, limit, own=self.host.name)
        other = vote.find_other_master(self.config, own, answers)
        return other or vote.find_later_term(self.config, answers, limit, self.host.name)

    def _claim(self, awake: list[Host]) -> None:
        if self.world.store is None:
            self.claimed = self.host.clock()
        self._gather(awake, self._claim_at, self._judge_claim)

    # the store ---------------------------------------------------------------------------------

    def _ask_store(self, store: StoreHost, then: Callable[[role.Record], None]) -> None:
        def answer(record: role.Record | None) -> None:
            if record is None:
                self._give_up()
            else:
                then(record)

        self.world.call(self.host, store, store.content.read, answer, self._lives, _STORE_PATIENCE)

    def _judge_record(self, record: role.Record) -> None:
        find = role.find_obstacle if self.if_silent else role.find_successor
        if find("the store", record, self.host.name) is not None:
            self._give_up()
            return
        self._ask_nodes(self._judge)

    def _take_role(self, store: StoreHost, awake: list[Host]) -> None:
        def judge(record: role.Record) -> None:
            name = self.host.name
            find = role.find_obstacle if self.if_silent else role.find_successor
            if find("the store", record, name) is not None:
                self._give_up()
                return
            claim = role.Claim(record.choose_term(self.number), name)
            self.number, self.claimed = claim.term, self.host.clock()
            self.world.call(
                self.host,
                store,
                lambda: store.content.claim(record, claim, self.world.failover_after) or False,
                lambda granted: self._claim(awake) if granted else self._give_up(),
                self._lives,
                _STORE_PATIENCE,
            )

        self._ask_store(store, judge)

    # the claim at the nodes --------------------------------------------------------------------

    def _claim_at(self, other: Host) -> MasterView | None:
        if self.if_silent and not self._may_claim(other):
            return None
        term = other.term.claim(self.number, self.host.name, self.known[other.name])
        if term is None:
            return None
        other.term = term
        other.machine.feed(Signed(other.clock()))
        other.plan_wake()
        return self._view(other)

    def _may_claim(self, other: Host) -> bool:
        """Whether a node does not hear the master any more; that of the master never does."""
        if other.term.master == other.name or self.world.store is not None:
            return True
        candidate = other.machine.candidate
        return candidate is None or (other.clock() - candidate.heard >= self.world.failover_after)

    def _judge_claim(self, answers: dict[str, Any]) -> None:
        own = self._describe_self()
        problem = vote.find_newer_data(self.config, own, answers)
        store = self.world.store
        problem = problem or vote.explain_missing_answers(
            self.config, own, answers, vote=store is None
        )
        if problem is None:
            self.game.crown(self.host, self.number, self.claimed)
        self._give_up()

    def _give_up(self) -> None:
        if self.host.machine is self.life:
            self.game._end_attempt(self.host)
        if not self.if_silent and self.host.master is None:
            self.world.schedule(RESTART, self.game.resume, self.host)

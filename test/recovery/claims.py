"""Programs of the simulator that claim the role of the master: a takeover, a master that starts.

Each plays the steps of the real one: :class:`Takeover` those of ``bootstrap/failover.py``,
:class:`MasterStart` those of ``master/daemon.py`` and ``master/mastership.py``. It can be killed
between any two of them; what it has written stays on the disk of its host.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from world import Host, State, StoreHost, World

from ganeti import errors
from ganeti.bootstrap.failover import PATIENCE as TAKEOVER_PATIENCE
from ganeti.config import vote
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.recovery import bounds, role
from ganeti.recovery.node import Signed
from ganeti.rpc.client import Answer
from ganeti.rpc.replica import MasterView

if TYPE_CHECKING:
    from masters import Game

_SILENT = errors.RpcError("no answer")
#: Seconds until a question to the store fails.
STORE_PATIENCE = 1.25
#: Seconds for which a master daemon that starts asks for votes: that of systemd, and other ones.
_PATIENCE = {True: 60.0, False: 10.0}

Answers = dict[str, Any]
#: What a program waits for: it is told how to go on.
Wish = Callable[[Callable[[Any], None]], None]
Body = Generator[Wish, Any, Any]


class GaveUpError(Exception):
    """The program ends. ``again``: more answers may change that, so it is started again."""

    def __init__(self, *, again: bool = False) -> None:
        super().__init__()
        self.again = again


class Electorate:
    """As much of a configuration as the vote looks at, as one host's copy has it."""

    def __init__(self, world: World, state: State) -> None:
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
        self._witnesses = {host.name for host in world.hosts.values() if host.is_witness}
        self.cluster = self
        self.master_node = state.master
        self.master = self.nodes[state.master]

    def ndparams(self, node: Node) -> dict[str, bool]:
        return {"witness": node.name in self._witnesses}


class Program:
    """One process on a host. It stands still when the master daemon of its host does."""

    name = ""

    def __init__(self, game: Game, host: Host) -> None:
        self.game, self.world, self.host = game, game.world, host
        self.config: Any = None
        self._boot = host.boot
        self._killed = False
        self._body = self._run()
        self.world.schedule(0.0, self._go_on, None)

    def lives(self) -> bool:
        return not self._killed and self.host.on and self.host.boot == self._boot

    def kill(self) -> None:
        """SIGKILL."""
        if self.lives():
            self._killed = True
            self._end("killed")

    def _go_on(self, value: Any) -> None:
        if not self.lives() or self.world.put_off(self.host, "master", self._go_on, value):
            return
        try:
            wish = self._body.send(value)
        except StopIteration:
            self._killed = True
            self._end("done")
        except GaveUpError as err:
            self._killed = True
            self._end("failed" if err.again else "refused")
        else:
            wish(self._go_on)

    def _run(self) -> Body:
        raise NotImplementedError

    def _end(self, how: str) -> None:
        """The process has ended: it is done, was refused the role, has failed or was killed."""
        raise NotImplementedError

    # what it waits for -------------------------------------------------------------------------

    def _sleep(self, seconds: float) -> Wish:
        return lambda then: self.world.schedule(seconds / self.host.rate, then, None)

    def _reach(self, step: str) -> Wish:
        """A moment in which a fault may happen."""

        def wait(then: Callable[[Any], None]) -> None:
            self.game.note_step(self, step)
            self.world.schedule(0.01, then, None)

        return wait

    def _call(self, other: Host | StoreHost, serve: Callable[[], Any], seconds: float) -> Wish:
        return lambda then: self.world.call(self.host, other, serve, then, self.lives, seconds)

    def _call_all(self, hosts: Iterable[Host], serve: Callable[[Host], Any]) -> Wish:
        """Answers by name; what a host serves is None where it refuses."""
        asked, answers = list(hosts), Answers()

        def note(name: str, then: Callable[[Any], None], value: Any) -> None:
            node = self.config.nodes[name]
            answers[name] = (
                Answer(node, error=_SILENT) if value is None else Answer(node, value=value)
            )
            if len(answers) == len(asked):
                then(answers)

        def wait(then: Callable[[Any], None]) -> None:
            for other in asked:
                ask, answer = partial(serve, other), partial(note, other.name, then)
                self.world.call(self.host, other, ask, answer, self.lives)
            if not asked:
                self.world.schedule(0.0, then, {})

        return wait

    # steps of both programs ----------------------------------------------------------------------

    def _read_state(self) -> State:
        assert self.host.state is not None
        return self.host.state

    def _read_config(self) -> None:
        self.config = Electorate(self.world, self._read_state())

    def _describe_self(self) -> vote.Own:
        node = self.config.nodes[self.host.name]
        return vote.Own(node, 1, 0, self.host.position, self.host.made_here)

    def _ask_nodes(self) -> Wish:
        voters = [h for h in self.world.hosts.values() if not self.config.nodes[h.name].offline]
        return self._call_all(voters, see_master)

    def _ask_store(self, store: StoreHost) -> Body:
        record = yield self._call(store, store.content.read, STORE_PATIENCE)
        if record is None:
            raise GaveUpError(again=True)
        return record

    def _vote(self, patience: float, *, failover: bool) -> Body:
        """``vote.run_vote``."""
        votes, end = self.world.store is None, self.host.clock() + patience
        retiring = self.config.master_node if failover else ""
        while True:
            answers = yield self._ask_nodes()
            own = self._describe_self()
            missing = vote.explain_missing_answers(self.config, own, answers, vote=votes)
            newer = vote.find_newer_data(self.config, own, answers, retiring=retiring)
            late = failover and newer is not None
            if (missing is None and not late) or self.host.clock() + vote.PAUSE > end:
                break
            yield self._sleep(vote.PAUSE)
        problem = None
        if missing is None and not failover:
            if self.world.store is not None:
                record = yield from self._ask_store(self.world.store)
                problem = role.find_successor("the store", record, self.host.name)
            else:
                problem = vote.find_other_master(self.config, own, answers)
                limit = self.world.failover_after
                missing = vote.find_later_term(self.config, answers, limit, self.host.name)
        _check(problem or newer, missing)
        return answers

    def _claim(self, answers: Answers, *, if_silent: bool, epoch: int = 0) -> Body:
        """``vote.claim``. Returns the number, and when the claim began on the host's clock."""
        seen = {name: a.value.epoch for name, a in answers.items() if a.value is not None}
        number = 1 + max([epoch, self._describe_self().position[0], *seen.values()])
        store, name = self.world.store, self.host.name
        since = self.host.clock()
        if store is not None:
            number, since = yield from self._take_role(store, number)
        yield self._reach("claims")

        def serve(other: Host) -> MasterView | None:
            if if_silent and store is None and not self._may_claim(other):
                return None
            term = other.term.claim(number, name, seen[other.name])
            if term is None:
                return None
            other.term = term
            other.machine.feed(Signed(other.clock()))
            other.plan_wake()
            return see_master(other)

        awake = [self.world.hosts[other] for other in answers if other in seen]
        accepted = yield self._call_all(awake, serve)
        yield self._reach("has claimed")
        own = self._describe_self()
        newer = vote.find_newer_data(self.config, own, accepted)
        missing = vote.explain_missing_answers(self.config, own, accepted, vote=store is None)
        _check(newer, missing)
        yield from self._note_position(number)
        yield self._reach("has noted its position")
        return number, since

    def _may_claim(self, other: Host) -> bool:
        """Whether a node does not hear the master any more; that of the master never does."""
        if (other.term.master or other.ssconf) == other.name:
            return True
        return measure_silence(other) >= self.world.failover_after

    def _note_position(self, number: int) -> Body:
        host, name = self.host, self.host.name

        def serve() -> bool:
            if host.term.hear(number, "") is None:
                return False
            if (host.term.number, host.term.master) == (number, name):
                host.machine.feed(Signed(host.clock(), self.world.failover_after))
                host.plan_wake()
                state = self._read_state()
                if state.position < (number, 0):
                    host.write_state(_replace(state, position=(number, 0)), made_here=True)
            return True

        done = yield self._call(host, serve, 5.0)
        if not done:
            raise GaveUpError(again=done is None)

    def _take_role(self, store: StoreHost, lowest: int) -> Body:
        record = yield from self._ask_store(store)
        if role.find_holder("the store", record, self.host.name) is not None:
            raise GaveUpError
        claim = role.Claim(record.choose_term(lowest), self.host.name)
        since, seconds = self.host.clock(), self.world.failover_after
        granted = yield self._call(
            store, lambda: store.content.claim(record, claim, seconds) or False, STORE_PATIENCE
        )
        if not granted:
            raise GaveUpError(again=granted is None)
        return claim.term, since


class Takeover(Program):
    """``gnt-cluster master-failover --if-silent``, which the node daemon runs."""

    name = "takeover"

    def __init__(self, game: Game, host: Host) -> None:
        super().__init__(game, host)
        self._parent = host.machine

    def _end(self, how: str) -> None:
        if self.host.machine is self._parent:
            self.game.end_attempt(self.host)

    def _run(self) -> Body:
        self._read_config()
        answers = yield self._ask_nodes()
        yield from self._check_silence(answers)
        yield from self._take_newer_copy(answers)
        answers = yield from self._vote(TAKEOVER_PATIENCE, failover=True)
        self._read_config()
        yield from self._check_silence(answers)
        old = vote.find_old_master(self.config, answers, self.config.nodes[self.host.name]).name
        if old == self.host.name:
            yield from self._finish(answers)
            return
        self._leave_out(answers, answers, old, stopped=True)
        yield self._sleep(self.world.rng.uniform(0.0, 1.0))  # hooks
        stopped = yield from self._stop_old(answers, old)
        now = {}
        if stopped:
            now = yield self._call_all([self.world.hosts[old]], see_master)
        answers = self._leave_out(answers, {**answers, **now}, old, stopped=stopped)
        yield self._reach("has won")
        yield from self._claim(answers, if_silent=True)
        self.host.state = _replace(self._read_state(), master=self.host.name)
        yield self._reach("has recorded itself")
        yield from self._start()

    def _take_newer_copy(self, answers: Answers) -> Body:
        host = self.host
        witness = vote.find_witness_ahead(self.config, self._describe_self(), answers)
        if witness is None:
            return
        other = self.world.hosts[witness.name]
        found = yield self._call(other, lambda: (other.position, other.state), 5.0)
        yield self._reach("has read the copy of a witness")
        if found is None:
            raise GaveUpError
        position, state = found

        def adopt() -> bool:
            if position <= host.position or host.runs_master:
                return False
            host.write_state(_replace(state, position=position), made_here=False)
            self.world.count("copy of a witness taken")
            return True

        if not (yield self._call(host, adopt, 5.0)):
            raise GaveUpError
        self._read_config()

    def _check_silence(self, answers: Answers) -> Body:
        """``vote.find_obstacle``."""
        limit, name = self.world.failover_after, self.host.name
        if self.world.store is None:
            problem = vote.find_living_master(self.config, answers, limit, own=name)
        else:
            problem = vote.find_stopped_master(self.config, answers)
            if problem is None:
                record = yield from self._ask_store(self.world.store)
                problem = role.find_obstacle("the store", record, name)
        _check(problem, None)

    def _leave_out(self, answers: Answers, now: Answers, old: str, *, stopped: bool) -> Answers:
        try:
            rest = vote.leave_out_old_master(
                self.config,
                self._describe_self(),
                now,
                NodeUuid(old),
                stopped=stopped,
                vote=self.world.store is None,
            )
        except errors.NoMasterError:
            raise GaveUpError from None
        return {name: answer for name, answer in answers.items() if name in rest}

    def _stop_old(self, answers: Answers, name: str) -> Body:
        """Whether the daemon of the old master does not run."""
        old = self.world.hosts[name]
        if name not in answers or not answers[name].ok:
            return False

        def serve() -> bool:
            if not old.runs_master:
                return True
            if old.frozen["master"] > self.world.now:
                return False  # the daemon does not end in time
            self.game.stop_master(old, "stopped for its successor")
            old.stopped = False
            return True

        stopped = yield self._call(old, serve, 5.0)
        self._read_config()
        return bool(stopped)

    def _finish(self, answers: Answers) -> Body:
        if self.host.runs_master:
            raise GaveUpError
        yield from self._claim(answers, if_silent=True)
        yield from self._start()

    def _start(self) -> Body:
        yield self._reach("starts its daemon")
        yield partial(self.game.start_master, self.host)


class MasterStart(Program):
    """A master daemon until it serves."""

    name = "start of the master daemon"

    def __init__(self, game: Game, host: Host) -> None:
        super().__init__(game, host)
        self.listeners: list[Callable[[Any], None]] = []
        host.starting = self

    def lives(self) -> bool:
        return super().lives() and self.host.starting is self

    def _end(self, how: str) -> None:
        if self.host.starting is self:
            self.host.starting = None
        self.game.note_end(self.host, again=how in ("failed", "killed"))
        for listener in self.listeners:
            self.world.schedule(0.01, listener, None)

    def end_in_good_order(self) -> None:
        """SIGTERM."""
        if self.lives():
            self._killed = True
            self._end("done")

    def _run(self) -> Body:
        yield self._sleep(self.world.rng.uniform(0.2, 1.5))
        self._read_config()
        self._end_beside_master()
        self.host.stopped = False
        number, since = yield from self._become_master(_PATIENCE[self.host.supervised], 0)
        # It reads the queue.
        yield self._sleep(self.world.rng.choice((0.1, 0.1, 0.1, 0.5, 8.0)))
        limit = self.world.failover_after
        passed = self.host.clock() - since
        if self.world.store is None and passed >= bounds.count_acting(limit) / 2:
            number, since = yield from self._become_master(0.0, number)
        yield self._reach("is about to serve")
        self.host.starting = None
        self.game.crown(self.host, number, since)

    def _end_beside_master(self) -> None:
        if self.config.master_node != self.host.name:
            raise GaveUpError

    def _become_master(self, patience: float, epoch: int) -> Body:
        """``Mastership.vote``."""
        answers = yield from self._vote(patience, failover=False)
        yield self._reach("has won as a master")
        return (yield from self._claim(answers, if_silent=False, epoch=epoch))


def _check(problem: str | None, missing: str | None) -> None:
    if problem is not None or missing is not None:
        raise GaveUpError(again=problem is None)


def _replace(state: State, **values: Any) -> State:
    return dataclasses.replace(state, **values)


def measure_silence(host: Host) -> float:
    """Seconds since the last sign of the master, or since the node daemon started."""
    assert host.machine.candidate is not None
    return host.clock() - host.machine.candidate.heard


def see_master(host: Host) -> MasterView:
    """What a node says of the master role."""
    return MasterView(
        master=host.term.master or host.ssconf,
        epoch=host.term.number,
        position=host.position,
        may_be_newer=host.made_here and host.state_boot != host.boot,
        config_serial=1 if host.state is not None else None,
        silence=measure_silence(host),
        stopped=host.stopped,
    )

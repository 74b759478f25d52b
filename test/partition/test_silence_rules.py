"""When a silent master is replaced, when nobody may take its place, and when it lets go."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_for

from ganeti import constants, errors
from ganeti.base import daemon
from ganeti.config import vote
from ganeti.master import lease
from ganeti.model.node import Node
from ganeti.node.context import NodeContext
from ganeti.node.replica import Replica
from ganeti.node.standby import Standby
from ganeti.paths import Paths
from ganeti.recovery import bounds, standby
from ganeti.rpc.client import Answer
from ganeti.rpc.replica import MasterView, ReplicaUpdate

LIMIT = 15


class JumpClock:
    """A monotonic clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class Takeover:
    """Counts attempts to take over."""

    def __init__(self) -> None:
        self.count = 0
        self.made = threading.Event()

    def __call__(self) -> None:
        self.count += 1
        self.made.set()


@pytest.fixture
def context(tmp_path: Path) -> NodeContext:
    paths = Paths(tmp_path)
    for directory in (paths.data, paths.queue, paths.run):
        directory.mkdir(parents=True)
    paths.config_file.write_text('{"serial_no": 10}')
    paths.ssconf("master_node").write_text("node1.example.com\n")
    return NodeContext(paths, "node2.example.com")


# the candidate -----------------------------------------------------------------------------


def attempts_after(context: NodeContext, limit: int | None, silence: float) -> int:
    """How many attempts a candidate has made when its master was silent for so long."""
    clock, takeover = JumpClock(), Takeover()
    watcher = Standby(context, attempt=takeover, clock=clock, chance=lambda: 0.0)
    if limit is not None:
        watcher.note_sign(limit)
    clock.time += silence
    watcher.start()
    takeover.made.wait(0.2)
    watcher.stop()
    return takeover.count


def test_a_candidate_tries_when_the_master_was_silent_for_long_enough(context: NodeContext) -> None:
    assert attempts_after(context, LIMIT, LIMIT - 1) == 0
    assert attempts_after(context, LIMIT, LIMIT) == 1
    assert attempts_after(context, 0, 10_000) == 0


def test_a_master_that_is_heard_again_loses_no_node(context: NodeContext) -> None:
    """A candidate found it silent a moment ago; its claim comes too late."""
    clock = JumpClock()
    watcher = Standby(context, attempt=Takeover(), clock=clock, chance=lambda: 0.0)
    replica = Replica(context, watcher)
    replica.master_claim(2, "node3.example.com")
    clock.time = LIMIT - 1
    with pytest.raises(errors.DeposedError, match=r"heard from the master .* 14 s ago"):
        replica.master_claim(3, "node2.example.com", 2, LIMIT)
    replica.replica_update(ReplicaUpdate(epoch=2))  # it is the master still
    assert replica.master_view().epoch == 2
    replica.master_claim(3, "node2.example.com", 2)  # an administrator does not wait
    clock.time += LIMIT
    assert replica.master_claim(4, "node3.example.com", 3, LIMIT).master == "node3.example.com"
    replica.stop()


def test_the_node_of_the_master_need_not_be_silent(context: NodeContext) -> None:
    """It does not hear its master; who claims has stopped that one before."""
    clock = JumpClock()
    replica = Replica(context, Standby(context, attempt=Takeover(), clock=clock))
    replica.master_claim(2, context.name)
    assert replica.master_claim(3, "node9.example.com", 2, LIMIT).epoch == 3
    replica.stop()


def test_a_candidate_that_has_just_started_is_patient(context: NodeContext) -> None:
    assert attempts_after(context, None, standby.BOOT_PATIENCE - 1) == 0
    assert attempts_after(context, None, standby.BOOT_PATIENCE) == 1


def test_only_a_candidate_that_is_not_the_master_tries(context: NodeContext) -> None:
    context.paths.ssconf("master_node").write_text("node2.example.com\n")
    pid_file = daemon.PidFile(context.paths.pid_file(constants.MASTERD))
    pid_file.acquire()
    assert attempts_after(context, LIMIT, LIMIT) == 0
    pid_file.release()
    context.paths.ssconf("master_node").write_text("node1.example.com\n")
    context.paths.config_file.unlink()
    assert attempts_after(context, LIMIT, LIMIT) == 0


def test_the_node_of_the_master_tries_when_another_one_claimed_and_failed(
    context: NodeContext,
) -> None:
    """The newest data may be there."""
    context.paths.ssconf("master_node").write_text("node2.example.com\n")
    clock, takeover = JumpClock(), Takeover()
    watcher = Standby(context, attempt=takeover, clock=clock, chance=lambda: 0.0)
    replica = Replica(context, watcher)
    replica.master_claim(1, context.name)
    replica.replica_update(ReplicaUpdate(epoch=1, failover_after=LIMIT))
    replica.master_claim(2, "node3.example.com")
    clock.time += LIMIT
    watcher.start()
    assert takeover.made.wait(20)
    watcher.stop()
    replica.stop()


def test_a_node_whose_claim_did_not_make_it_the_master_tries_again(context: NodeContext) -> None:
    clock, takeover = JumpClock(), Takeover()
    watcher = Standby(context, attempt=takeover, clock=clock, chance=lambda: 0.0)
    replica = Replica(context, watcher)
    replica.master_claim(2, context.name)
    replica.replica_update(ReplicaUpdate(epoch=2, failover_after=LIMIT))
    clock.time += LIMIT
    watcher.start()
    assert takeover.made.wait(20), "node1.example.com is still the master for all"
    watcher.stop()
    replica.stop()


def test_each_call_of_the_master_is_a_sign_of_life(context: NodeContext) -> None:
    clock, takeover = JumpClock(), Takeover()
    watcher = Standby(context, attempt=takeover, clock=clock, chance=lambda: 0.0)
    replica = Replica(context, watcher)
    clock.time = 1000.0
    replica.replica_update(ReplicaUpdate(epoch=1, failover_after=LIMIT))
    assert replica.master_view().silence == 0
    clock.time += LIMIT - 1
    assert replica.master_view().silence == LIMIT - 1
    replica.master_claim(2, "node3.example.com")
    assert replica.master_view().silence == 0
    clock.time += 5
    with pytest.raises(errors.DeposedError):  # a master that was replaced gives no sign
        replica.replica_update(ReplicaUpdate(epoch=1))
    assert replica.master_view().silence == 5
    watcher.start()
    clock.time += LIMIT
    watcher.note_sign(LIMIT)
    clock.time += LIMIT
    replica.replica_update(ReplicaUpdate(epoch=2))  # the administrator has turned it off
    clock.time += 1000
    watcher.stop()
    replica.stop()
    assert takeover.count == 0


def test_attempts_become_rarer_but_do_not_end() -> None:
    pauses = [standby.plan_next_attempt(LIMIT, n, 0.5) for n in range(1, 40)]
    assert pauses == sorted(pauses)
    assert pauses[0] == standby.SPREAD
    assert pauses[-1] == standby.LONGEST_PAUSE


@given(st.integers(15, 3600), st.floats(0, 1))
def test_nobody_tries_before_the_limit(limit: int, chance: float) -> None:
    first = standby.plan_first_attempt(limit, chance)
    assert first is not None
    assert limit <= first <= limit + standby.SPREAD


# the others --------------------------------------------------------------------------------


class Nodes:
    """As much of a configuration as the rule looks at: node 1 is the master."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = {item.uuid: item for item in nodes}
        self.cluster = self
        self.master_node = "uuid-1"


def node(number: int, **more: Any) -> Node:
    return Node(
        uuid=f"uuid-{number}",
        name=f"node{number}.example.com",
        primary_ip=f"10.0.0.{number}",
        secondary_ip="",
        group="",
        **{"master_candidate": True, **more},
    )


def find(*views: MasterView | None) -> str | None:
    config: Any = Nodes(*(node(number) for number in range(1, len(views) + 1)))
    answers: Any = {
        f"uuid-{number}": Answer(node(number), error=errors.RpcError("silent"))
        if view is None
        else Answer(node(number), value=view)
        for number, view in enumerate(views, 1)
    }
    return vote.find_living_master(config, answers, LIMIT)


def view(silence: float | None, *, stopped: bool = False) -> MasterView:
    return MasterView(master="node1.example.com", epoch=1, silence=silence, stopped=stopped)


def test_who_is_silent_for_all_may_be_replaced() -> None:
    assert find(None, view(15), view(16)) is None
    # its node answers, but nobody hears its master daemon
    assert find(view(900), view(15), view(16)) is None
    # what another version does not say is no objection: the vote decides
    assert find(None, view(15), view(None)) is None


def test_one_who_hears_the_master_is_enough_to_keep_it() -> None:
    assert find(None, view(15), view(3)) == (
        "node3.example.com heard from the master 3 s ago; it must be silent for 15 s"
    )


def test_a_master_that_an_administrator_stopped_keeps_its_role() -> None:
    assert "stopped by an administrator" in str(find(view(20, stopped=True), view(20), view(20)))
    assert find(None, view(20), view(20)) is None  # its server went down, too


def test_a_note_of_an_earlier_stop_on_another_node_does_not_count() -> None:
    assert find(None, view(20, stopped=True), view(20)) is None


# the master --------------------------------------------------------------------------------


def test_a_master_without_a_majority_lets_go() -> None:
    clock, lost = JumpClock(), threading.Event()
    contact = 0.0
    guard = lease.Lease(lambda: LIMIT, lambda: contact, clock)
    guard.on_lost = lambda text: lost.set() if "10 s" in text else None
    guard.start()
    clock.time = 9.9
    guard.note_change()
    assert not lost.wait(0.1)
    clock.time = 10.0
    guard.note_change()
    assert lost.wait(5)
    guard.stop()


def test_a_majority_that_answers_too_late_does_not_bring_the_role_back() -> None:
    """The daemon was paused; a candidate may have won a vote that nobody has told it of."""
    clock, lost = JumpClock(), threading.Event()
    guard = lease.Lease(lambda: LIMIT, lambda: clock.time, clock)
    guard.on_lost = lambda _text: lost.set()
    clock.time = 100.0  # the vote took long
    guard.start()
    clock.time = 109.0
    guard.note_contact()
    assert not lost.wait(0.1)
    clock.time = 130.0
    guard.note_contact()
    assert lost.wait(5)
    guard.stop()


def test_without_automatic_failover_a_master_never_lets_go() -> None:
    clock, lost = JumpClock(), threading.Event()
    guard = lease.Lease(lambda: 0, lambda: 0.0, clock)
    guard.on_lost = lambda _text: lost.set()
    guard.start()
    clock.time = 1e6
    guard.note_change()
    assert not lost.wait(0.1)
    guard.stop()


@given(
    limit=st.integers(15, 3600),
    sent=st.floats(0, 1e6),
    travel=st.floats(0, 60),
    master_rate=st.floats(0.9, 1.1),
    candidate_rate=st.floats(0.9, 1.1),
    chance=st.floats(0, 1),
)
def test_the_master_lets_go_before_a_candidate_tries(
    limit: int, sent: float, travel: float, master_rate: float, candidate_rate: float, chance: float
) -> None:
    """Whatever a call takes, with clocks that run up to a tenth too fast or too slow."""
    left = bounds.count_acting(limit)
    first = standby.plan_first_attempt(limit, chance)
    assert first is not None
    lets_go = sent + left / master_rate
    tries = sent + travel + first / candidate_rate
    assert lets_go < tries


def test_a_lost_majority_is_waited_for_without_polling() -> None:
    """Contact that moves ahead is looked at when the time would be over, not before."""
    clock, looks = JumpClock(), 0

    def contact() -> float:
        nonlocal looks
        looks += 1
        return clock.time

    guard = lease.Lease(lambda: LIMIT, contact, clock)
    guard.start()
    wait_for(lambda: looks > 1, "the look of the thread")
    guard.stop()
    assert looks == 2  # at the start, and by the thread

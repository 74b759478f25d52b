"""Leases of nodes around a release: what a master may count on when it grants them again."""

from __future__ import annotations

from ganeti.recovery.lease import Grant, Granted, Holder, Stamp
from ganeti.recovery.master import Answered, Fence, MasterMachine, Settings, Tick

NODES = ("m", "a", "b")


def stamp(at: float, *, armed: bool = True) -> Stamp:
    return Stamp("boot", at, armed)


def test_a_watchdog_does_not_count_from_the_release_until_the_node_obeys_a_new_lease() -> None:
    lease = Granted(since=0.0)
    lease.hear(stamp(1.0), 1.0, 0.9)
    assert lease.armed
    lease.give(0, 2.0)
    assert not lease.armed
    lease.hear(stamp(3.0), 3.0, 2.9)  # it may have been sent before the release came
    assert not lease.armed
    assert lease.give(30, 4.0) == Grant(stamp(3.0), 30)
    lease.hear(stamp(4.0), 4.1, 3.9)  # the answer to a call that was sent before
    assert not lease.armed
    lease.hear(stamp(5.0), 5.1, 4.5)
    assert lease.armed


def test_a_node_is_released_when_it_answers_a_call_that_came_after_its_release() -> None:
    lease = Granted(since=0.0)
    lease.hear(stamp(1.0), 1.0, 0.9)
    lease.give(0, 2.0)
    lease.hear(stamp(2.1), 2.1, 1.9)
    assert not lease.released
    lease.give(0, 3.0)
    lease.hear(stamp(3.1), 3.1, 2.9)
    assert lease.released
    lease.give(30, 4.0)
    assert not lease.released


def test_a_node_that_did_not_answer_after_its_release_gets_no_lease() -> None:
    lease = Granted(since=0.0)
    lease.hear(stamp(1.0), 1.0, 0.9)
    lease.give(0, 2.0)
    assert lease.give(30, 3.0) == Grant(None, 30)


def test_a_release_that_comes_late_ends_no_newer_lease() -> None:
    lease, holder = Granted(since=0.0), Holder("boot")
    lease.hear(stamp(1.0), 1.0, 0.9)
    release = lease.give(0, 2.0)
    lease.hear(stamp(3.0), 3.0, 2.9)
    assert holder.take(lease.give(30, 4.0), 4.0)
    assert not holder.take(release, 5.0)
    assert holder.needed
    assert holder.may_act(5.0)


def make_machine() -> MasterMachine:
    machine = MasterMachine(Settings(fence_after=30, node_lease=30), contact=0.0)
    machine.follow_nodes(NODES, NODES[1:], 0.0)
    return machine


def hear(machine: MasterMachine, now: float, *nodes: str) -> None:
    for node in nodes:
        machine.feed(Answered(now, node, stamp(now), now))


def test_in_a_pause_nobody_is_fenced_and_nodes_need_no_lease() -> None:
    machine = make_machine()
    hear(machine, 1.0, *NODES)
    machine.set_paused(2.0, paused=True)
    given = machine.grant("a", 3.0)
    assert given is not None
    assert given.seconds == 0
    hear(machine, 100.0, "m", "a")
    assert machine.feed(Tick(100.0)) == []
    assert machine.find_fence_time("b") is None


def test_silence_counts_from_the_end_of_a_pause() -> None:
    machine = make_machine()
    hear(machine, 1.0, *NODES)
    machine.set_paused(2.0, paused=True)
    machine.set_paused(100.0, paused=False)
    assert machine.find_fence_time("b") == 130.0
    hear(machine, 129.0, "m", "a")
    assert machine.feed(Tick(129.0)) == []
    assert machine.feed(Tick(130.0)) == [Fence("b", 30.0)]

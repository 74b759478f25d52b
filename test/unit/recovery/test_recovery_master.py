"""An acting master: how long it may act, which leases it grants, whom it fences and when."""

from __future__ import annotations

import pytest

from ganeti.recovery.lease import Granted, Stamp
from ganeti.recovery.master import (
    Answered,
    Effect,
    Fence,
    FenceEnded,
    Followed,
    MasterMachine,
    Rebooted,
    Settings,
    StepDown,
    Tick,
    Watched,
    find_silent,
)

NODES = ("a", "b", "c")
STAMP = Stamp("boot", 50.0, armed=True)


@pytest.fixture
def machine() -> MasterMachine:
    """A master since moment 100, with two thirds of 90 seconds to act without a majority."""
    made = MasterMachine(Settings(90, 60, 30), contact=100.0)
    made.follow_nodes(NODES, ("b", "c"), 100.0)
    return made


def hear(machine: MasterMachine, *names: str, at: float) -> list[Effect]:
    return [effect for name in names for effect in machine.feed(Answered(at, name))]


def test_a_master_acts_for_two_thirds_of_the_limit(machine: MasterMachine) -> None:
    assert machine.acts_until == 160.0
    assert machine.may_act(159.9)
    assert not machine.may_act(160.0)
    machine.feed(Followed(120.0))
    machine.feed(Followed(110.0))
    assert machine.acts_until == 180.0


def test_a_master_without_a_limit_acts_for_ever(machine: MasterMachine) -> None:
    machine.settings.failover_after = 0
    assert machine.acts_until is None
    assert machine.may_act(1e9)
    machine.settings.failover_after = 1
    assert machine.acts_until == pytest.approx(100 + 2 / 3)


def test_it_steps_down_once_and_for_good(machine: MasterMachine) -> None:
    hear(machine, *NODES, at=150.0)
    assert machine.feed(Tick(159.0)) == []
    assert machine.feed(Tick(161.0)) == [StepDown(61.0)]
    assert machine.feed(Tick(162.0)) == []
    assert machine.feed(Followed(150.0)) == []
    assert not machine.may_act(150.0)
    assert machine.grant("b", 150.0) is None


def test_a_majority_that_answers_too_late_ends_it(machine: MasterMachine) -> None:
    assert machine.feed(Followed(170.0)) == [StepDown(70.0)]
    assert machine.contact == 100.0


def test_a_silent_node_is_fenced_once_in_five_minutes(machine: MasterMachine) -> None:
    machine.settings.failover_after = 0
    assert machine.find_fence_time("b") == 160.0
    hear(machine, "a", "c", at=160.0)
    assert machine.feed(Tick(159.0)) == []
    assert machine.feed(Tick(160.0)) == [Fence("b", 60.0)]
    assert machine.feed(Tick(161.0)) == []
    assert machine.grant("b", 161.0) is None
    machine.feed(FenceEnded(170.0, "b", proven=False))
    assert machine.grant("b", 171.0) is not None
    assert machine.find_fence_time("b") == 470.0
    hear(machine, "a", "c", at=469.0)
    assert machine.feed(Tick(469.9)) == []
    assert machine.feed(Tick(470.0)) == [Fence("b", 370.0)]


def test_a_node_gets_time_to_boot_until_it_has_answered_this_master(machine: MasterMachine) -> None:
    machine.settings.failover_after = 0
    machine.booting_until = 500.0
    assert machine.find_fence_time("b") == 500.0
    assert machine.may_boot("b", 499.0)
    assert not machine.may_boot("b", 500.0)
    hear(machine, "a", "c", at=499.0)
    assert machine.feed(Tick(499.0)) == []
    hear(machine, "b", at=200.0)
    assert not machine.may_boot("b", 499.0)
    assert machine.find_fence_time("b") == 260.0
    assert machine.feed(Tick(499.0)) == [Fence("b", 299.0)]


def test_two_nodes_that_may_be_booting_count_as_silent(machine: MasterMachine) -> None:
    machine.settings.failover_after = 0
    machine.booting_until = 500.0
    hear(machine, "a", at=600.0)
    assert machine.feed(Tick(600.0)) == []


def test_the_end_of_fencing_an_unknown_node_changes_nothing(machine: MasterMachine) -> None:
    assert machine.feed(FenceEnded(110.0, "gone", proven=True)) == []
    assert machine.feed(Answered(110.0, "gone", STAMP, 110.0)) == []


@pytest.mark.parametrize(
    ("change", "node"),
    [({"fence_after": 0}, "b"), ({}, "a"), ({}, "gone")],
    ids=["without a limit", "nothing can prove its death", "no such node"],
)
def test_nodes_that_are_never_fenced(
    machine: MasterMachine, change: dict[str, float], node: str
) -> None:
    machine.settings.failover_after = 0
    machine.settings.fence_after = change.get("fence_after", 60)
    hear(machine, *(name for name in NODES if name != node), at=900.0)
    assert machine.find_fence_time(node) is None
    assert machine.feed(Tick(900.0)) == []


def test_nobody_is_fenced_in_a_pause_and_silence_counts_from_its_end(
    machine: MasterMachine,
) -> None:
    machine.settings.failover_after = 0
    machine.feed(Answered(100.0, "b", STAMP, 101.0))
    machine.set_paused(110.0, paused=True)
    hear(machine, "a", "c", at=900.0)
    assert machine.feed(Tick(900.0)) == []
    assert machine.find_fence_time("b") is None
    grant = machine.grant("b", 900.0)
    assert grant is not None
    assert grant.seconds == 0
    machine.set_paused(900.0, paused=False)
    assert machine.find_fence_time("b") == 960.0
    machine.set_paused(950.0, paused=False)
    assert machine.find_fence_time("b") == 960.0
    assert machine.feed(Tick(901.0)) == []


def test_a_reboot_is_told_once(machine: MasterMachine) -> None:
    assert machine.feed(Answered(110.0, "b", STAMP, 111.0)) == []
    assert machine.feed(Answered(112.0, "b", Stamp("boot", 52.0), 113.0)) == []
    assert machine.feed(Answered(114.0, "b", Stamp("next", 1.0), 115.0)) == [Rebooted("b")]
    assert machine.feed(Answered(116.0, "b", Stamp("next", 2.0), 117.0)) == []
    assert machine.heard["b"] == 116.0
    hear(machine, "b", at=105.0)
    assert machine.heard["b"] == 116.0


def test_a_lease_ends_a_little_later_for_the_master(machine: MasterMachine) -> None:
    machine.feed(Answered(110.0, "b", STAMP, 111.0))
    assert machine.is_armed("b")
    assert not machine.is_armed("c")
    assert not machine.is_armed("gone")
    grant = machine.grant("b", 120.0)
    assert grant is not None
    assert (grant.stamp, grant.seconds) == (STAMP, 30)
    end = machine.find_lease_end("b")
    assert end is not None
    assert 141.0 < end < 142.0
    assert machine.find_lease_end("gone") is None
    machine.settings.node_lease = 0
    assert machine.find_lease_end("b") is None


def test_a_node_that_stays_keeps_what_is_known_of_it(machine: MasterMachine) -> None:
    hear(machine, "b", at=130.0)
    machine.follow_nodes(("b", "d"), ("d",), 140.0)
    assert machine.heard == {"b": 130.0, "d": 140.0}
    assert machine.nodes["d"].lease.since == 140.0
    assert machine.provable == {"d"}
    assert Watched(1.0, Granted(1.0)).fenced == -300.0
    assert Answered(1.0, "b").received == 0.0


def test_half_of_the_nodes_may_not_accuse_the_other_half() -> None:
    heard = {"a": 100.0, "b": 0.0, "c": 100.0, "d": 40.0}
    assert find_silent(heard, ("b", "d"), 60, 100.0) == []
    assert find_silent({**heard, "e": 100.0}, ("d", "b"), 60, 100.0) == ["b", "d"]
    assert find_silent({**heard, "e": 100.0}, ("d",), 60, 99.9) == []
    assert find_silent({**heard, "e": 100.0}, ("b",), 60, 100.0) == ["b"]

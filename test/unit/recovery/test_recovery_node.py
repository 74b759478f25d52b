"""A node with a lease: when guests may start and must end, when the watchdog is fed."""

from __future__ import annotations

import pytest

from ganeti.recovery.lease import Grant, Kept, Stamp
from ganeti.recovery.node import (
    AttemptEnded,
    Called,
    Effect,
    GuestBegan,
    GuestsEnded,
    NodeMachine,
    Signed,
    Tick,
)


def make(*, candidate: bool = False) -> NodeMachine:
    return NodeMachine("boot", 0.0, lambda: 0.0, candidate=candidate)


def lease(at: float, seconds: float = 30, *, armed: bool = False) -> Called:
    """A call that brings a stamp of this moment back at once."""
    return Called(at, Grant(Stamp("boot", at, armed=armed), seconds))


def test_guests_start_freely_until_leases_are_needed() -> None:
    node = make()
    assert node.may_start(5.0)
    assert node.feed(Called(6.0)) == []
    node.feed(Called(6.0, Grant(None, 30)))
    assert not node.may_start(6.0)
    node.feed(lease(10.0))
    assert node.may_start(29.0)
    assert not node.may_start(30.0)


def test_guests_end_with_the_lease_and_are_ended_again_until_they_have() -> None:
    node = make()
    node.feed(lease(10.0))
    assert node.find_wake() == 30.0
    assert node.feed(Tick(29.9)) == []
    assert node.feed(Tick(30.0)) == [Effect.END_GUESTS]
    assert node.find_wake() == 31.0
    assert node.feed(Tick(30.5)) == []
    assert node.feed(Tick(31.0)) == [Effect.END_GUESTS]
    node.feed(GuestsEnded(31.5))
    assert node.find_wake() is None
    assert node.feed(Tick(40.0)) == []


def test_the_end_of_a_new_lease_is_watched_although_guests_have_ended() -> None:
    node = make()
    node.feed(lease(10.0))
    node.feed(lease(28.0))
    node.feed(GuestsEnded(31.0))
    assert node.feed(Tick(48.0)) == [Effect.END_GUESTS]


def test_a_guest_that_began_too_late_is_ended() -> None:
    node = make()
    node.feed(lease(10.0))
    node.feed(GuestBegan(20.0))
    assert node.find_wake() == 30.0
    node.feed(Tick(30.0))
    node.feed(GuestsEnded(31.0))
    node.feed(GuestBegan(33.0))
    assert node.feed(Tick(33.0)) == [Effect.END_GUESTS]


def test_where_guests_stay_nothing_is_ended() -> None:
    node = make()
    node.ends_guests = False
    node.feed(lease(10.0))
    assert node.feed(Tick(30.0)) == []
    assert node.find_wake() is None


def test_a_released_node_ends_nothing_and_switches_the_watchdog_off() -> None:
    node = make()
    node.wants_watchdog = True
    assert node.feed(lease(10.0)) == [Effect.FEED]
    assert node.make_stamp(11.0) == Stamp("boot", 11.0, armed=True)
    assert node.feed(lease(12.0, 0)) == [Effect.DISARM]
    assert node.feed(lease(13.0, 0)) == []
    assert node.find_wake() is None
    assert node.may_start(100.0)


def test_an_old_lease_that_comes_late_ends_no_guest_later() -> None:
    node = make()
    node.feed(lease(10.0))
    node.feed(Called(35.0, Grant(Stamp("boot", 12.0), 30)))
    assert node.feed(Tick(35.0)) == [Effect.END_GUESTS]


def test_the_watchdog_is_fed_only_with_a_lease_and_off_only_when_the_master_knows() -> None:
    node = make()
    node.wants_watchdog = True
    assert node.feed(Tick(1.0)) == []
    assert not node.armed
    assert node.feed(lease(10.0)) == [Effect.FEED]
    assert node.feed(Tick(29.0)) == [Effect.FEED]
    assert node.feed(Tick(30.0)) == [Effect.END_GUESTS]
    node.feed(lease(40.0, armed=True))
    node.wants_watchdog = False
    assert not node.make_stamp(41.0).armed
    assert node.feed(Tick(41.0)) == [Effect.FEED]
    assert node.feed(lease(42.0)) == [Effect.DISARM]
    assert node.feed(Tick(43.0)) == []


def test_what_an_earlier_daemon_knew_ends_guests_in_time() -> None:
    node = make()
    node.restore(Kept("boot", 10.0, 30), 20.0)
    assert node.find_wake() == 30.0
    assert node.feed(Tick(30.0)) == [Effect.END_GUESTS]
    other = make()
    other.restore(Kept("before", 10.0, 30), 20.0)
    assert other.find_wake() is None


def test_a_candidate_tries_once_at_a_time() -> None:
    node = make(candidate=True)
    node.feed(Signed(10.0, 60))
    assert node.find_wake() == 70.0
    assert node.feed(Tick(69.9)) == []
    assert node.feed(Tick(70.0)) == [Effect.ATTEMPT]
    assert node.find_wake() is None
    assert node.feed(Tick(80.0)) == []
    node.feed(AttemptEnded(81.0))
    assert node.find_wake() == 82.5
    assert node.feed(Tick(82.5)) == [Effect.ATTEMPT]


@pytest.mark.parametrize("event", [Signed(10.0, 60), AttemptEnded(10.0), Tick(900.0)])
def test_a_node_that_is_no_candidate_never_tries(event: Tick) -> None:
    node = make()
    assert node.feed(event) == []
    assert node.find_wake() is None

"""Leases as nodes and masters count them, and the arithmetic below."""

from __future__ import annotations

import pytest

from ganeti.recovery import bounds
from ganeti.recovery.lease import Grant, Granted, Holder, Kept, Stamp


def test_everybody_stops_before_others_count_on_it() -> None:
    assert bounds.count_acting(30) == 20.0
    assert bounds.count_waiting(99) == pytest.approx(101.0)
    assert bounds.count_watchdog(90) == 29
    assert bounds.count_acting(30) + bounds.count_watchdog(30) < bounds.count_waiting(30)


def test_a_lease_of_a_minute_is_renewed_every_five_seconds() -> None:
    assert 60 / bounds.CALLS == 5
    assert bounds.SHORTEST_NODE_LEASE == 30


def test_a_lease_begins_with_the_stamp_and_not_with_the_call() -> None:
    holder = Holder("boot")
    assert (holder.acts_until, holder.needed, holder.seconds) == (None, False, 0.0)
    assert not holder.may_act(0.0)
    assert not holder.known_as_armed
    assert holder.take(Grant(Stamp("boot", 10.0), 30, "/dev/watchdog"), 25.0)
    assert holder.acts_until == 30.0
    assert holder.may_act(29.9)
    assert not holder.may_act(30.0)
    assert (holder.needed, holder.watchdog, holder.known_as_armed) == (True, "/dev/watchdog", False)


@pytest.mark.parametrize(
    "stamp",
    [Stamp("boot", 9.9), Stamp("boot", 25.1), Stamp("other", 20.0), None],
    ids=["older", "of the future", "of another boot", "none"],
)
def test_stamps_that_renew_nothing(stamp: Stamp | None) -> None:
    holder = Holder("boot")
    holder.take(Grant(Stamp("boot", 10.0), 30), 10.0)
    assert holder.take(Grant(stamp, 60), 25.0) is False
    assert holder.acts_until == 30.0
    assert holder.needed


@pytest.mark.parametrize(("seconds", "needed"), [(30, True), (1, True), (0, False)])
def test_a_grant_without_a_stamp_says_only_that_leases_are_needed(
    seconds: float, needed: bool
) -> None:
    holder = Holder("boot")
    assert not holder.take(Grant(None, seconds), 5.0)
    assert holder.needed is needed
    assert not holder.take(Grant(None, 0), 6.0)
    assert holder.needed is needed
    assert holder.acts_until is None


def test_the_same_stamp_and_one_of_now_count() -> None:
    holder = Holder("boot")
    assert holder.take(Grant(Stamp("boot", 10.0, armed=True), 30), 10.0)
    assert holder.known_as_armed
    assert holder.take(Grant(Stamp("boot", 10.0), 0), 11.0)
    assert (holder.needed, holder.acts_until, holder.known_as_armed) == (False, None, False)


def test_a_daemon_goes_on_with_what_an_earlier_one_knew() -> None:
    holder = Holder("boot")
    holder.take(Grant(Stamp("boot", 10.0), 30), 10.0)
    kept = holder.keep()
    assert kept == Kept("boot", 10.0, 30)
    again = Holder("boot")
    again.restore(kept, 10.0)
    assert (again.acts_until, again.needed) == (30.0, True)
    for other, now in ((Holder("next"), 20.0), (Holder("boot"), 9.0)):
        other.restore(kept, now)
        assert (other.acts_until, other.needed) == (None, False)
    again.restore(Kept("boot", 10.0, 1), 10.0)
    assert again.needed
    again.restore(Kept("boot", 10.0, 0), 20.0)
    assert not again.needed


def test_a_master_counts_from_when_the_stamp_that_it_sends_back_had_come() -> None:
    lease = Granted(since=100.0)
    assert lease.give(30, 101.0) == Grant(None, 30)
    assert lease.since == 100.0
    assert lease.hear(Stamp("boot", 5.0), 110.0)
    assert not lease.hear(Stamp("boot", 5.0), 112.0)
    assert not lease.hear(Stamp("boot", 4.0), 112.0)
    assert (lease.received, lease.since) == (110.0, 100.0)
    assert lease.give(30, 115.0) == Grant(Stamp("boot", 5.0), 30)
    assert lease.since == 110.0
    end = lease.find_end(30)
    assert not lease.is_over(30, end - 0.01)
    assert lease.is_over(30, end)
    assert lease.hear(Stamp("next", 1.0), 120.0)


def test_after_a_release_only_a_newer_stamp_renews() -> None:
    lease = Granted(since=100.0)
    old, new = Stamp("boot", 5.0, armed=True), Stamp("boot", 6.0, armed=True)
    lease.hear(old, 110.0)
    assert lease.armed
    assert lease.give(0, 111.0) == Grant(old, 0)
    assert not lease.armed
    assert lease.give(30, 112.0) == Grant(None, 30)
    lease.hear(new, 113.0, sent=112.5)
    assert not lease.armed
    assert lease.give(30, 114.0) == Grant(new, 30)
    lease.hear(Stamp("boot", 7.0, armed=True), 115.0, sent=113.9)
    assert not lease.armed
    lease.hear(Stamp("boot", 8.0, armed=True), 116.0, sent=114.0)
    assert lease.armed
    lease.hear(Stamp("boot", 9.0), 117.0, sent=116.0)
    assert not lease.armed

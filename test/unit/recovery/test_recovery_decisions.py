"""When a candidate tries, what proves a death, and which master a node follows."""

from __future__ import annotations

import pytest

from ganeti.recovery import ladder, standby
from ganeti.recovery.ladder import Failed, Ladder, Look, Proven, Rung, Try, Wait
from ganeti.recovery.standby import Candidate, is_standby
from ganeti.recovery.terms import Term

DEVICES = (Rung.HELPER, Rung.AGENT)


def test_candidates_do_not_try_at_the_same_moment() -> None:
    assert standby.plan_first_attempt(0, 0.5) is None
    assert standby.plan_first_attempt(60, 0.0) == 60.0
    assert standby.plan_first_attempt(60, 1.0) == 63.0
    assert standby.plan_first_attempt(None, 0.5) == 121.5
    assert [standby.plan_next_attempt(60, n, 0.5) for n in (1, 2, 5, 6)] == [3.0, 6.0, 48.0, 60.0]
    assert standby.plan_next_attempt(60, 1, 0.0) == 1.5
    assert standby.plan_next_attempt(None, 9, 0.5) == 600.0
    assert standby.plan_next_attempt(None, 9, 0.0) == 300.0


@pytest.mark.parametrize(
    ("masters", "serves", "standby"),
    [
        (("node1", "node1"), False, True),
        (("node1", ""), False, True),
        (("node2", "node2"), False, True),
        (("node2", "node2"), True, False),
        (("node1", "node2"), True, True),
        (("node2", "node1"), True, True),
        (("", ""), False, True),
    ],
    ids=["other", "older", "dead", "serves", "claimed", "replaced", "nobody"],
)
def test_who_could_be_the_master_and_is_not(
    masters: tuple[str, str], serves: bool, standby: bool
) -> None:
    assert is_standby("node2", masters, serves=serves) is standby


def test_a_candidate_that_hears_the_master_begins_again() -> None:
    one = Candidate(0.0, lambda: 0.5)
    assert one.tries_at == 121.5
    one.hear(10.0, 60)
    assert one.tries_at == 71.5
    assert not one.is_due(71.4)
    assert one.is_due(71.5)
    one.end_attempt(80.0)
    assert one.tries_at == 83.0
    one.end_attempt(83.0)
    assert one.tries_at == 89.0
    one.end_attempt(84.0)  # the master was heard meanwhile, or it is not time yet
    assert one.tries_at == 89.0
    one.hear(90.0)
    assert (one.tries_at, one.heard, one.limit) == (151.5, 90.0, 60)
    one.end_attempt(151.5)
    assert one.tries_at == 154.5


def test_an_attempt_that_the_own_master_daemon_prevents_is_repeated_soon() -> None:
    one = Candidate(0.0, lambda: 0.5)
    one.end_attempt(121.5, counts=False)
    assert one.tries_at == 181.5
    one.end_attempt(181.5)
    assert one.tries_at == 781.5


def test_a_candidate_that_is_told_never_to_try_does_not() -> None:
    one = Candidate(0.0, lambda: 0.5)
    one.hear(160.0, 0)
    assert one.tries_at is None
    assert not one.is_due(1e9)


def test_devices_are_tried_in_order_and_the_node_is_called_before_the_end() -> None:
    steps = Ladder(DEVICES, lease_over=None, watchdog=False)
    assert steps.decide(0.0) == Try(Rung.HELPER) == steps.decide(1.0)
    steps.note_result("no answer")
    assert steps.decide(2.0) == Try(Rung.AGENT)
    steps.note_result()
    assert steps.decide(3.0) == Look()
    steps.note_call(answers=False)
    assert steps.decide(4.0) == Proven(Rung.AGENT)


def test_what_nothing_proves_fails_with_each_reason() -> None:
    steps = Ladder(DEVICES, lease_over=None, watchdog=False)
    steps.note_result("no answer")
    steps.note_result("still on")
    assert steps.decide(0.0) == Failed(("out-of-band helper: no answer", "fence agent: still on"))
    assert Ladder((), lease_over=50.0, watchdog=False).decide(99.0) == Failed(())


@pytest.mark.parametrize(
    ("devices", "watchdog", "rung"),
    [((Rung.PERSON,), False, Rung.PERSON), (DEVICES, True, Rung.LEASE)],
    ids=["a word", "a watchdog"],
)
def test_the_lease_is_waited_for_whatever_proves_the_death(
    devices: tuple[Rung, ...], watchdog: bool, rung: Rung
) -> None:
    steps = Ladder(devices, lease_over=50.0, watchdog=watchdog)
    assert steps.decide(49.9) == Wait(50.0)
    assert steps.decide(50.0) == Look()
    steps.note_call(answers=False)
    assert steps.decide(50.0) == Proven(rung)


def test_a_watchdog_proves_nothing_without_a_lease() -> None:
    steps = Ladder((Rung.AGENT,), lease_over=None, watchdog=True)
    assert steps.decide(0.0) == Try(Rung.AGENT)


@pytest.mark.parametrize("watchdog", [True, False])
def test_a_node_that_answers_is_not_dead(watchdog: bool) -> None:
    steps = Ladder(DEVICES, lease_over=0.0, watchdog=watchdog)
    if not watchdog:
        steps.note_result()
    assert steps.decide(1.0) == Look()
    steps.note_call(answers=True)
    found = steps.decide(2.0)
    assert isinstance(found, Failed)
    name = "lease" if watchdog else "out-of-band helper"
    assert found.reasons == (f"{name}: the node answers, so it is not dead",)


def test_devices_are_those_that_the_node_has() -> None:
    assert ladder.list_devices({"oob_program": "", "fence_agent": "ipmi", "x": 1}) == {
        Rung.AGENT: "ipmi"
    }
    assert list(ladder.list_devices({"fence_agent": "ipmi", "oob_program": "/bin/oob"})) == [
        Rung.HELPER,
        Rung.AGENT,
    ]
    assert ladder.list_devices({"fence_agent": None}) == {}


@pytest.mark.parametrize(
    ("known", "number", "master", "new"),
    [
        (Term(3, "a"), 2, "a", None),
        (Term(3, "a"), 3, "b", None),
        (Term(3, "a"), 3, "a", Term(3, "a")),
        (Term(3, "a"), 4, "b", Term(4, "b")),
        (Term(3, ""), 3, "b", Term(3, "b")),
        (Term(3, "a"), 3, "", Term(3, "a")),
        (Term(), 0, "", Term()),
        (Term(), 1, "", Term(1, "")),
    ],
)
def test_a_node_follows_the_newest_master(
    known: Term, number: int, master: str, new: Term | None
) -> None:
    assert known.hear(number, master) == new


@pytest.mark.parametrize(
    ("known", "number", "voted", "new"),
    [
        (Term(3, "a"), 2, None, None),
        (Term(3, "a"), 3, None, None),
        (Term(3, ""), 3, None, Term(3, "b")),
        (Term(3, "b"), 3, 2, Term(3, "b")),
        (Term(3, "a"), 4, None, Term(4, "b")),
        (Term(3, "a"), 4, 3, Term(4, "b")),
        (Term(3, "a"), 5, 2, None),
        (Term(3, "b"), 4, 2, None),
    ],
    ids=["old", "taken", "free", "twice", "new", "voted", "claimed since", "claimed by itself"],
)
def test_claims_of_a_term(known: Term, number: int, voted: int | None, new: Term | None) -> None:
    assert known.claim(number, "b", voted) == new

"""The thread that renews the lease of the master's role."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from jumping_clock import JumpingClock
from memory_store import MemoryStore

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.config.role import Role
from ganeti.master.role_keeper import RoleKeeper
from ganeti.recovery import bounds
from ganeti.recovery.role import Claim

NODE = "node1.example.com"
LIMIT = 15


class Store(MemoryStore):
    """Tells each renewal, and answers as it is told to."""

    def __init__(self, clock: JumpingClock) -> None:
        super().__init__(clock.monotonic)
        self.clock = clock
        self.asked = threading.Semaphore(0)
        self.ends: list[float] = []
        self.answers = True
        #: seconds that a renewal takes
        self.takes = 0.0

    def renew(self, claim: Claim, seconds: int, end: Deadline | None = None) -> int | None:
        assert end is not None
        self.ends.append(self.clock.monotonic() + end.left)
        granted = super().renew(claim, seconds, end)
        self.clock.ahead += self.takes
        self.asked.release()
        if not self.answers:
            raise errors.RemoteError("no member answers")
        return granted


class Bench:
    def __init__(self) -> None:
        self.clock = JumpingClock()
        self.store = Store(self.clock)
        self.role = Role(self.store, NODE, self.clock)
        self.lost: list[str] = []
        self.ended = threading.Event()
        self.renewed = threading.Semaphore(0)
        self.limit = LIMIT

    def keep(self, **how: Any) -> RoleKeeper:
        self.keeper = RoleKeeper(self.role, lambda: self.limit, clock=self.clock, **how)
        self.keeper.on_lost = lambda text: (self.lost.append(text), self.ended.set())[0]
        self.keeper.on_renewed = self.renewed.release
        self.keeper.start()
        return self.keeper

    def advance(self, seconds: float) -> None:
        """Let time pass, and the thread see it."""
        self.clock.ahead += seconds
        self.keeper.note_change()


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.keeper.stop()
    made.keeper._thread.join(20)


def test_the_lease_begins_before_the_renewal_was_sent(bench: Bench) -> None:
    bench.role.take(1, LIMIT)
    keeper = bench.keep()
    bench.store.takes = 2.0
    sent = bench.clock.monotonic()
    bench.advance(3.0)
    assert bench.renewed.acquire(timeout=20)
    assert sent + 3.0 <= keeper.find_contact() < sent + 4.5, "not when the answer came"


def test_no_renewal_may_go_on_after_the_end_of_the_lease(bench: Bench) -> None:
    bench.role.take(1, LIMIT)
    held = bench.role.held
    assert held is not None
    keeper = bench.keep()
    bench.store.answers = False
    bench.advance(3.0)
    assert bench.store.asked.acquire(timeout=20)
    assert bench.store.ends[0] == pytest.approx(held.since + bounds.count_acting(LIMIT), abs=0.1)
    assert keeper.find_contact() == held.since
    bench.advance(LIMIT)
    keeper._thread.join(20)
    assert not keeper._thread.is_alive()
    assert bench.lost == [], "the end of the lease is noticed elsewhere"


def test_a_renewal_that_failed_is_tried_again_soon(bench: Bench) -> None:
    bench.role.take(1, LIMIT)
    keeper = bench.keep()
    bench.store.answers = False
    bench.advance(3.0)
    assert bench.store.asked.acquire(timeout=20)
    assert bench.store.asked.acquire(timeout=20)
    bench.store.answers = True
    assert bench.renewed.acquire(timeout=20)
    assert keeper.problem == ""


def test_a_master_whose_role_was_taken_is_told(bench: Bench) -> None:
    bench.role.take(1, LIMIT)
    keeper = bench.keep()
    Role(bench.store, "node2.example.com", bench.clock).take(1, LIMIT, force=True)
    bench.advance(3.0)
    assert bench.ended.wait(20)
    assert bench.lost == ["the store has ended the role of this master, or another one has it"]
    assert keeper.find_contact() == 0.0


def test_another_length_is_asked_for_at_once(bench: Bench) -> None:
    bench.role.take(1, LIMIT)
    keeper = bench.keep()
    bench.limit = 60
    keeper.note_change()
    assert bench.renewed.acquire(timeout=20)
    assert keeper.count_seconds() == 60


def test_a_master_alone_acts_without_the_store_and_takes_the_role_when_it_can(
    bench: Bench,
) -> None:
    read, tried = bench.store.read, threading.Event()

    def refuse(end: Deadline | None = None) -> Any:
        tried.set()
        raise errors.RemoteError("no member answers")

    bench.store.read = refuse  # type: ignore[method-assign]
    keeper = bench.keep(alone=lambda: 7)
    assert tried.wait(20)
    assert keeper.find_contact() == pytest.approx(bench.clock.monotonic(), abs=5)
    bench.store.read = read  # type: ignore[method-assign]
    keeper.note_change()
    assert bench.renewed.acquire(timeout=20)
    assert bench.store.read().holder == Claim(7, NODE)


def test_a_master_alone_gives_way_to_one_that_has_the_role(bench: Bench) -> None:
    Role(bench.store, "node2.example.com", bench.clock).take(1, LIMIT)
    bench.keep(alone=lambda: 7)
    assert bench.ended.wait(20)

"""Equal questions share rounds, and no answer is older than its question."""

from __future__ import annotations

import threading

import pytest
from waiting import wait_for

from ganeti import errors
from ganeti.rpc import rounds
from ganeti.rpc.rounds import Rounds


class Work:
    """Rounds that end when they are told to, numbered from one."""

    def __init__(self) -> None:
        self.began = 0
        self.changed = threading.Condition()
        self.ended = 0
        self.failing = False

    def __call__(self) -> int:
        with self.changed:
            self.began += 1
            number = self.began
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.ended >= number, 10)
        if self.failing:
            raise errors.RpcError(f"round {number}")
        return number

    def end(self, number: int) -> None:
        with self.changed:
            self.ended = number
            self.changed.notify_all()

    def await_round(self, number: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.began >= number, 10)


class Asker(threading.Thread):
    def __init__(self, shared: Rounds, work: Work, key: str = "key") -> None:
        super().__init__()
        self.answer: int | str | None = None
        self._ask = lambda: shared.share(key, work)
        self.start()

    def run(self) -> None:
        try:
            self.answer = self._ask()
        except errors.RpcError as err:
            self.answer = str(err)

    def finish(self) -> int | str | None:
        self.join(10)
        assert not self.is_alive()
        return self.answer


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "PATIENCE", 10.0)


def waiting(shared: Rounds, key: str = "key") -> bool:
    """Whether a round is announced that has not begun."""
    latest = shared._latest.get(key)
    return latest is not None and not latest.begun


@pytest.mark.usefixtures("patient")
def test_those_who_come_during_a_round_share_the_next_one() -> None:
    shared, work = Rounds(), Work()
    first = Asker(shared, work)
    work.await_round(1)
    late = [Asker(shared, work) for _ in range(5)]
    wait_for(lambda: waiting(shared), "a round is announced", pause=0.001)
    assert work.began == 1
    work.end(1)
    assert first.finish() == 1
    work.end(2)
    # One that was slow to come may have needed a round of its own.
    work.end(9)
    answers = [asker.finish() for asker in late]
    assert min(answers) >= 2
    assert work.began <= 1 + len(set(answers))
    assert shared._latest == {}


@pytest.mark.usefixtures("patient")
def test_another_question_has_its_own_round() -> None:
    shared, work = Rounds(), Work()
    first = Asker(shared, work, "one")
    second = Asker(shared, work, "two")
    work.await_round(2)
    work.end(2)
    assert {first.finish(), second.finish()} == {1, 2}


def test_a_long_round_holds_up_others_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "PATIENCE", 0.05)
    shared, work = Rounds(), Work()
    first = Asker(shared, work)
    work.await_round(1)
    second = Asker(shared, work)
    work.await_round(2)  # begins although the first one is still under way
    work.end(2)
    assert (first.finish(), second.finish()) == (1, 2)
    assert shared._latest == {}


@pytest.mark.usefixtures("patient")
def test_an_error_is_everybodys_and_the_next_round_is_new() -> None:
    shared, work = Rounds(), Work()
    work.failing = True
    first = Asker(shared, work)
    work.await_round(1)
    second = Asker(shared, work)
    wait_for(lambda: waiting(shared), "a round is announced", pause=0.001)
    work.end(2)
    assert first.finish() == "round 1"
    assert second.finish() == "round 2"
    work.failing = False
    work.end(3)
    assert shared.share("key", work) == 3

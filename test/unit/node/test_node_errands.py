"""What is delivered again, how often, and what comes while something is being delivered."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping

import pytest
from waiting import wait_for

from ganeti.node import errands
from ganeti.node.errands import Errands


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errands, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(errands, "LONGEST_PAUSE", 0.02)


class Receiver:
    """Takes what is delivered; ``wanted`` says what is to come again."""

    def __init__(self) -> None:
        self.seen: list[dict[str, int]] = []
        self.again: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, items: Mapping[str, int]) -> Collection[str]:
        self.seen.append(dict(items))
        self.gate.wait(5)
        return self.again & set(items)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def sender(receiver: Receiver) -> Iterator[Errands[str]]:
    made = Errands("test", receiver, patience=60)
    yield made
    receiver.gate.set()
    made.stop()


def test_what_is_left_over_comes_again_with_the_number_of_attempts(
    sender: Errands[str], receiver: Receiver
) -> None:
    receiver.again = {"a"}
    sender.add(["a", "b"])
    wait_for(lambda: {"a": 2} in receiver.seen, "a comes a third time")
    receiver.again = set()
    assert receiver.seen[:3] == [{"a": 0, "b": 0}, {"a": 1}, {"a": 2}]
    wait_for(lambda: not threading_left("test"), "the thread ends with its work")
    sender.add(["c"])
    wait_for(lambda: receiver.seen[-1] == {"c": 0}, "it begins again")


def test_what_is_added_while_it_is_delivered_is_delivered_once_more(
    sender: Errands[str], receiver: Receiver
) -> None:
    receiver.gate.clear()
    sender.add(["a"])
    wait_for(lambda: receiver.seen, "the delivery begins")
    sender.add(["a", "a"])
    receiver.gate.set()
    wait_for(lambda: len(receiver.seen) == 2, "the second one")
    assert receiver.seen == [{"a": 0}, {"a": 0}]


def test_it_is_given_up_when_it_is_too_old(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.again = {"a"}
    made = Errands("test", receiver, patience=0)
    made.add(["a"])
    wait_for(lambda: "a is given up after 0 s" in caplog.text, "it is given up")
    wait_for(lambda: not threading_left("test"), "the thread ends")
    made.stop()


def test_a_bug_keeps_nobody_from_delivering_later(caplog: pytest.LogCaptureFixture) -> None:
    failures = ["broken"]
    seen: list[str] = []

    def deliver(items: Mapping[str, int]) -> Collection[str]:
        if failures:
            raise ValueError(failures.pop())
        seen.extend(items)
        return ()

    made = Errands("test", deliver, patience=60)
    made.add(["a"])
    wait_for(lambda: seen == ["a"], "it is delivered")
    assert "failed by a bug" in caplog.text
    made.stop()
    made.add(["b"])
    assert not threading_left("test")


def threading_left(name: str) -> bool:
    return any(thread.name == name for thread in threading.enumerate())

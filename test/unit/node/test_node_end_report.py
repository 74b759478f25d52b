"""What a node tells the master of guests that ended, and tells the next master again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jumping_clock import JumpingClock
from waiting import wait_for

from ganeti import errors
from ganeti.node import end_report, errands
from ganeti.node.context import NodeContext
from ganeti.node.end_report import EndReport
from ganeti.rpc.calls import NodeCalls

WEB, SHOP = "web1.example.com", "shop.example.com"


class Master:
    """Takes the calls of this node, unless it is silent."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.attempts = 0
        self.silent = False

    def call(
        self, _context: NodeContext, _seconds: float, method: object, names: tuple[str, ...] = ()
    ) -> None:
        self.attempts += 1
        if self.silent:
            raise errors.RpcError("no answer")
        self.told += ["up"] if method is NodeCalls.host_starts else names


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> Master:
    made = Master()
    monkeypatch.setattr(end_report, "call_master", made.call)
    monkeypatch.setattr(errands, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(errands, "LONGEST_PAUSE", 0.02)
    return made


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
def report(context: NodeContext, clock: JumpingClock) -> Iterator[EndReport]:
    made = EndReport(context, clock=clock)
    yield made
    made.stop()


def test_the_next_master_is_told_of_what_the_last_one_heard(
    report: EndReport, master: Master
) -> None:
    report.send(WEB)
    report.send_start()
    wait_for(lambda: len(master.told) == 2, "the master is told")
    assert master.told == [WEB, "up"]
    report.repeat()
    wait_for(lambda: len(master.told) == 4, "the next master is told")
    assert master.told[2:] == [WEB, "up"]


def test_the_next_master_is_not_told_of_what_is_long_ago(
    report: EndReport, master: Master, clock: JumpingClock
) -> None:
    report.send(WEB)
    wait_for(lambda: master.told == [WEB], "the master is told")
    clock.ahead += 301
    report.send(SHOP)
    wait_for(lambda: master.told == [WEB, SHOP], "the master is told again")
    report.repeat()
    wait_for(lambda: len(master.told) > 2, "the next master is told")
    assert master.told == [WEB, SHOP, SHOP]


def test_a_master_that_does_not_answer_is_asked_again(report: EndReport, master: Master) -> None:
    master.silent = True
    report.send(WEB)
    wait_for(lambda: master.attempts > 1, "it is asked again")
    master.silent = False
    wait_for(lambda: master.told == [WEB], "the master is told")

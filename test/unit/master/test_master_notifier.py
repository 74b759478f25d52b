"""Which notices are sent, and what a restart and another master make of those that wait."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ganeti import errors
from ganeti.master import notifier as module
from ganeti.master.notifier import Notifier
from ganeti.model.notification import Notification
from ganeti.notify.conditions import Condition
from ganeti.paths import Paths


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    monotonic = now


class Master:
    """What a notifier needs of a master, and what it sends."""

    def __init__(self, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.paths = Clock(), paths
        paths.data.mkdir(parents=True)
        self.wrong: list[Condition] = []
        self.sent: list[list[str]] = []
        self.problem = ""
        self.quorum = True
        cluster = SimpleNamespace(
            cluster_name="c", master_node="n1", notifying_node="n1", notifications={}
        )
        self.cluster = cluster
        nodes = {name: SimpleNamespace(name=name) for name in ("n1", "n2")}
        current = SimpleNamespace(cluster=cluster, nodes=nodes, master=nodes["n1"])
        self.store = SimpleNamespace(current=current, change=self.change)
        self.later: list[Callable[[], None]] = []
        monkeypatch.setattr(module, "find_conditions", lambda _core: self.wrong)
        monkeypatch.setattr(module.sending, "send", self.send)

    def change(self, _name: str, _author: object, _edit: object) -> None:
        if not self.quorum:
            raise errors.QuorumError("too few nodes answer")
        self.cluster.notifying_node = self.cluster.master_node

    def send(
        self, _paths: object, _cluster: str, _name: str, _item: object, message: Any, _now: float
    ) -> None:
        if self.problem:
            raise errors.RemoteError(self.problem)
        self.sent.append([notice.event for notice in message.notices])

    def start(self) -> Notifier:
        """A notifier whose messages are sent when the test says so."""
        made = Notifier(self, lambda data: made.note(self.event(data)))  # type: ignore[arg-type]
        made._senders = SimpleNamespace(submit=self.submit)  # type: ignore[assignment]
        made.load()
        return made

    def submit(self, work: Callable[..., None], *args: object) -> None:
        self.later.append(lambda: work(*args))

    def event(self, data: dict[str, Any]) -> dict[str, Any]:
        common = {"id": "r-1", "time": self.clock.at, "change": "condition", "data": data}
        return {
            **common,
            "kind": data["kind"],
            "object": data["object"],
            "objects": [data["object"]],
        }

    def work(self, made: Notifier, seconds: float = 0.0) -> None:
        """A round of the survey, and all that follows from it."""
        self.clock.at += seconds
        made.note_round()
        made.work()
        while self.later:
            self.later.pop()()
        made.work()


@pytest.fixture
def master(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Master:
    made = Master(Paths(tmp_path), monkeypatch)
    made.cluster.notifications = {"ops": Notification(command=("x",), interval=60.0)}
    return made


LATE = Condition("backup-overdue", "instance", "web1", "old")
DUE = Condition("certificate-expiring", "node", "n2", "soon")


def test_what_begins_is_sent_once_and_its_end_after_the_pause(master: Master) -> None:
    notifier = master.start()
    master.wrong = [LATE, DUE]
    master.work(notifier)
    assert master.sent == []
    master.work(notifier, 2)
    assert master.sent == [["backup-overdue", "certificate-expiring"]]
    master.wrong = [DUE]
    master.work(notifier, 10)
    assert len(master.sent) == 1
    master.work(notifier, 60)
    assert master.sent[1:] == [["backup-overdue"]]


def test_a_message_that_is_being_sent_is_not_sent_again(master: Master) -> None:
    notifier = master.start()
    master.wrong = [LATE]
    master.work(notifier)
    master.clock.at += 2
    notifier.work()
    [send] = master.later
    notifier.work()
    send()
    notifier.work()
    assert len(master.later) == 1
    assert master.sent == [["backup-overdue"]]


def test_a_restart_repeats_and_loses_nothing(master: Master) -> None:
    notifier = master.start()
    master.wrong, master.problem = [LATE], "refused"
    master.work(notifier)
    master.work(notifier, 2)
    [shown] = notifier.describe()
    assert (shown["problem"], shown["waiting"]) == ("refused", 1)
    again, master.problem = master.start(), ""
    master.work(again)
    master.work(again, 30)
    assert master.sent == [["backup-overdue"]]
    master.work(master.start(), 100)
    assert master.sent == [["backup-overdue"]]


def test_another_master_forgets_what_it_knew_and_tells_what_is_wrong(master: Master) -> None:
    notifier = master.start()
    master.wrong, master.problem = [LATE, DUE], "refused"
    master.work(notifier)
    master.work(notifier, 2)
    master.cluster.notifying_node, master.problem = "n2", ""
    master.wrong = [DUE]
    again = master.start()
    master.quorum = False
    master.work(again, 100)
    assert master.sent == []
    master.quorum = True
    master.work(again)
    master.work(again, 2)
    assert master.sent == [["master-changed", "certificate-expiring"]]


def test_a_clock_that_was_ahead_holds_nothing_back(master: Master) -> None:
    notifier = master.start()
    master.clock.at += 86400
    master.wrong = [LATE]
    master.work(notifier)
    master.clock.at -= 86400
    master.work(notifier)
    master.work(notifier, 901)
    assert master.sent == [["backup-overdue"]]

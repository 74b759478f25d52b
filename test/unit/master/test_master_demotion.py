"""An offline node that answers is demoted, but never while a job works on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ganeti.config.store import Store
from ganeti.locking.levels import BGL, LockLevel
from ganeti.locking.manager import LockManager
from ganeti.master import demotion
from ganeti.master.demotion import Demotion
from ganeti.paths import Paths
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.replica import MasterView

DEMOTE = NodeCalls.node_demote_from_mc.__name__
LEVELS = [level.label for level in LockLevel]


class Answering:
    """Stands for node calls: every node answers."""

    epoch = 4

    def __init__(self) -> None:
        self.calls: list[str] = []

    def limit_time(self, _seconds: float) -> Answering:
        return self

    def call_one(self, node: Any, method: Any, *_args: object) -> object:
        self.calls.append(method.__name__)
        return MasterView(master=node.name, epoch=1)


@pytest.fixture
def locks() -> LockManager:
    made = LockManager(LEVELS)
    made.create(LockLevel.CLUSTER, [BGL])
    made.create(LockLevel.NODE, ["node-1"])
    return made


@pytest.fixture
def rpc() -> Answering:
    return Answering()


@pytest.fixture
def notice(
    root: Paths, rpc: Answering, locks: LockManager, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Demotion]:
    monkeypatch.setattr(demotion, "RETRY_AFTER", 0.01)
    store = Store(root)
    made = Demotion(store, rpc, locks)  # type: ignore[arg-type]
    yield made
    made.stop()
    store.close()


def wait_for_calls(rpc: Answering, name: str, times: int) -> None:
    end = time.monotonic() + 20
    while rpc.calls.count(name) < times:
        assert time.monotonic() < end, rpc.calls
        time.sleep(0.01)


@pytest.mark.parametrize(("level", "name"), [(LockLevel.NODE, "node-1"), (LockLevel.CLUSTER, BGL)])
def test_it_waits_for_a_job_that_may_promote_the_node(
    notice: Demotion, rpc: Answering, locks: LockManager, level: LockLevel, name: str
) -> None:
    locks.request(7, level, [name], shared=False, on_done=lambda _request: None)
    notice.start()
    wait_for_calls(rpc, NodeCalls.node_stop_master.__name__, 3)
    assert DEMOTE not in rpc.calls
    locks.release(7)
    wait_for_calls(rpc, DEMOTE, 1)
    assert not [view for view in locks.snapshot() if view.owners]

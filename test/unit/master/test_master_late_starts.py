"""When instances of dead nodes that could not start at once are tried again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from one_process import OneProcess

from ganeti.config.changes import Author
from ganeti.master.late_starts import PAUSE, PERIOD, REFUSED_PAUSE, LateStarts
from ganeti.model.recovery import Attempt, Fencing
from ganeti.opcodes import registry, wire
from ganeti.opcodes.node import OpNodeFence
from ganeti.ops.steps.nodes.failover_places import Places, Start

WEB = "web1.example.com"
NODE2 = "node2.example.com"


class Bench:
    """node2 is dead with web1 on it; the test says what has room and which jobs run."""

    def __init__(self, root: Path) -> None:
        self.cluster = cluster = OneProcess(root)
        params = {
            "instance_name": WEB,
            "mode": "create",
            "os_type": "noop",
            "disk_template": "sharedfile",
            "disks": [{"size": 1}],
            "nics": [],
            "pnode": NODE2,
            "beparams": {"ha": "failover"},
        }
        cluster.run(wire.decode(registry.find("OP_INSTANCE_CREATE"), params))
        node = cluster.node(2)
        fenced = Fencing(time=1000.0, proof="x", job=50)
        cluster.store.change(
            "test", Author(), lambda draft: draft.update(node, offline=True, fenced=fenced)
        )
        self.time = 1000.0 + PERIOD
        self.room = True
        self.paused = False
        self.running: set[int] = set()
        self.submitted: list[Any] = []
        clock: Any = SimpleNamespace(now=lambda: self.time)
        queue: Any = SimpleNamespace(
            has_ended=lambda job: job not in self.running, submit=self._submit
        )
        self.late_starts = LateStarts(
            cluster.store, queue, self._place, is_paused=lambda: self.paused, clock=clock
        )

    def _submit(self, job: list[Any], _submitter: None, *, ignore_drain: bool) -> list[int]:
        assert ignore_drain
        self.submitted += job
        return [77]

    def _place(self, _node: Any) -> Places:
        item = self.cluster.config.instance(WEB)
        if self.room:
            return Places([Start(item, "node3.example.com")], [], [])
        return Places([], [], [(WEB, "node3 needs another 5 MiB of memory")])

    def note_attempt(self, number: int, job: int = 60) -> None:
        item, node = self.cluster.config.instance(WEB), self.cluster.node(2)
        attempt = Attempt(time=self.time, source=node.uuid, job=job, number=number)
        self.cluster.store.change(
            "test", Author(), lambda draft: draft.update(item, recovery=attempt)
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "c")
    yield made
    made.cluster.close()


def test_what_has_room_now_is_started_by_a_job(bench: Bench) -> None:
    bench.room = False
    assert bench.late_starts.try_again() == []
    (missing,) = bench.late_starts.roomless.values()
    assert missing == {WEB: "node3 needs another 5 MiB of memory"}
    bench.room = True
    assert bench.late_starts.try_again() == [77]
    ((op,),) = bench.submitted
    assert isinstance(op, OpNodeFence)
    assert op.node_name == NODE2
    assert op.reason[0][:2] == ("gnt:master:retries", "1 of its instances can start now")
    assert list(bench.late_starts.roomless.values()) == [{}]


def test_a_failed_attempt_is_repeated_later_and_not_without_end(bench: Bench) -> None:
    bench.note_attempt(1)
    assert bench.late_starts.try_again() == []
    bench.time += PAUSE
    bench.running = {60}
    assert bench.late_starts.try_again() == []
    bench.running = set()
    assert bench.late_starts.try_again() == [77]
    bench.note_attempt(2)
    bench.time += 2 * PAUSE - 1
    assert bench.late_starts.try_again() == []
    bench.time += 1
    assert bench.late_starts.try_again() == [77]
    bench.note_attempt(3)
    bench.time += 100 * PAUSE
    assert bench.late_starts.try_again() == []
    bench.note_attempt(3, job=40)  # of an earlier death
    assert bench.late_starts.try_again() == [77]


def test_a_job_that_started_nothing_is_not_repeated_at_once(bench: Bench) -> None:
    """The node answers again, so the job refuses, until somebody sets the node online."""
    assert bench.late_starts.try_again() == [77]
    bench.time += REFUSED_PAUSE - 1
    assert bench.late_starts.try_again() == []
    bench.time += 1
    assert bench.late_starts.try_again() == [77]


def test_nothing_is_tried_in_a_pause_nor_when_the_node_is_back(bench: Bench) -> None:
    bench.paused = True
    assert bench.late_starts.try_again() == []
    bench.paused = False
    node = bench.cluster.node(2)
    bench.cluster.store.change("test", Author(), lambda draft: draft.update(node, offline=False))
    assert bench.late_starts.try_again() == []

"""Whom a new master asks for open migrations, how often, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from one_process import OneProcess

from ganeti import errors
from ganeti.base import files
from ganeti.hypervisor.fake_guests import Guests
from ganeti.master.settling import Settling
from ganeti.model.ids import InstanceUuid
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import RightState, RunRight


class Queue:
    """Takes jobs, or refuses them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.failure: errors.GanetiError | None = None

    def submit(self, jobs: list[list[Any]], _submitter: Any, *, ignore_drain: bool) -> list[int]:
        assert ignore_drain
        if self.failure is not None:
            raise self.failure
        for [op] in jobs:
            assert isinstance(op, OpInstanceMigrate)
            assert op.cleanup
            self.names.append(op.instance_name)
        return list(range(len(jobs)))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OneProcess]:
    made = OneProcess(tmp_path / "cluster")
    made.new_master()  # in term 2
    yield made
    made.close()


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def settling(cluster: OneProcess, queue: Queue) -> Settling:
    instances = {name: SimpleNamespace(name=name) for name in ("web1", "web2", "web3")}
    store: Any = SimpleNamespace(
        current=SimpleNamespace(
            instances=instances,
            online_nodes=cluster.config.online_nodes,
            cluster=SimpleNamespace(enabled_hypervisors=["fake"]),
        )
    )
    wire: Any = cluster
    jobs: Any = queue
    return Settling(store, wire, jobs)


def note(cluster: OneProcess, number: int, name: str, term: int, state: RightState) -> None:
    node = cluster.node(number)
    right = RunRight(
        uuid=InstanceUuid(name), name=name, epoch=(term, 1), state=state, peer="node3.example.com"
    )
    cluster.call_one(node, NodeCalls.run_right_set, right, "fake")


def test_a_node_that_was_away_is_asked_when_it_answers_and_then_no_more(
    cluster: OneProcess, queue: Queue, settling: Settling, caplog: pytest.LogCaptureFixture
) -> None:
    note(cluster, 1, "web1", 1, RightState.ARRIVING)
    note(cluster, 2, "web2", 1, RightState.ARRIVING)
    away = cluster.node(2).uuid
    cluster.silent.add(away)
    settling.ask()
    assert queue.names == ["web1"]
    settling.ask()
    assert queue.names == ["web1"]
    assert [record.message for record in caplog.records if "asked later" in record.message] == [
        "asked later for open migrations: node node2.example.com does not answer"
    ]
    cluster.silent.clear()
    settling.ask()
    assert queue.names == ["web1", "web2"]
    calls = cluster.calls
    settling.ask()
    assert cluster.calls == calls


def test_a_migration_of_this_master_is_left_to_its_job(
    cluster: OneProcess, queue: Queue, settling: Settling
) -> None:
    note(cluster, 1, "web1", cluster.epoch, RightState.ARRIVING)
    note(cluster, 1, "web2", 1, RightState.GONE)
    note(cluster, 1, "removed", 1, RightState.ARRIVING)
    settling.ask()
    assert queue.names == []


def test_jobs_that_are_refused_are_submitted_later(
    cluster: OneProcess, queue: Queue, settling: Settling
) -> None:
    note(cluster, 1, "web1", 1, RightState.ARRIVING)
    queue.failure = errors.QuorumError("too few candidates")
    with pytest.raises(errors.QuorumError):
        settling.ask()
    queue.failure = None
    settling.ask()
    assert queue.names == ["web1"]


def test_a_conversion_that_did_not_end_is_settled(
    cluster: OneProcess, queue: Queue, settling: Settling
) -> None:
    guests = Guests(cluster.paths["node2"].fake_hypervisor)
    guests.directory.mkdir(parents=True, exist_ok=True)
    for name in ("web2", "removed"):
        guests.write(name, 128, 1)
        guests.note_disks(name, {})
        files.write_atomic(guests.successors_file(name), '{"u": "new"}')
    settling.ask()
    assert queue.names == ["web2"]

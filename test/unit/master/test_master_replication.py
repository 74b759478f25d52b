"""What a candidate is sent, and what must not stop the sending."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from waiting import wait_for

from ganeti import errors
from ganeti.master.channel import Channel, Snapshot, State
from ganeti.master.copy_round import CopyRound, Failure
from ganeti.model.node import Node
from ganeti.rpc.calls import NodeCalls


class Rpc:
    """A candidate that takes everything."""

    epoch = 1

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.failure: Exception | None = None
        #: set when it is asked what it lacks; it answers once ``goes_on`` is set
        self.asked, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def call_one(self, _node: Node, method: Any, argument: Any) -> Any:
        if self.failure is not None:
            raise self.failure
        if method is NodeCalls.replica_differing:
            self.asked.set()
            assert self.goes_on.wait(20)
            return list(argument)
        self.files.update(argument.files)
        return True


@pytest.fixture
def rpc() -> Rpc:
    return Rpc()


@pytest.fixture
def channel(rpc: Rpc) -> Iterator[Channel]:
    def snapshot(_files: bool) -> Snapshot:
        files = {"job-1": b"\xff\xfe", "job-2": b"{}"}
        return Snapshot(serial=1, config="{}", files=files, drained=False)

    node = Node(uuid="u", name="node2", primary_ip="", secondary_ip="", group="")
    made = Channel(node, rpc, State(snapshot, lambda _names: {}), 0)  # type: ignore[arg-type]
    yield made
    made.stop()


def write(channel: Channel, name: str) -> CopyRound:
    sent = CopyRound(("node2", "node3"), "the job")
    sent.note_failure("node3", Failure("it is off"))
    channel.put(lambda pending: pending.files.add({name: b"{}"}), 1, sent)
    return sent


def test_a_damaged_file_keeps_nothing_from_a_candidate(channel: Channel, rpc: Rpc) -> None:
    write(channel, "job-3").wait()
    assert rpc.files == {"job-2": "{}", "job-3": "{}"}


def test_a_defect_is_told_at_once_and_sending_goes_on(channel: Channel, rpc: Rpc) -> None:
    write(channel, "job-3").wait()
    rpc.failure = ValueError("something unforeseen")
    with pytest.raises(errors.QuorumError, match="something unforeseen"):
        write(channel, "job-4").wait()
    rpc.failure = None
    assert channel.flushed(30) or channel.failure
    assert channel._thread.is_alive()


def test_who_answers_and_cannot_write_is_not_given_up(channel: Channel, rpc: Rpc) -> None:
    write(channel, "job-3").wait()
    rpc.failure = errors.FileError("node node2: cannot write /q: No space left on device")
    with pytest.raises(errors.QuorumError) as told:
        write(channel, "job-4").wait()
    assert str(told.value) == (
        "the job is on 1 of 3 master candidates, 2 are needed."
        " Missing: node2: cannot write /q: No space left on device; node3: it is off."
        " Remove the cause on node2; copies follow by themselves."
        " Start the node daemons of node3"
    )
    failure = channel.retry()
    assert failure is not None
    assert failure.answered
    rpc.failure = None
    wait_for(lambda: channel.retry() is None, "the channel to work again")


def test_a_candidate_that_catches_up_counts_for_a_majority(channel: Channel, rpc: Rpc) -> None:
    write(channel, "job-3").wait()
    rpc.failure = errors.RpcError("connection refused")
    with pytest.raises(errors.QuorumError, match="connection refused"):
        write(channel, "job-4").wait()
    rpc.asked.clear()
    rpc.goes_on.clear()
    rpc.failure = None  # it is back, and is sent what it missed
    assert rpc.asked.wait(20)
    sent = write(channel, "job-5")
    rpc.goes_on.set()
    sent.wait()
    assert "job-5" in rpc.files

"""Many writers share a flush; what fails is told to all it concerns."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ganeti import errors
from ganeti.base.group_commit import GroupCommit


class Disk:
    """A slow disk: each flush can be held, and fails when told to."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.errors: list[BaseException] = []
        self.busy = threading.Event()
        self.go = threading.Event()
        self.go.set()
        self._flushing = threading.Lock()

    def flush(self, batch: list[int]) -> None:
        assert self._flushing.acquire(blocking=False), "two flushes at the same time"
        try:
            self.busy.set()
            assert self.go.wait(10)
            if self.errors:
                raise self.errors.pop(0)
            self.batches.append(batch)
        finally:
            self._flushing.release()


def test_writers_that_come_during_a_flush_share_the_next_one() -> None:
    disk = Disk()
    commit = GroupCommit(disk.flush)
    disk.go.clear()
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(commit.wait, commit.add(0))
        assert disk.busy.wait(10)
        others = [pool.submit(commit.wait, commit.add(number)) for number in range(1, 20)]
        assert not first.done()
        disk.go.set()
        for future in (first, *others):
            future.result(10)
    assert disk.batches == [[0], list(range(1, 20))]


def test_items_are_flushed_in_order_and_once_whoever_waits() -> None:
    disk = Disk()
    commit = GroupCommit(disk.flush)
    order: list[int] = []
    lock = threading.Lock()

    def write(_worker: int) -> None:
        for _ in range(50):
            with lock:
                number = len(order)
                order.append(number)
                ticket = commit.add(number)
            commit.wait(ticket)
            assert any(number in batch for batch in disk.batches)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(write, worker) for worker in range(8)]:
            future.result(30)
    assert [number for batch in disk.batches for number in batch] == order


def test_the_last_writer_may_wait_for_all() -> None:
    disk = Disk()
    commit = GroupCommit(disk.flush)
    tickets = [commit.add(number) for number in range(3)]
    assert disk.batches == []
    commit.wait(tickets[-1])
    assert disk.batches == [[0, 1, 2]]
    for ticket in tickets:
        commit.wait(ticket)
    assert len(disk.batches) == 1


def test_a_failure_reaches_all_of_its_round_and_nobody_else() -> None:
    disk = Disk()
    commit = GroupCommit(disk.flush)
    disk.go.clear()
    with ThreadPoolExecutor(10) as pool:
        first = pool.submit(commit.wait, commit.add(0))
        assert disk.busy.wait(10)
        round_two = [pool.submit(commit.wait, commit.add(number)) for number in range(1, 6)]
        disk.errors = []
        disk.go.set()
        first.result(10)
        for future in round_two:
            future.result(10)
        disk.errors = [OSError("disk full")]
        tickets = [commit.add(number) for number in range(6, 9)]
        for future in [pool.submit(commit.wait, ticket) for ticket in tickets]:
            with pytest.raises(OSError, match="disk full"):
                future.result(10)
    commit.wait(commit.add(9))
    assert [number for batch in disk.batches for number in batch] == [0, 1, 2, 3, 4, 5, 9]


def test_a_failure_during_which_others_came_is_not_theirs() -> None:
    disk = Disk()
    commit = GroupCommit(disk.flush)
    disk.errors = [OSError("disk full")]
    disk.go.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(commit.wait, commit.add(0))
        assert disk.busy.wait(10)
        second = pool.submit(commit.wait, commit.add(1))
        disk.go.set()
        with pytest.raises(OSError, match="disk full"):
            first.result(10)
        second.result(10)
    assert disk.batches == [[1]]


def test_an_interrupted_leader_leaves_nobody_waiting() -> None:
    disk = Disk()
    commit = GroupCommit(disk.flush)
    disk.errors = [KeyboardInterrupt()]
    disk.go.clear()
    mine, other = commit.add(0), commit.add(1)
    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(commit.wait, mine)
        assert disk.busy.wait(10)
        follower = pool.submit(commit.wait, other)
        disk.go.set()
        with pytest.raises(KeyboardInterrupt):
            leader.result(10)
        with pytest.raises(errors.GenericError, match="interrupted"):
            follower.result(10)
    commit.wait(commit.add(2))
    assert disk.batches == [[2]]

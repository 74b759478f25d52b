"""What a client is told is on disk, and what a crash leaves is enough to go on from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_queue import PATIENCE, on_disk, op

from ganeti.base.copies import NoCopies, Round
from ganeti.base.file_journal import FileJournal
from ganeti.base.file_parts import Contents
from ganeti.jobs.files import JobFiles
from ganeti.opcodes.base import JobDep


class SlowDisk:
    """While it is held, nothing gets written; knows what waits to be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._free = threading.Event()
        self._free.set()
        self.reached = threading.Event()
        self._write = FileJournal.write
        slow = self

        def write(journal: FileJournal, contents: Contents) -> None:
            slow._wait()
            slow._write(journal, contents)

        monkeypatch.setattr(FileJournal, "write", write)

    def _wait(self) -> None:
        if not self._free.is_set():
            self.reached.set()
            assert self._free.wait(PATIENCE)

    def hold(self) -> None:
        self.reached.clear()
        self._free.clear()

    def release(self) -> None:
        self._free.set()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    made = SlowDisk(monkeypatch)
    yield made
    made.release()


def submit(office, key: str) -> int:
    return office.queue.submit([[op()]], None, key=key)[0]


def test_nobody_sees_an_end_that_a_crash_would_take_back(office, disk):
    job = office.submit(op(gate="g"))
    office.await_status(job, "running")
    disk.hold()
    office.crew.open("g")
    assert disk.reached.wait(PATIENCE)
    assert office.status(job) == "running"
    assert office.record(job).end_timestamp is None
    disk.release()
    assert office.finish(job) == ["success"]


def test_nobody_sees_a_cancellation_that_a_crash_would_take_back(office, disk):
    first = office.submit(op(gate="g", locks=[["web1"]]))
    office.await_status(first, "running")
    job = office.queue.submit([[op(depends=[JobDep(first, [])])]], None)[0]
    disk.hold()
    canceling = threading.Thread(target=office.queue.cancel, args=(job,))
    canceling.start()
    assert disk.reached.wait(PATIENCE)
    assert office.status(job) == "queued"
    disk.release()
    canceling.join(PATIENCE)
    assert office.status(job) == "canceled"
    office.crew.open("g")
    office.finish(first)


def test_a_known_key_is_answered_once_its_job_is_on_disk(office, disk):
    disk.hold()
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(submit(office, "k"))) for _ in range(2)]
    threads[0].start()
    assert disk.reached.wait(PATIENCE)
    threads[1].start()
    threads[1].join(0.1)
    assert got == []
    disk.release()
    for thread in threads:
        thread.join(PATIENCE)
    assert got == [1, 1]
    office.finish(1)


def test_a_key_is_where_its_job_is(office, hire: Callable[..., Any], crash):
    """No crash can leave one without the other."""
    job = submit(office, "mine")
    office.finish(job)
    assert list((office.directory / "keys").iterdir()) == []
    after = hire(directory=crash(office))
    assert submit(after, "mine") == job
    assert after.queue.archive([job]) == [job]
    later = hire(directory=crash(after))
    assert submit(later, "mine") == job
    assert submit(later, "other") == job + 1
    later.finish(job + 1)


def test_ids_of_archived_jobs_are_not_used_again(office, hire: Callable[..., Any], crash):
    jobs = [office.submit(op()) for _ in range(3)]
    office.finish(*jobs)
    office.queue.archive(jobs)
    after = hire(directory=crash(office))
    assert after.queue.last_id == 3
    assert after.submit(op()) == 4
    after.finish(4)


class Watching(NoCopies):
    """Looks whether this node has what the copies are sent."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.sent: list[tuple[str, bool]] = []

    def write_jobs(self, contents: Contents) -> Round:
        for name, data in contents.whole.items():
            self.sent.append((name, on_disk(self._directory, name) == data))
        return self


def test_copies_are_never_newer_than_this_node(tmp_path: Path) -> None:
    """A master that crashed in between would be refused as outdated."""
    copies = Watching(tmp_path / "queue")
    files = JobFiles(tmp_path / "queue", copies)
    files.open()
    files.wait(files.add({"job-1": b"{}", "serial": b"1\n"}), copies=True)
    files.close()
    assert copies.sent == [("job-1", True), ("serial", True)]

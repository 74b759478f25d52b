"""A queue on a real directory with real workers, and operations that wait for a gate."""

from __future__ import annotations

import json
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ganeti import errors
from ganeti.base.file_journal import FileJournal
from ganeti.jobs.execution import JobHandle, Need
from ganeti.jobs.files import JobFiles
from ganeti.jobs.queue import JobQueue
from ganeti.locking.manager import LockManager
from ganeti.locking.request import Request
from ganeti.model.job import JobRecord, Submitter
from ganeti.model.job_status import JobStatus
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.test import OpTestDummy

#: Seconds after which a test gives up; nothing takes that long unless it is broken.
PATIENCE = 60.0
INSTANCE = 1
NAMES = ("web1", "web2", "web3")


class SetClock:
    """A clock that is paused unless it is moved."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.25

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def op(**script: Any) -> OpTestDummy:
    """An opcode that does what its script says.

    locks: names to take at the instance level, one list for each step; shared: bool
    gate: name of a gate to wait at while running; say: lines for the log; result: what it gives
    error: text of an OpExecError; bug: text of a foreign exception
    refuse: text of an OpPrereqError; broken: whether it cannot even be begun
    cancelable: whether it runs until it is canceled; child: script of a job to submit
    trap: name of a function to call before locks are named
    """
    common = {k: script.pop(k) for k in ("priority", "depends", "reason") if k in script}
    return OpTestDummy(result=script, **common)


class ScriptedExecution:
    """One opcode of :func:`op` on its way."""

    def __init__(self, crew: Crew, script: dict[str, Any], job: JobHandle) -> None:
        self._crew = crew
        self._script = script
        self._job = job
        self._steps = list(script.get("locks", []))

    @property
    def cancelable(self) -> bool:
        return bool(self._script.get("cancelable"))

    def advance(self) -> Need | None:
        trap = self._script.get("trap")
        if trap:
            self._crew.traps[trap](self._job)
        if "refuse" in self._script:
            raise errors.OpPrereqError(self._script["refuse"], errors.ErrorCode.STATE)
        if not self._steps:
            return None
        level = INSTANCE + len(self._script["locks"]) - len(self._steps)
        names = self._steps.pop(0)
        return Need(level, names, shared=self._script.get("shared", False))

    def run(self) -> Any:
        self._crew.began(self._job)
        for line in self._script.get("say", []):
            self._job.log(line)
        if self.cancelable:
            if not self._job.cancel_asked.wait(PATIENCE):
                raise errors.OpExecError("nobody canceled it")
            raise errors.JobCanceled("canceled while it ran")
        gate = self._script.get("gate")
        if gate:
            self._crew.gate(gate).wait()  # the end of the test opens all gates
        if "child" in self._script:
            return self._job.submit([[op(**self._script["child"])]])
        if "error" in self._script:
            raise errors.OpExecError(self._script["error"])
        if "bug" in self._script:
            raise ValueError(self._script["bug"])
        return self._script.get("result")

    def close(self) -> None:
        self._crew.locks.release(self._job.job_id)


class Crew:
    """Executor of the scripted opcodes; knows what ran, in which order."""

    def __init__(self, locks: LockManager, notify: Callable[[], None]) -> None:
        self.locks = locks
        self._notify = notify
        self.order: list[int] = []
        self.traps: dict[str, Callable[[JobHandle], None]] = {}
        self._gates: dict[str, threading.Event] = {}
        self._all_open = False
        self._changed = threading.Condition()

    def check_submission(self, opcode: OpCode) -> None:
        if not isinstance(opcode, OpTestDummy):
            raise errors.OpNotBuiltError(f"{opcode.op_id} has no operation")

    def start(self, opcode: OpCode, job: JobHandle) -> ScriptedExecution:
        assert isinstance(opcode, OpTestDummy)
        script = dict(opcode.result)
        if script.pop("broken", False):
            raise KeyError("cannot even begin")
        return ScriptedExecution(self, script, job)

    def gate(self, name: str) -> threading.Event:
        with self._changed:
            gate = self._gates.setdefault(name, threading.Event())
            if self._all_open:
                gate.set()
            return gate

    def open(self, name: str) -> None:
        self.gate(name).set()

    def open_all(self) -> None:
        with self._changed:
            self._all_open = True
            for gate in self._gates.values():
                gate.set()

    def began(self, job: JobHandle) -> None:
        with self._changed:
            self.order.append(job.job_id)
            self._changed.notify_all()
        self._notify()

    def wait_for_start(self, job_id: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: job_id in self.order, PATIENCE), (
                f"job {job_id} did not start"
            )


class WatchedLocks(LockManager):
    """Tells that a request was made."""

    def __init__(self, clock: SetClock, notify: Callable[[], None]) -> None:
        super().__init__(("cluster", "instance", "node"), clock)
        self._notify = notify

    def request(self, *args: Any, **options: Any) -> Request:
        request = super().request(*args, **options)
        self._notify()
        return request


def on_disk(directory: Path, name: str) -> bytes | None:
    """Content of a queue's file that would survive a power cut now."""
    newer = FileJournal(directory).read_pending().get(name)
    path = directory / name
    return newer if newer is not None else path.read_bytes() if path.exists() else None


def read_stored(directory: Path, job_id: int) -> Any:
    """A job as a crash would leave it now."""
    return json.loads(on_disk(directory, f"job-{job_id}") or b"null")


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file of this process may grow beyond ``size`` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Office:
    """A queue with everything around it, in one directory."""

    def __init__(self, directory: Path, workers: int) -> None:
        self.directory = directory
        self.clock = SetClock()
        self._changed = threading.Condition()
        self._changes = 0
        self.locks = WatchedLocks(self.clock, self._something_happened)
        self.locks.create(INSTANCE, NAMES)
        self.locks.create(INSTANCE + 1, ["node1"])
        self.crew = Crew(self.locks, self._something_happened)
        self.files = JobFiles(directory)
        self.files.open()
        self.queue = JobQueue(self.files, self.locks, self.crew, workers=workers, clock=self.clock)
        self.told: list[int] = []
        self.queue.add_listener(self._record_end)
        self.queue.load()
        self.queue.start()

    def _record_end(self, job_id: int) -> None:
        self.told.append(job_id)
        self._something_happened()

    def _something_happened(self) -> None:
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    def submit(self, *ops: OpCode) -> int:
        return self.queue.submit([list(ops)], Submitter(uid=1000, name="alice"))[0]

    def await_condition(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; it is looked at after each change of a job or a lock."""
        end = time.monotonic() + PATIENCE
        while True:
            with self._changed:
                seen = self._changes
            if condition():
                return
            with self._changed:
                left = end - time.monotonic()
                assert self._changed.wait_for(lambda: self._changes != seen, left), (  # noqa: B023
                    f"never came: {what}"
                )

    def status(self, job_id: int) -> JobStatus:
        return self.queue.view(lambda record: record.status, job_id)

    def await_status(self, job_id: int, *wanted: str) -> None:
        self.await_condition(
            lambda: self.status(job_id) in wanted, f"job {job_id} {' or '.join(wanted)}"
        )

    def finish(self, *job_ids: int) -> list[str]:
        """Wait for the end of jobs; their statuses."""
        for job_id in job_ids:
            self.await_status(job_id, "success", "error", "canceled")
        return [str(self.status(job_id)) for job_id in job_ids]

    def record(self, job_id: int) -> JobRecord:
        found = self.queue.get(job_id)
        assert found is not None
        return found

    def result(self, job_id: int, index: int = 0) -> Any:
        return self.record(job_id).ops[index].result

    def line(self, name: str) -> list[Any]:
        """Owners that wait for a lock, in order."""
        view = next(row for row in self.locks.snapshot() if row.name == f"instance/{name}")
        return [owner for _mode, owner in view.pending]

    def stop(self) -> None:
        self.crew.open_all()
        assert self.queue.stop(PATIENCE)

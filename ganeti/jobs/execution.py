"""The interface of an operation to the queue: ask for locks, run, clean up."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ganeti.model.job import Submitter
from ganeti.opcodes.base import OpCode


@dataclass(frozen=True)
class Need:
    """Locks of one level that an operation asks for next."""

    level: int
    #: names, or None for all of the level
    names: Iterable[str] | None
    shared: bool = False
    #: further names of objects that do not exist yet and that the operation makes
    new: Iterable[str] = ()
    #: take what is free now, and do not wait for the rest
    opportunistic: bool = False


class JobHandle(Protocol):
    """The interface of a job to the operation that runs in it."""

    @property
    def job_id(self) -> int: ...

    @property
    def priority(self) -> int: ...

    @property
    def submitter(self) -> Submitter | None: ...

    def log(self, message: object, kind: str = "message") -> None:
        """Add an entry to the job's log; clients that wait see it at once."""

    def submit(self, jobs: list[list[OpCode]]) -> list[int]:
        """Hand in further jobs, from the same submitter; returns their ids."""

    @property
    def cancel_asked(self) -> threading.Event:
        """Set when the user wants a running operation to end early."""

    def stop_requested(self) -> bool:
        """Whether the daemon is stopping and the operation should end early if it can."""


class Execution(Protocol):
    """One opcode on its way through a worker. Every method may be called from another thread."""

    @property
    def cancelable(self) -> bool:
        """Whether it watches ``cancel_asked`` while it runs."""

    def advance(self) -> Need | None:
        """Go on until locks are needed (then they are held at the next call), or None.

        Raises:
            GanetiError: the operation is refused.
        """

    def run(self) -> object:
        """Check and run; blocks as long as the operation takes. Returns the result."""

    def close(self) -> None:
        """Release everything: locks, reservations. Idempotent, never raises."""


class Executor(Protocol):
    """Makes executions; the operations' side of the queue."""

    def check_submission(self, op: OpCode) -> None:
        """Refuse an opcode that cannot be run at all (OpNotBuiltError)."""

    def start(self, op: OpCode, job: JobHandle) -> Execution: ...

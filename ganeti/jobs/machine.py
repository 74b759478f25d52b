"""The life of a job, without input or output.

Events go in, the record changes, effects come out. One table says what may happen in which
state; a pair that is not in it is a bug and is raised with the last events of the job.

A job's opcodes run one after the other, so the state of the machine is the status of the job's
current opcode (or of the job, once it is done).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto

import msgspec

from ganeti import errors
from ganeti.base.file_parts import Parts
from ganeti.model.job import JobRecord, Stamp
from ganeti.model.job_status import JobStatus


class Effect(Flag):
    """An effect that the queue performs after an event."""

    NONE = 0
    #: write the job file, and go on only when it is durable
    PERSIST = auto()
    #: go on only when enough master candidates have the file too
    COPY = auto()
    #: notify the clients that wait for changes of the job
    NOTIFY = auto()
    #: put the job in line for a worker
    ENQUEUE = auto()
    #: give up the lock request of the job
    CANCEL_LOCKS = auto()
    #: the job is done: notify the jobs that depend on it
    FINALIZED = auto()


# events ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """Something that happened to a job at a time."""

    at: Stamp


@dataclass(frozen=True)
class Submitted(Event):
    pass


@dataclass(frozen=True)
class Picked(Event):
    """A worker took the job and asks for the locks of its current opcode."""


@dataclass(frozen=True)
class LocksHeld(Event):
    """The current opcode holds its locks and may run."""


@dataclass(frozen=True)
class OpDone(Event):
    result: object


@dataclass(frozen=True)
class OpFailed(Event):
    """``error`` is encoded: ``[class name, args]``."""

    error: list[object]


@dataclass(frozen=True)
class Logged(Event):
    kind: str
    message: object


@dataclass(frozen=True)
class CancelAsked(Event):
    pass


@dataclass(frozen=True)
class CancelDone(Event):
    """The worker noticed that the job is to be canceled; no lock is held."""


@dataclass(frozen=True)
class Rejected(Event):
    """A filter rule does not let the job begin, ever; ``error`` is encoded."""

    error: list[object]


@dataclass(frozen=True)
class PriorityChanged(Event):
    priority: int


@dataclass(frozen=True)
class Restarted(Event):
    """The master daemon was restarted and found the job in its file."""


class Machine:
    """Feeds events to one job. Not thread-safe: the queue calls it under its lock."""

    def __init__(self, job: JobRecord) -> None:
        self.job = job
        self._recent_events: list[str] = []
        #: what changed since :meth:`take_news`, by its place in the job file
        self._news: Parts = {}

    def change(self, index: int, **members: object) -> None:
        """Change one opcode."""
        self.job.change(index, **members)
        self._news.setdefault(f"ops/{index}", {}).update(members)

    def change_all(self, first: int, **members: object) -> None:
        """Change all opcodes from one on."""
        for index in range(first, len(self.job.ops)):
            self.change(index, **members)

    def note_start(self, at: Stamp) -> None:
        self.job.start_timestamp = self._news.setdefault("", {})["start_timestamp"] = at

    def log(self, at: Stamp, kind: str, message: object) -> None:
        """Add an entry to the log of the current opcode."""
        index = _current(self.job)
        log = self.job.ops[index].log
        log.append([self.job.log_serial() + 1, at, kind, message])
        self._news.setdefault(f"ops/{index}", {})["log"] = log

    def take_news(self) -> Parts:
        """The changes since the last call, as plain data; without the end of the job."""
        news, self._news = self._news, {}
        plain: Parts = msgspec.to_builtins(news)
        return plain

    @property
    def state(self) -> JobStatus:
        index = self.job.current()
        return self.job.status if index is None else self.job.ops[index].status

    def feed(self, event: Event) -> Effect:
        """Apply an event.

        Raises:
            ProgrammerError: the event cannot happen in this state.
        """
        before = self.state
        handler = TRANSITIONS.get((before, type(event)))
        self._recent_events = [*self._recent_events[-19:], f"{before}+{type(event).__name__}"]
        if handler is None:
            raise errors.ProgrammerError(
                f"job {self.job.id}: {type(event).__name__} cannot happen in state {before};"
                f" its last events: {', '.join(self._recent_events)}"
            )
        return handler(self, event)


# transitions -------------------------------------------------------------------------------


def _submit(machine: Machine, event: Event) -> Effect:
    machine.job.received_timestamp = event.at
    if not machine.job.ops:
        machine.job.end_timestamp = event.at
        return Effect.PERSIST | Effect.COPY | Effect.FINALIZED
    return Effect.PERSIST | Effect.COPY | Effect.ENQUEUE


def _pick(machine: Machine, event: Event) -> Effect:
    machine.change(_current(machine.job), status=JobStatus.WAITING, start_timestamp=event.at)
    if machine.job.start_timestamp is None:
        machine.note_start(event.at)
    return Effect.NOTIFY


def _locks_held(machine: Machine, event: Event) -> Effect:
    machine.change(_current(machine.job), status=JobStatus.RUNNING, exec_timestamp=event.at)
    return Effect.PERSIST | Effect.COPY | Effect.NOTIFY


def _succeed(machine: Machine, event: Event) -> Effect:
    assert isinstance(event, OpDone)
    machine.change(
        _current(machine.job),
        status=JobStatus.SUCCESS,
        result=event.result,
        end_timestamp=event.at,
    )
    if machine.job.current() is not None:
        return Effect.PERSIST | Effect.NOTIFY | Effect.ENQUEUE
    return _finish(machine, event)


def _fail(machine: Machine, event: Event) -> Effect:
    assert isinstance(event, OpFailed)
    index = _current(machine.job)
    following = errors.encode_known(
        errors.OpExecError(f"opcode {index} of this job failed, so this one was not run")
    )
    machine.change(index, result=event.error)
    machine.change_all(index + 1, result=following)
    machine.change_all(index, status=JobStatus.ERROR, end_timestamp=event.at)
    return _finish(machine, event)


def _logged(machine: Machine, event: Event) -> Effect:
    assert isinstance(event, Logged)
    machine.log(event.at, event.kind, event.message)
    return Effect.NOTIFY


def _cancel_queued(machine: Machine, event: Event) -> Effect:
    return _end_canceled(machine, event)


def _cancel_waiting(machine: Machine, event: Event) -> Effect:
    machine.change(_current(machine.job), status=JobStatus.CANCELING)
    return Effect.PERSIST | Effect.CANCEL_LOCKS | Effect.NOTIFY


def _end_canceled(machine: Machine, event: Event) -> Effect:
    machine.change_all(_current(machine.job), status=JobStatus.CANCELED, end_timestamp=event.at)
    return _finish(machine, event)


def _reject(machine: Machine, event: Event) -> Effect:
    assert isinstance(event, Rejected)
    machine.change_all(_current(machine.job), result=event.error)
    return _end_canceled(machine, event)


def _cancel_running(machine: Machine, event: Event) -> Effect:
    """The operation is asked to end; what it then does decides."""
    machine.change(_current(machine.job), status=JobStatus.CANCELING)
    return Effect.NOTIFY


def _succeed_after_cancel(machine: Machine, event: Event) -> Effect:
    """The operation ended before it was canceled; what follows it is not begun."""
    effect = _succeed(machine, event)
    return effect if machine.job.current() is None else _end_canceled(machine, event)


def _fail_after_cancel(machine: Machine, event: Event) -> Effect:
    """It gave way, or it failed for a reason of its own after it had begun."""
    assert isinstance(event, OpFailed)
    index = _current(machine.job)
    begun = machine.job.ops[index].exec_timestamp is not None
    if begun and event.error[0] != errors.JobCanceled.__name__:
        return _fail(machine, event)
    machine.change(index, result=event.error)
    return _end_canceled(machine, event)


def _restart_canceling(machine: Machine, event: Event) -> Effect:
    begun = machine.job.ops[_current(machine.job)].exec_timestamp is not None
    return _restart_running(machine, event) if begun else _end_canceled(machine, event)


def _priority(machine: Machine, event: Event) -> Effect:
    assert isinstance(event, PriorityChanged)
    machine.change_all(_current(machine.job), priority=event.priority)
    return Effect.PERSIST | Effect.NOTIFY


def _restart_queued(machine: Machine, event: Event) -> Effect:
    return Effect.ENQUEUE


def _restart_waiting(machine: Machine, event: Event) -> Effect:
    machine.change(_current(machine.job), status=JobStatus.QUEUED, start_timestamp=None)
    return Effect.PERSIST | Effect.ENQUEUE


def _restart_running(machine: Machine, event: Event) -> Effect:
    error = errors.OpExecError(
        "the master daemon stopped while this operation was running; how far it got is not"
        " known, gnt-cluster verify shows what is left over"
    )
    return _fail(machine, OpFailed(event.at, errors.encode_known(error)))


def _ignore(machine: Machine, event: Event) -> Effect:
    return Effect.NONE


def _finish(machine: Machine, event: Event) -> Effect:
    machine.job.end_timestamp = event.at
    return Effect.PERSIST | Effect.NOTIFY | Effect.FINALIZED


def _current(job: JobRecord) -> int:
    index = job.current()
    assert index is not None
    return index


Handler = Callable[[Machine, Event], Effect]

_S = JobStatus
TRANSITIONS: dict[tuple[JobStatus, type[Event]], Handler] = {
    (_S.QUEUED, Submitted): _submit,
    (_S.SUCCESS, Submitted): _submit,  # a job without opcodes
    (_S.QUEUED, Picked): _pick,
    (_S.WAITING, LocksHeld): _locks_held,
    (_S.WAITING, Logged): _logged,
    (_S.RUNNING, Logged): _logged,
    (_S.CANCELING, Logged): _logged,
    (_S.RUNNING, OpDone): _succeed,
    (_S.RUNNING, OpFailed): _fail,
    (_S.WAITING, OpFailed): _fail,  # its locks cannot be had
    (_S.QUEUED, OpFailed): _fail,  # a job it depends on did not end as required
    (_S.CANCELING, OpFailed): _fail_after_cancel,
    (_S.QUEUED, CancelAsked): _cancel_queued,
    (_S.QUEUED, Rejected): _reject,
    (_S.WAITING, CancelAsked): _cancel_waiting,
    (_S.RUNNING, CancelAsked): _cancel_running,
    (_S.CANCELING, OpDone): _succeed_after_cancel,
    (_S.CANCELING, CancelAsked): _ignore,
    (_S.CANCELING, CancelDone): _end_canceled,
    (_S.QUEUED, PriorityChanged): _priority,
    (_S.WAITING, PriorityChanged): _priority,
    (_S.RUNNING, PriorityChanged): _priority,
    (_S.QUEUED, Restarted): _restart_queued,
    (_S.WAITING, Restarted): _restart_waiting,
    (_S.RUNNING, Restarted): _restart_running,
    (_S.CANCELING, Restarted): _restart_canceling,
}

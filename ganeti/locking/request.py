"""Requests for locks, and who makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ganeti import errors

#: Owner of locks or requests: a job id, or the name of a part of the daemon.
Owner = int | str

#: Stands for every name of a level, also those that appear while it is held or wanted.
ALL = None


class State(Enum):
    WAITING = "waiting"
    GRANTED = "granted"
    FAILED = "failed"
    CANCELED = "canceled"


@dataclass(eq=False)
class Request:
    """A request for locks of one level; decided when ``state`` is no longer WAITING."""

    owner: Owner
    level: int
    #: names in order, or ALL
    names: tuple[str, ...] | None
    shared: bool
    priority: int
    seq: int
    since: float
    on_done: Callable[[Request], None]
    #: names that the request adds
    new: tuple[str, ...] = ()
    state: State = State.WAITING
    error: errors.LockError | None = None
    #: priority with ageing; smaller is more urgent
    effective: int = 0

    @property
    def key(self) -> tuple[int, int]:
        return (self.effective, self.seq)

    @property
    def mode(self) -> str:
        return "shared" if self.shared else "exclusive"

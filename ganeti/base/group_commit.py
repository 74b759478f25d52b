"""Many writers, one disk flush: the first writer flushes for all that came meanwhile.

No thread of its own: the first waiting caller becomes the leader and flushes everything that is
pending; the others sleep until their item is done, or one of them leads the next round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.base.histogram import Histogram

T = TypeVar("T")

#: Upper bounds of the classes of durations, in seconds.
BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1, 5)


class Ticket:
    """The pending write of an item; see :meth:`GroupCommit.wait`."""

    __slots__ = ("done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: Exception | None = None


class GroupCommit(Generic[T]):
    """Items are flushed in the order in which they were added."""

    def __init__(self, flush: Callable[[list[T]], None]) -> None:
        """``flush`` makes a batch durable, or raises and leaves nothing of it."""
        self._flush = flush
        #: how long flushes take
        self.times = Histogram(BOUNDS)
        self._cond = threading.Condition()
        self._pending: list[tuple[T, Ticket]] = []
        self._leading = False

    def add(self, item: T) -> Ticket:
        """Put an item in line; returns at once. Somebody must :meth:`wait` for the ticket."""
        ticket = Ticket()
        with self._cond:
            self._pending.append((item, ticket))
        return ticket

    def wait(self, ticket: Ticket) -> None:
        """Block until the item is durable.

        Raises: whatever ``flush`` raised for the batch with this item.
        """
        with self._cond:
            while not ticket.done:
                if self._leading:
                    self._cond.wait()
                    continue
                self._leading = True
                batch, self._pending = self._pending, []
                self._cond.release()
                error: Exception | None = errors.GenericError(
                    "the thread that wrote this was interrupted; it may be lost"
                )
                try:
                    error = self._run([item for item, _ticket in batch])
                finally:
                    # Even after an interrupt nobody may be left waiting.
                    self._cond.acquire()
                    self._leading = False
                    for _item, other in batch:
                        other.error, other.done = error, True
                    self._cond.notify_all()
        if ticket.error is not None:
            raise ticket.error

    def _run(self, items: list[T]) -> Exception | None:
        begin = SYSTEM.monotonic()
        try:
            self._flush(items)
        except Exception as err:  # noqa: BLE001 - handed to every caller that waits
            return err
        finally:
            self.times.observe(SYSTEM.monotonic() - begin)
        return None

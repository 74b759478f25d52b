"""Worker threads: a bounded pool that takes the most urgent item first."""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


class WorkerPool(Generic[T]):
    """Up to ``size`` threads, started when needed and kept until :meth:`stop`."""

    def __init__(self, size: int, work: Callable[[T], None], name: str) -> None:
        self._size = size
        self._work = work
        self._name = name
        self._cond = threading.Condition()
        self._heap: list[tuple[int, int, T]] = []
        self._seq = count()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._busy = 0
        self._stopping = False

    def put(self, priority: int, item: T) -> None:
        """Hand in an item; smaller priorities go first, equal ones in order of arrival."""
        with self._cond:
            if self._stopping:
                return
            heapq.heappush(self._heap, (priority, next(self._seq), item))
            if self._idle >= len(self._heap):
                self._cond.notify()
            elif len(self._threads) < self._size:
                self._start()

    def resize(self, size: int) -> None:
        """Work with so many threads from now on; what runs is not disturbed."""
        with self._cond:
            self._size = size
            for _ in range(min(len(self._heap), size - len(self._threads))):
                self._start()
            self._cond.notify_all()

    def _start(self) -> None:
        thread = threading.Thread(
            target=self._loop, name=f"{self._name}-{len(self._threads)}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _loop(self) -> None:
        while True:
            with self._cond:
                while not self._heap and not self._stopping:
                    if len(self._threads) > self._size:
                        break
                    self._idle += 1
                    self._cond.wait()
                    self._idle -= 1
                if len(self._threads) > self._size and not self._stopping:
                    self._threads.remove(threading.current_thread())
                    return
                if self._stopping:
                    return
                _priority, _seq, item = heapq.heappop(self._heap)
                self._busy += 1
            try:
                self._work(item)
            except Exception:  # noqa: BLE001 - last frame: one bad item must not end the thread
                _LOG.exception("worker failed")
            with self._cond:
                self._busy -= 1
                self._cond.notify_all()

    def count_ahead(self, item: T) -> int | None:
        """How many items go to a thread before this one; None when it is not in line."""
        with self._cond:
            places = [entry for entry in self._heap if entry[2] is item]
            if not places:
                return None
            first = min(entry[:2] for entry in places)
            return sum(entry[:2] < first for entry in self._heap)

    @property
    def waiting(self) -> int:
        """Items that wait for a thread."""
        return len(self._heap)

    @property
    def size(self) -> int:
        """Threads there may be."""
        return self._size

    @property
    def busy(self) -> int:
        return self._busy

    def stop(self, timeout: float) -> bool:
        """Take no more items, drop waiting ones, wait for running ones; False after a time-out."""
        with self._cond:
            self._stopping = True
            self._cond.notify_all()
            done = self._cond.wait_for(lambda: self._busy == 0, timeout)
        if done:
            for thread in self._threads:
                thread.join(timeout)
        return done

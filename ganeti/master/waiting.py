"""Clients that wait for a change of a job, or for an event: no thread, no polling.

A wait is an entry here. It ends when the queue reports a change that the client has not seen, or
when its time is over; one thread keeps the time for all.

Only a limited number of jobs is tracked (``max_tracked_jobs``): their clients are answered at each
change. Clients that wait for further jobs are answered a moment later, so a flood of waits costs
the master a bounded amount of work.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.json_types import JsonObject

#: Of a job: ``[values of the asked fields, new log entries]``
Answer = list[Any] | JsonObject


#: Seconds from the first change of an untracked job until its clients are answered.
UNTRACKED_DELAY = 0.5
#: Timers that may be there before those of waits that are over are dropped.
_FEW_TIMERS = 100


@dataclass(eq=False)
class Wait:
    """One client that waits for what has a key: a job's id, or another word."""

    key: Hashable
    #: the answer if there is news, else None; ``finally_`` returns an answer in any case
    look: Callable[[bool], Answer | None]
    answer: Callable[[Answer], None]
    fail: Callable[[BaseException], None]
    open: bool = True
    #: whether a timer for a change of an untracked job is set
    due: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Waiting:
    """All waits. Thread-safe."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._by_key: dict[Hashable, set[Wait]] = {}
        #: those of whose changes clients hear at once
        self._tracked: set[Hashable] = set()
        self._mutex = threading.Lock()
        #: when, a number that makes the order total, which wait, and whether its time is over then
        self._timers: list[tuple[float, int, Wait, bool]] = []
        self._most_timers = _FEW_TIMERS
        self._seq = count()
        self._wake = threading.Condition(self._mutex)
        self._stopping = False
        self._thread = threading.Thread(target=self._keep_time, name="waiting", daemon=True)
        self._thread.start()

    def add(self, wait: Wait, timeout: float, *, limit: int | None = None) -> None:
        """Wait for news for at most ``timeout`` seconds; answers at once if there are any.

        The wait is noted before the first look, so no change between the two is missed. When
        ``limit`` keys are tracked already, changes of a further one are answered
        ``UNTRACKED_DELAY`` seconds later; ``None``: never.
        """
        with self._mutex:
            if limit is None or len(self._tracked) < limit:
                self._tracked.add(wait.key)
            self._by_key.setdefault(wait.key, set()).add(wait)
            self._forget_ended()
            self._set_timer(wait, timeout, last=True)
        self._check(wait, last=False)

    def _set_timer(self, wait: Wait, seconds: float, *, last: bool) -> None:
        """With the mutex held."""
        item = (self._clock.monotonic() + seconds, next(self._seq), wait, last)
        heapq.heappush(self._timers, item)
        if self._timers[0] is item:
            self._wake.notify()

    def _forget_ended(self) -> None:
        """Drop the timers of waits that are over when they are most of all."""
        if len(self._timers) > self._most_timers:
            self._timers = [item for item in self._timers if item[2].open]
            heapq.heapify(self._timers)
            self._most_timers = max(_FEW_TIMERS, 2 * len(self._timers))

    def note_change(self, key: Hashable) -> None:
        """Note a change of a job (called by the queue), or of another thing with this key."""
        waits = self._by_key.get(key)
        if waits:
            with self._mutex:
                present = list(waits)
                if key not in self._tracked:
                    self._postpone(present)
                    return
            for wait in present:
                self._check(wait, last=False)

    def _postpone(self, waits: list[Wait]) -> None:
        """With the mutex held."""
        for wait in waits:
            if not wait.due:
                wait.due = True
                self._set_timer(wait, UNTRACKED_DELAY, last=False)

    def drop(self, wait: Wait) -> None:
        """The client is gone."""
        with wait.lock:
            wait.open = False
        self._forget(wait)

    def _forget(self, wait: Wait) -> None:
        with self._mutex:
            waits = self._by_key.get(wait.key)
            if waits is not None:
                waits.discard(wait)
                if not waits:
                    del self._by_key[wait.key]
                    self._tracked.discard(wait.key)

    def _check(self, wait: Wait, *, last: bool) -> None:
        with wait.lock:
            if not wait.open:
                return
            try:
                answer = wait.look(last)
            except Exception as err:  # noqa: BLE001 - goes to the client
                wait.open = False
                wait.fail(err)
            else:
                if answer is None:
                    return
                wait.open = False
                wait.answer(answer)
        self._forget(wait)

    def _keep_time(self) -> None:
        while True:
            with self._mutex:
                if self._stopping:
                    return
                now = self._clock.monotonic()
                due: list[tuple[Wait, bool]] = []
                while self._timers and (not self._timers[0][2].open or self._timers[0][0] <= now):
                    _when, _number, wait, last = heapq.heappop(self._timers)
                    if not last:
                        wait.due = False
                    if wait.open:
                        due.append((wait, last))
                if not due:
                    pause = self._timers[0][0] - now if self._timers else None
                    self._wake.wait(pause)
                    continue
            for wait, last in due:
                self._check(wait, last=last)

    def stop(self) -> None:
        """End the thread; open waits get no answer."""
        with self._mutex:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

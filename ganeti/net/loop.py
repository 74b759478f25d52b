"""One thread for many connections that mostly wait: a selector, timers, and nobody who polls."""

from __future__ import annotations

import contextlib
import heapq
import logging
import os
import selectors
import threading
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Protocol

from ganeti.base.clock import SYSTEM

log = logging.getLogger(__name__)

Action = Callable[[], None]


class HasFileno(Protocol):
    def fileno(self) -> int: ...


class Timer:
    """Something to be done later; :meth:`cancel` it when it is not needed any more."""

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        self.action = None


class Loop:
    """The thread. All methods but ``start``, ``stop`` and ``call_soon`` are for itself only."""

    def __init__(self, name: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._reader, selectors.EVENT_READ, self._run_actions)
        self._actions: deque[Action] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._seq = count()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after what was requested before."""
        self.call_soon(self._stop)
        self._thread.join()
        self._selector.close()
        os.close(self._reader)
        os.close(self._writer)

    def _stop(self) -> None:
        self._stopping = True

    def call_soon(self, action: Action) -> None:
        """Do something in the thread; from any thread."""
        self._actions.append(action)
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"x")

    def call_later(self, seconds: float, action: Action) -> Timer:
        timer = Timer(action)
        heapq.heappush(self._timers, (SYSTEM.monotonic() + seconds, next(self._seq), timer))
        return timer

    def watch(
        self, thing: HasFileno | int, action: Action, *, read: bool = True, write: bool = False
    ) -> None:
        """Do something whenever there is input (with ``write`` also room for output)."""
        mask = (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if write else 0)
        if not mask:
            self.forget(thing)
            return
        try:
            self._selector.modify(thing, mask, action)
        except KeyError:
            self._selector.register(thing, mask, action)

    def forget(self, thing: HasFileno | int) -> None:
        """Watch no more; before it is closed."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(thing)

    def _run(self) -> None:
        while not self._stopping:
            for key, _mask in self._selector.select(self._pause()):
                self._do(key.data)
            now = SYSTEM.monotonic()
            while self._timers and self._timers[0][0] <= now:
                action = heapq.heappop(self._timers)[2].action
                if action is not None:
                    self._do(action)

    def _do(self, action: Action) -> None:
        try:
            action()
        except Exception:  # the thread must outlive a bug for one client
            log.exception("what a connection waited for failed")

    def _pause(self) -> float | None:
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - SYSTEM.monotonic()) if self._timers else None

    def _run_actions(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass
        while self._actions:
            self._do(self._actions.popleft())

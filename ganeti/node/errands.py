"""Work that is tried again until it succeeds or is not worth it any more."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ganeti.base.clock import SYSTEM, Clock

log = logging.getLogger(__name__)

#: Seconds between the first and the second attempt, and at most.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 15.0
#: Seconds that a thread in the middle of an attempt gets to end.
_STOP_WAIT = 1.0

T = TypeVar("T")


@dataclass
class _Errand:
    since: float
    attempts: int = 0


class Errands(Generic[T]):
    """Items that one thread delivers: new ones at once; those that fail are tried again.

    The thread exists while there is something to deliver.
    """

    def __init__(
        self,
        name: str,
        deliver: Callable[[Mapping[T, int]], Collection[T]],
        *,
        patience: float,
        clock: Clock = SYSTEM,
    ) -> None:
        """``deliver`` gets items with the number of earlier attempts, and returns what is left.

        An item is given up ``patience`` seconds after it was added.
        """
        self._name = name
        self._deliver = deliver
        self._patience = patience
        self._clock = clock
        self._changed = threading.Condition()
        self._todo: dict[T, _Errand] = {}
        self._delivering: dict[T, _Errand] = {}
        self._fresh = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def add(self, items: Iterable[T]) -> None:
        """Deliver items; returns at once.

        One that waits already continues waiting. One that is being delivered is delivered again.
        """
        with self._changed:
            for item in items:
                if item in self._delivering or item not in self._todo:
                    self._todo[item] = _Errand(self._clock.monotonic())
            if self._stopped or not self._todo:
                return
            self._fresh = True
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Deliver nothing any more. Idempotent."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(_STOP_WAIT)

    def _work(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with self._changed:
                if self._stopped or not self._todo:
                    self._thread = None
                    return
                self._fresh = False
                self._delivering = dict(self._todo)
            left = self._attempt({item: each.attempts for item, each in self._delivering.items()})
            with self._changed:
                self._note(left)
                if not self._todo:
                    continue
                if self._changed.wait_for(lambda: self._fresh or self._stopped, pause):
                    pause = FIRST_PAUSE
                else:
                    pause = min(pause * 2, LONGEST_PAUSE)

    def _attempt(self, items: Mapping[T, int]) -> Collection[T]:
        try:
            return self._deliver(items)
        except Exception:  # a thread's last frame: what comes later must be delivered all the same
            log.exception("%s failed by a bug", self._name)
            return items

    def _note(self, left: Collection[T]) -> None:
        """Drop items that were delivered, and those that have waited for too long."""
        now = self._clock.monotonic()
        delivered, self._delivering = self._delivering, {}
        for item, errand in delivered.items():
            errand.attempts += 1
            if self._todo[item] is not errand:
                continue  # it was added again meanwhile
            if item not in left:
                del self._todo[item]
            elif now - errand.since >= self._patience:
                log.warning("%s: %s is given up after %d s", self._name, item, self._patience)
                del self._todo[item]

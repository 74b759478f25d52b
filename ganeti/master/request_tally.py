"""How many requests the master daemon got, and how long queries took."""

from __future__ import annotations

import threading
from collections import Counter

from ganeti.base.histogram import Histogram
from ganeti.model.metrics import CALL


class RequestTally:
    """By LUXI method. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.query_times = Histogram(CALL)

    def note(self, method: str) -> None:
        """A request with a method that exists."""
        with self._mutex:
            self._counts[method] += 1

    def counts(self) -> dict[str, int]:
        with self._mutex:
            return dict(self._counts)

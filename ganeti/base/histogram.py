"""How long something took, counted in classes."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Sequence


class Histogram:
    """Counts durations by upper bounds in seconds. Thread-safe."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """``bounds`` grow; what is longer than the last one is counted too."""
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._mutex = threading.Lock()

    def observe(self, seconds: float) -> None:
        place = bisect.bisect_left(self._bounds, seconds)
        with self._mutex:
            self._counts[place] += 1
            self._sum += seconds

    def read(self) -> tuple[list[int], float]:
        """How many were at most as long as each bound, then how many at all; and their sum."""
        with self._mutex:
            counts, total = list(self._counts), self._sum
        reached, found = 0, []
        for count in counts:
            reached += count
            found.append(reached)
        return found, total

"""How calls to nodes went."""

from __future__ import annotations

import threading
from collections import Counter

from ganeti.base.histogram import Histogram
from ganeti.net.http_link import Call

#: Upper bounds of the classes of durations, in seconds.
BOUNDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60)


class CallTally:
    """Durations and failures by node. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        #: by name of the node
        self._times: dict[str, Histogram] = {}
        self._failures: Counter[str] = Counter()

    def note(self, call: Call, seconds: float, failed: bool) -> None:
        """A call has ended; a node that refuses has answered."""
        name = call.expected_cn or call.host
        with self._mutex:
            times = self._times.setdefault(name, Histogram(BOUNDS))
            self._failures[name] += failed
        times.observe(seconds)

    def read(self) -> dict[str, tuple[Histogram, int]]:
        """Durations of all calls, and how many had no answer, by name of the node."""
        with self._mutex:
            return {name: (times, self._failures[name]) for name, times in self._times.items()}

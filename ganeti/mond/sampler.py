"""The thread that has collectors measure at their intervals, and asks for facts once a minute."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from ganeti import errors
from ganeti.base.clock import Clock
from ganeti.mond.cluster import REFRESH, ClusterFacts
from ganeti.mond.collector import Collector, SamplingCollector

log = logging.getLogger(__name__)

#: Seconds of the longest wait.
_LONGEST = 1.0


class Sampler:
    """Two threads: one measures, the other one asks ganeti-confd, for which it may have to wait."""

    def __init__(
        self, collectors: Mapping[str, Collector], facts: ClusterFacts, clock: Clock
    ) -> None:
        self._collectors = [
            one for one in collectors.values() if isinstance(one, SamplingCollector)
        ]
        self._facts = facts
        self._clock = clock
        self._stop = threading.Event()
        self._due = {one.name: float("-inf") for one in self._collectors}
        self._threads = [
            threading.Thread(target=self._measure, name="mond-measure"),
            threading.Thread(target=self._ask, name="mond-ask"),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both threads; blocks until the one that asks has its answer."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def take_samples(self) -> float:
        """Take the measurements that are due; seconds until the next one."""
        now = self._clock.monotonic()
        for one in self._collectors:
            if self._due[one.name] > now:
                continue
            self._due[one.name] = now + self._facts.interval(one.name)
            if not (self._facts.is_active(one.name) and one.is_useful()):
                continue
            try:
                one.sample()
            except (errors.GanetiError, OSError, ValueError) as err:
                log.warning("collector %s cannot measure: %s", one.name, err)
        return max(0.0, min([*self._due.values(), now + _LONGEST]) - now)

    def _measure(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(self.take_samples())

    def _ask(self) -> None:
        while not self._stop.is_set():
            self._facts.refresh()
            self._stop.wait(REFRESH)

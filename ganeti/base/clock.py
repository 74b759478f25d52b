"""A clock that is passed as an argument, so that tests need not wait."""

from __future__ import annotations

import math
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970; may jump."""

    def monotonic(self) -> float:
        """Seconds that only grow, also while the machine sleeps; for durations."""

    def sleep(self, seconds: float) -> None:
        """Block for this long; only where no event can end the wait."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        # The one place that sleeps: callers come here to wait for what nothing reports.
        time.sleep(seconds)


SYSTEM: Clock = SystemClock()


class Deadline:
    """A moment so many seconds from now, by the monotonic clock."""

    def __init__(self, seconds: float, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._end = clock.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, 0 when it has passed."""
        return max(0.0, self._end - self._clock.monotonic())

    @property
    def has_passed(self) -> bool:
        return self._clock.monotonic() >= self._end


def nanoseconds(moment: float) -> int:
    """A point in time as entries of reason trails have it."""
    return round(moment * 1_000_000_000)


def split(seconds: float) -> list[int]:
    """``[seconds, microseconds]`` as job files and clients have it."""
    whole = math.floor(seconds)
    # Apart from the seconds a float has room for all microseconds.
    micros = round((seconds - whole) * 1_000_000)
    return [whole + micros // 1_000_000, micros % 1_000_000]


def merge(stamp: list[int] | tuple[int, int] | None) -> float | None:
    return None if stamp is None else stamp[0] + stamp[1] / 1_000_000

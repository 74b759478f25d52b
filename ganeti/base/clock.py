"""Time as something that can be handed in, so that tests need not wait."""

from __future__ import annotations

import math
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch; may jump."""

    def monotonic(self) -> float:
        """Seconds that only grow; for durations."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


SYSTEM: Clock = SystemClock()


def split(seconds: float) -> list[int]:
    """``[seconds, microseconds]`` as job files and clients have it."""
    whole = math.floor(seconds)
    # Apart from the seconds a float has room for all microseconds.
    micros = round((seconds - whole) * 1_000_000)
    return [whole + micros // 1_000_000, micros % 1_000_000]


def merge(stamp: list[int] | tuple[int, int] | None) -> float | None:
    return None if stamp is None else stamp[0] + stamp[1] / 1_000_000

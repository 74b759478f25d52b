"""Trying again, with a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ganeti.base.clock import SYSTEM

T = TypeVar("T")


def delays(first: float, factor: float, largest: float) -> Iterator[float]:
    """Endless growing pauses in seconds."""
    pause = first
    while True:
        yield pause
        pause = min(pause * factor, largest)


def retry_until(
    attempt: Callable[[], T | None],
    *,
    timeout: float,
    first: float = 0.01,
    factor: float = 1.5,
    largest: float = 0.5,
    wait: Callable[[float], object] = SYSTEM.sleep,
    monotonic: Callable[[], float] = SYSTEM.monotonic,
) -> T | None:
    """Call ``attempt`` until it returns something other than None; None after ``timeout`` seconds.

    Only for conditions that no event can tell (a foreign program, another machine).
    """
    end = monotonic() + timeout
    for pause in delays(first, factor, largest):
        value = attempt()
        if value is not None:
            return value
        left = end - monotonic()
        if left <= 0:
            return None
        wait(min(pause, left))
    return None

"""How fast a backup reads."""

from __future__ import annotations

from collections.abc import Callable

from ganeti.base.clock import Clock

_MIB = 1024 * 1024


class Pace:
    """Waits so that no more than some MiB/s are read; 0 for no limit."""

    def __init__(self, bandwidth: int, clock: Clock, wait: Callable[[float], object]) -> None:
        self._rate = bandwidth * _MIB
        self._clock = clock
        self._wait = wait
        self._begun = clock.monotonic()
        self._read = 0

    def note(self, size: int) -> None:
        """So many bytes more were read; blocks until the rate is met again."""
        self._read += size
        if not self._rate:
            return
        ahead = self._read / self._rate - (self._clock.monotonic() - self._begun)
        if ahead > 0:
            self._wait(ahead)

"""The clock of the machine, which a test moves forward."""

from __future__ import annotations

from ganeti.base.clock import SYSTEM, Clock


class JumpingClock(Clock):
    """Shows the time of the machine, and :attr:`ahead` seconds more."""

    ahead = 0.0

    def now(self) -> float:
        return SYSTEM.now() + self.ahead

    def monotonic(self) -> float:
        return SYSTEM.monotonic() + self.ahead

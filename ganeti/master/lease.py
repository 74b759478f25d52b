"""How long a master may act without hearing from a majority of the master candidates.

Where a candidate takes the place of a silent master by itself (``auto_failover_after``), the master
must let go earlier than that. A candidate counts from the moment in which it received a call, the
master from the moment in which it sent it, which is not later. So a master that stops after two
thirds of the limit has stopped before a majority takes over, as long as no clock runs a third
slower than another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ganeti.base.clock import SYSTEM, Clock

#: Part of the candidates' patience after which the master lets go.
PART = 2 / 3


def count_left(limit: int, contact: float, now: float) -> float | None:
    """Seconds that the master may go on; None: without end. Pure.

    ``contact`` is when a majority was last known to follow.
    """
    return None if limit == 0 else contact + PART * limit - now


class Lease:
    """A thread that ends a master which a majority does not answer."""

    def __init__(
        self,
        limit: Callable[[], int],
        contact: Callable[[], float],
        clock: Clock = SYSTEM,
    ) -> None:
        """``limit`` is the patience of the candidates in seconds, 0 for endless."""
        self._limit = limit
        self._contact = contact
        self._clock = clock
        #: called once when the time is over, with what happened
        self.on_lost: Callable[[str], None] = lambda _text: None
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Idempotent."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def note_change(self) -> None:
        """The limit may be another one."""
        with self._changed:
            self._changed.notify()

    def count_left(self) -> float | None:
        """Seconds that the master may go on from now; None: without end."""
        return count_left(self._limit(), self._contact(), self._clock.monotonic())

    def _work(self) -> None:
        with self._changed:
            while not self._stopped:
                limit = self._limit()
                left = count_left(limit, self._contact(), self._clock.monotonic())
                if left is not None and left <= 0:
                    break
                self._changed.wait(left)
            else:
                return
        self.on_lost(
            f"a majority of the master candidates has not answered for {PART * limit:.0f} s;"
            f" one of them takes over after {limit} s"
        )

"""How long a master may act without an answer of those that decide about the master.

These are a majority of the master candidates, or the store that has the role
(:mod:`ganeti.master.role_keeper`); what follows holds for both.

Where a candidate takes the place of a silent master by itself (``auto_failover_after``), the master
must give up its role earlier than that. A candidate counts from the moment in which it received a
call, the master from the moment in which it sent it, which is not later. So a master that stops
after two thirds of the limit has stopped before a majority takes over, provided that no clock runs
a third slower than another. The machine in :mod:`ganeti.recovery.master` decides; this module has
the thread and the clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ganeti.base.clock import SYSTEM, Clock
from ganeti.recovery import bounds
from ganeti.recovery.master import Followed, MasterMachine, Settings, Tick


class Lease:
    """A thread that ends a master which a majority does not answer."""

    def __init__(
        self,
        limit: Callable[[], int],
        contact: Callable[[], float],
        clock: Clock = SYSTEM,
        *,
        who: Callable[[], str] = lambda: "a majority of the master candidates",
    ) -> None:
        """``limit`` is the patience of the candidates in seconds, 0 for endless.

        ``who`` decides, for a message.
        """
        self._limit = limit
        self._contact = contact
        self._who = who
        self._clock = clock
        self._machine = MasterMachine(Settings(), contact=clock.monotonic())
        #: called once when the time is over, with what happened
        self.on_lost: Callable[[str], None] = lambda _text: None
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="lease", daemon=True)

    def start(self) -> None:
        """Begin to act, if a majority was heard late enough: the claim, or a call since then."""
        with self._changed:
            self._machine.contact = self._contact()
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

    def change_source(self) -> None:
        """Another one decides from now on, who may have been heard earlier."""
        with self._changed:
            self._machine.contact = self._contact()
            self._changed.notify()

    def count_left(self) -> float | None:
        """Seconds that the master may go on from now; None: without end."""
        with self._changed:
            self._update()
            until = self._machine.acts_until
        return None if until is None else until - self._clock.monotonic()

    def note_contact(self) -> None:
        """A candidate has answered. A lease that had ended stays lost, whoever answers now."""
        with self._changed:
            if self._thread.ident is None:
                return
            self._update()
            if self._machine.down:
                self._changed.notify()

    def _update(self) -> None:
        self._machine.settings.failover_after = self._limit()
        self._machine.feed(Followed(self._contact()))

    def _work(self) -> None:
        with self._changed:
            while not self._stopped:
                self._update()
                now = self._clock.monotonic()
                self._machine.feed(Tick(now))
                if self._machine.down:
                    break
                until = self._machine.acts_until
                self._changed.wait(None if until is None else max(0.0, until - now))
            else:
                return
        limit = self._machine.settings.failover_after
        self.on_lost(
            f"{self._who()} has not answered for"
            f" {bounds.count_acting(limit):.0f} s; one of them takes over after {limit:.0f} s"
        )

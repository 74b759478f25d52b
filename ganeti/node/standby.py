"""Takes the place of a silent master: the part of it on each master candidate.

The master calls each candidate at least every few seconds, and says after how much silence its
place may be taken (``auto_failover_after`` of the cluster). When it has been silent for so long,
``gnt-cluster master-failover --if-silent`` runs here. It asks the other candidates whether they
hear the master, and votes (:mod:`ganeti.config.vote`). So this module only decides when to ask, and
a candidate that alone was cut off changes nothing.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
from collections.abc import Callable

from ganeti import errors
from ganeti.base import process
from ganeti.base.clock import SYSTEM, Clock
from ganeti.node.context import NodeContext

log = logging.getLogger(__name__)

#: Seconds over which the first attempts of the candidates are spread.
SPREAD = 3.0
#: Longest pause in seconds between two attempts.
LONGEST_PAUSE = 60.0
#: Seconds until the first attempt of a node daemon that has heard no master since its start: the
#: whole cluster may be booting. Without the master's word it tries that rarely, too.
BOOT_PATIENCE = 120.0
RARE_PAUSE = 600.0
#: Seconds for one attempt: vote, start of the master daemon with many jobs, hooks.
_TIMEOUT = 600.0
_STOP_WAIT = 1.0


def plan_first_attempt(limit: int | None, chance: float) -> float | None:
    """Seconds after the last sign of the master until the first attempt; None for never. Pure.

    ``limit`` is what the master said, None when no master has spoken since the start of the node
    daemon. ``chance`` from 0 to 1 keeps candidates from trying at the same moment.
    """
    if limit == 0:
        return None
    return (BOOT_PATIENCE if limit is None else limit) + SPREAD * chance


def plan_next_attempt(limit: int | None, attempts: int, chance: float) -> float:
    """Seconds from a failed attempt to the next one; ``attempts`` were made. Pure."""
    if limit is None:
        return RARE_PAUSE * (0.5 + chance)
    return min(SPREAD * 2.0 ** (attempts - 1), LONGEST_PAUSE) * (0.5 + chance)


class Standby:
    """Waits for silence, and tries to take over. Thread-safe."""

    def __init__(
        self,
        context: NodeContext,
        *,
        attempt: Callable[[], None] | None = None,
        clock: Clock = SYSTEM,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``attempt`` takes over, or does not; it logs why."""
        self._context = context
        self._attempt = attempt or self._run_failover
        self._clock = clock
        self._chance = chance
        self._changed = threading.Condition()
        self._limit: int | None = None
        self._attempts = 0
        self._stopped = False
        self._heard = clock.monotonic()
        self._next: float | None = None
        self._plan()
        self._thread = threading.Thread(target=self._work, name="standby", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Try nothing any more; an attempt in progress goes on by itself. Idempotent."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(_STOP_WAIT)

    def note_sign(self, limit: int | None = None) -> None:
        """The master called. ``limit`` is the silence that it allows; None: as before."""
        with self._changed:
            self._heard = self._clock.monotonic()
            self._attempts = 0
            if limit is not None:
                self._limit = limit
            self._plan()
            self._changed.notify()

    def measure_silence(self) -> float:
        """Seconds since the last sign of the master, or since the node daemon started."""
        with self._changed:
            return self._clock.monotonic() - self._heard

    def _plan(self) -> None:
        first = plan_first_attempt(self._limit, self._chance())
        self._next = None if first is None else self._heard + first

    def _work(self) -> None:
        while self._wait():
            if self._is_standby():
                log.warning(
                    "the master has been silent for %.0f s: trying to take its place",
                    self.measure_silence(),
                )
                self._attempt()
            with self._changed:
                self._attempts += 1
                pause = plan_next_attempt(self._limit, self._attempts, self._chance())
                if self._next is not None and self._clock.monotonic() >= self._next:
                    self._next = self._clock.monotonic() + pause

    def _wait(self) -> bool:
        """Wait for the time of the next attempt; False at the end."""
        with self._changed:
            while not self._stopped:
                left = None if self._next is None else self._next - self._clock.monotonic()
                if left is not None and left <= 0:
                    return True
                self._changed.wait(left)
            return False

    def _is_standby(self) -> bool:
        """Whether this node could be the master and is not."""
        context = self._context
        return context.paths.config_file.exists() and context.read_master() != context.name

    def _run_failover(self) -> None:
        argv = [sys.executable, "-m", "ganeti.cli", "gnt-cluster", "master-failover", "--if-silent"]
        try:
            done = process.run(argv, timeout=_TIMEOUT, env=dict(os.environ))
        except errors.CommandError as err:
            log.error("%s", errors.text(err))
            return
        for line in (*done.stdout.splitlines(), *done.stderr.splitlines()):
            log.info("master-failover: %s", line)

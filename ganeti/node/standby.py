"""Takes the place of a silent master: the part of it on each master candidate.

The master calls each candidate at least every few seconds, and says after how much silence its
place may be taken (``auto_failover_after`` of the cluster). When it has been silent for so long,
``gnt-cluster master-failover --if-silent`` runs here. It asks the other candidates whether they
hear the master, and votes (:mod:`ganeti.config.vote`). :mod:`ganeti.recovery.standby` decides
when to ask; here are the thread and the clock.
"""

from __future__ import annotations

import logging
import os
import random
import sys
from collections.abc import Callable

from ganeti import constants, errors
from ganeti.base import daemon, process
from ganeti.base.clock import SYSTEM, Clock
from ganeti.base.waiting_thread import WaitingThread
from ganeti.model import ssconf_keys
from ganeti.node.context import NodeContext
from ganeti.recovery import standby
from ganeti.recovery.standby import Candidate

log = logging.getLogger(__name__)

#: Seconds for one attempt: vote, start of the master daemon with many jobs, hooks.
_TIMEOUT = 600.0


class Standby(WaitingThread):
    """Waits for silence, and tries to take over. Thread-safe."""

    def __init__(
        self,
        context: NodeContext,
        *,
        attempt: Callable[[], None] | None = None,
        clock: Clock = SYSTEM,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``attempt`` takes over, or does not; it logs why.

        One that is in progress continues by itself after :meth:`stop`.
        """
        super().__init__("standby")
        self._context = context
        self._attempt = attempt or self._run_failover
        self._clock = clock
        self._candidate = Candidate(clock.monotonic(), chance)

    def note_sign(self, limit: int | None = None) -> None:
        """The master called. ``limit`` is the silence that it allows; None: as before."""
        with self._changed:
            self._candidate.hear(self._clock.monotonic(), limit)
            self._changed.notify()

    def measure_silence(self) -> float:
        """Seconds since the last sign of the master, or since the node daemon started."""
        with self._changed:
            return self._clock.monotonic() - self._candidate.heard

    def _work(self) -> None:
        while self._wait():
            if self._is_standby():
                self._try()
            counts = self._is_standby()
            with self._changed:
                self._candidate.end_attempt(self._clock.monotonic(), counts=counts)

    def _try(self) -> None:
        if self._is_paused():
            log.info("the master is silent, but recovery is paused: its place is not taken")
            return
        silence = self.measure_silence()
        log.warning("the master has been silent for %.0f s: trying to take its place", silence)
        self._attempt()

    def _wait(self) -> bool:
        """Wait for the time of the next attempt; False at the end."""
        with self._changed:
            while not self._stopped:
                moment = self._candidate.tries_at
                left = None if moment is None else moment - self._clock.monotonic()
                if left is not None and left <= 0:
                    return True
                self._changed.wait(left)
            return False

    def _is_standby(self) -> bool:
        context, where = self._context, self._context.paths
        if not where.config_file.exists():
            return False
        runs = daemon.running_pid(where.pid_file(constants.MASTERD)) is not None
        return standby.is_standby(
            context.name,
            (context.read_master(), context.term.read_highest()[1]),
            serves=runs or where.master_stopped_file.exists(),
        )

    def _is_paused(self) -> bool:
        """Whether an administrator wants no recovery now."""
        text = self._context.ssconf(ssconf_keys.RECOVERY_PAUSED_UNTIL)
        try:
            return bool(text) and float(text or 0) > self._clock.now()
        except ValueError:
            log.error("the end of the pause of recovery cannot be read: %.40r", text)
            return False

    def _run_failover(self) -> None:
        argv = [sys.executable, "-m", "ganeti.cli", "gnt-cluster", "master-failover", "--if-silent"]
        try:
            done = process.run(argv, timeout=_TIMEOUT, env=dict(os.environ))
        except errors.CommandError as err:
            log.error("%s", errors.text(err))
            return
        for line in (*done.stdout.splitlines(), *done.stderr.splitlines()):
            log.info("master-failover: %s", line)

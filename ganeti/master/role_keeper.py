"""Renews the lease of the master's role, where a store holds it. See :mod:`ganeti.config.role`."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock, Deadline
from ganeti.base.waiting_thread import WaitingThread
from ganeti.config import role as role_of_node
from ganeti.config.role import Role
from ganeti.recovery.role import RENEWALS

_LOG = logging.getLogger(__name__)

#: Seconds until a renewal that failed is tried again; and for a master that acts without the role.
_AGAIN_AFTER = 0.25
_RARELY = 5.0


class RoleKeeper(WaitingThread):
    """A thread that renews the lease until it has ended or was taken.

    No renewal goes on after the moment from which this master must not act any more: from then on
    another one may have been chosen.
    """

    def __init__(
        self,
        role: Role,
        seconds: Callable[[], int],
        *,
        alone: Callable[[], int] | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """``seconds`` is how long the lease should be.

        ``alone``: the master acts without the role, as the administrator wants it. It is the number
        of its term; the role is taken when the store can be reached.
        """
        super().__init__("role")
        self.role = role
        self._seconds = seconds
        self._alone = alone
        self._clock = clock
        #: called after each renewal
        self.on_renewed: Callable[[], None] = lambda: None
        #: called once when another node has the role, with what happened
        self.on_lost: Callable[[str], None] = lambda _text: None
        #: why the last renewal failed; empty: it did not
        self.problem = ""

    def note_change(self) -> None:
        """The length of the lease may be another one."""
        self._wake()

    def find_contact(self) -> float:
        """When the lease began, by the monotonic clock; always now for a master alone."""
        held = self.role.held
        if self._alone is not None:
            return self._clock.monotonic()
        return 0.0 if held is None else held.since

    def count_seconds(self) -> int:
        """The length of the lease."""
        held = self.role.held
        return self._seconds() if held is None else held.seconds

    def _work(self) -> None:
        while self._wait():
            try:
                kept = self._renew()
            except errors.GanetiError as err:
                self._note_problem(errors.text(err))
                continue
            if not kept:
                name = self.role.store.name
                self.on_lost(f"{name} has ended the role of this master, or another one has it")
                return
            self._note_problem("")
            self.on_renewed()

    def _wait(self) -> bool:
        """Wait for the time of the next renewal; False at the end."""
        with self._changed:
            held, now = self.role.held, self._clock.monotonic()
            if self.problem:
                pause = _AGAIN_AFTER if self._alone is None else _RARELY
            else:
                pause = 0.0 if held is None else held.since + held.seconds / RENEWALS - now
            if not self._stopped and pause > 0:
                self._changed.wait(pause)
            late = held is not None and self._clock.monotonic() >= held.acts_until
            return not self._stopped and (self._alone is not None or not late)

    def _renew(self) -> bool:
        """Renew the lease; False when the role is lost."""
        held = self.role.held
        if self._alone is None:
            left = 0.0 if held is None else held.acts_until - self._clock.monotonic()
        elif held is None:
            return self._take(self._alone())
        else:
            left = role_of_node.PATIENCE
        return self.role.renew(self._seconds(), Deadline(left, self._clock))

    def _take(self, term: int) -> bool:
        try:
            self.role.take(term, self._seconds())
        except errors.NoMasterError:
            return False
        return True

    def _note_problem(self, text: str) -> None:
        if text and not self.problem:
            _LOG.error("the lease of the master's role is not renewed: %s", text)
        elif self.problem and not text:
            _LOG.info("the lease of the master's role is renewed again")
        self.problem = text

"""Tickets for consoles: valid once, for the user who asked, for half a minute."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ganeti.base.clock import SYSTEM, Clock
from ganeti.rapi import failures

#: Seconds until a ticket must be used.
LIFE = 30.0
#: Tickets that are not used yet, of one user and of all.
MOST_OF_USER, MOST = 50, 1000


@dataclass(frozen=True)
class Ticket:
    """Ticket for one console: ``kind`` is serial or vnc, ``mode`` is control or view."""

    instance: str
    kind: str
    mode: str
    user: str
    address: str
    #: the user as the master records it
    author: str = ""
    #: id of the session by which it was made, empty without one
    session: str = ""
    #: whether its user may still see the console
    may_stay: Callable[[], bool] = field(default=lambda: True, repr=False)


class Tickets:
    """Tickets that nobody has used yet. Thread-safe; only digests are kept."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._mutex = threading.Lock()
        self._known: dict[bytes, tuple[float, Ticket]] = {}

    def add(self, ticket: Ticket) -> str:
        """The secret of a new ticket.

        Raises:
            Refused: 429, too many are waiting to be used.
        """
        now, secret = self._clock.monotonic(), secrets.token_urlsafe(32)
        with self._mutex:
            self._known = {key: item for key, item in self._known.items() if now < item[0]}
            count = sum(item.user == ticket.user for _end, item in self._known.values())
            if count >= MOST_OF_USER or len(self._known) >= MOST:
                raise failures.Refused(
                    429, "Too many tickets are not used yet", {"Retry-After": str(int(LIFE))}
                )
            self._known[_digest(secret)] = (now + LIFE, ticket)
        return secret

    def take(self, secret: str, session: str) -> Ticket | None:
        """The ticket, which is used up; None when it is unknown, over or somebody else's."""
        with self._mutex:
            end, ticket = self._known.pop(_digest(secret), (0.0, None))
        if ticket is None or self._clock.monotonic() >= end or ticket.session not in ("", session):
            return None
        return ticket


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()

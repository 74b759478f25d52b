"""Notices that wait to be sent to one receiver: batches, pauses, retries and limits. Pure.

Notices that come close together make one message. A message that cannot be delivered is tried again
with growing pauses, and given up after a day. What does not fit is dropped and counted.
"""

from __future__ import annotations

import secrets

import msgspec

from ganeti.notify.notices import Notice

#: Notices that wait at most, and those of one message.
MOST, BATCH = 1000, 100
#: Seconds that notices are gathered for one message.
GATHER = 1.0
#: Seconds to the first retry and between later ones, and until a message is given up.
FIRST_RETRY, LAST_RETRY, GIVE_UP = 10.0, 900.0, 86400.0


class Message(msgspec.Struct, frozen=True):
    """One message; it is the same when it is sent again."""

    id: str
    notices: tuple[Notice, ...]
    #: notices before these that were dropped
    dropped: int


class Outbox(msgspec.Struct):
    """Its members are what a file keeps; times are seconds since 1970."""

    waiting: list[Notice] = []
    message: Message | None = None
    #: when the message was first tried, how often it was, when it is tried next
    begun: float = 0.0
    attempts: int = 0
    next: float = 0.0
    #: notices dropped since the last message
    dropped: int = 0
    #: messages delivered and given up, and notices dropped
    sent: int = 0
    failed: int = 0
    lost: int = 0
    #: of the latest delivery, and of the latest failure
    last_sent: float = 0.0
    problem: str = ""

    def add(self, notice: Notice, now: float) -> None:
        """Put a notice behind the others; the oldest one is dropped when there are too many."""
        if not self.waiting and self.message is None:
            self.next = max(self.next, now + GATHER)
        self.waiting.append(notice)
        surplus = len(self.waiting) - MOST
        if surplus > 0:
            del self.waiting[:surplus]
            self.dropped += surplus
            self.lost += surplus

    def find_due(self) -> float | None:
        """When something is to be sent; None: there is nothing."""
        return self.next if self.waiting or self.message is not None else None

    def take(self, now: float) -> Message | None:
        """The message to send now; the same again until it is delivered or given up."""
        due = self.find_due()
        if due is None or now < due:
            return None
        if self.message is None:
            batch = self.waiting[:BATCH]
            del self.waiting[: len(batch)]
            self.message = Message(secrets.token_hex(8), tuple(batch), self.dropped)
            self.begun, self.attempts, self.dropped = now, 0, 0
        return self.message

    def succeed(self, now: float, pause: float) -> None:
        """The message was delivered; the next one waits for the pause of the receiver."""
        self.message, self.problem = None, ""
        self.sent += 1
        self.last_sent, self.next = now, now + pause

    def fail(self, now: float, problem: str) -> bool:
        """It was not delivered; returns whether it is given up."""
        self.problem = problem
        if now - self.begun >= GIVE_UP:
            lost = 0 if self.message is None else len(self.message.notices)
            self.message = None
            self.failed += 1
            self.lost += lost
            self.dropped += lost
            self.next = now + FIRST_RETRY
            return True
        self.next = now + min(FIRST_RETRY * 2.0**self.attempts, LAST_RETRY)
        self.attempts += 1
        return False

"""A store in memory that holds the role of the master as etcd does; its clock is the caller's."""

from __future__ import annotations

from collections.abc import Callable

from ganeti.base.clock import Deadline
from ganeti.recovery.role import Claim, Record


class MemoryStore:
    """Implements :class:`ganeti.recovery.role.RoleStore`; every call is one step."""

    name = "the store"

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._last: Claim | None = None
        self._holder: Claim | None = None
        self._over = 0.0

    def read(self, end: Deadline | None = None) -> Record:
        if self._holder is not None and self._now() >= self._over:
            self._holder = None
        return Record(self._last, self._holder)

    def claim(
        self,
        seen: Record,
        claim: Claim,
        seconds: int,
        end: Deadline | None = None,
        *,
        force: bool = False,
    ) -> int | None:
        record = self.read()
        if record.last != seen.last or (not force and record.holder != seen.holder):
            return None
        self._last = self._holder = claim
        return self.extend(seconds)

    def renew(self, claim: Claim, seconds: int, end: Deadline | None = None) -> int | None:
        return self.extend(seconds) if self.read().holder == claim else None

    def release(self, claim: Claim, end: Deadline | None = None) -> None:
        if self._holder == claim:
            self._holder = None

    def close(self) -> None:
        return

    def extend(self, seconds: int) -> int:
        """Begin the lease again."""
        self._over = self._now() + seconds
        return seconds

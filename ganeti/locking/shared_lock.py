"""One lock: who holds it, who waits, in which order. Pure state; the manager does the rest.

Why four modes: names of a level are locked one by one, or all at once through the level's *set
lock*. Whoever locks a name also takes the set lock in an intention mode, so that "all instances"
and "instance web1" meet in one place (multi-granularity locking). Intentions do not exclude each
other; a name's own lock only knows SHARED and EXCLUSIVE.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from enum import IntEnum
from typing import Generic, Protocol, TypeVar


class Mode(IntEnum):
    """Modes in growing strength."""

    INTEND_SHARED = 0
    INTEND_EXCLUSIVE = 1
    SHARED = 2
    EXCLUSIVE = 3


#: mode -> modes that cannot be held beside it
CONFLICTS: dict[Mode, tuple[Mode, ...]] = {
    Mode.INTEND_SHARED: (Mode.EXCLUSIVE,),
    Mode.INTEND_EXCLUSIVE: (Mode.SHARED, Mode.EXCLUSIVE),
    Mode.SHARED: (Mode.INTEND_EXCLUSIVE, Mode.EXCLUSIVE),
    Mode.EXCLUSIVE: tuple(Mode),
}


class Ordered(Protocol):
    """A waiter. ``key`` sorts by priority, then by arrival; the smallest comes first."""

    @property
    def key(self) -> tuple[int, int]: ...


W = TypeVar("W", bound=Ordered)


def _key(waiter: Ordered) -> tuple[int, int]:
    return waiter.key


class SharedLock(Generic[W]):
    """Holders and waiters of one lock.

    Fair without barging: a waiter is eligible only when neither a holder nor an *earlier* waiter
    conflicts with it. Looking for the next eligible waiter costs O(1) per waiter that is looked at.
    """

    __slots__ = ("_count", "_waiting", "holders")

    def __init__(self) -> None:
        self.holders: dict[object, Mode] = {}
        self._count = [0, 0, 0, 0]
        self._waiting: tuple[list[W], ...] = ([], [], [], [])

    def hold(self, owner: object, mode: Mode) -> None:
        self.holders[owner] = mode
        self._count[mode] += 1

    def drop(self, owner: object) -> Mode:
        """Forget a holder; returns the mode it held."""
        mode = self.holders.pop(owner)
        self._count[mode] -= 1
        return mode

    def wait(self, waiter: W, mode: Mode) -> None:
        insort(self._waiting[mode], waiter, key=_key)

    def leave(self, waiter: W, mode: Mode) -> None:
        """Forget a waiter; it must wait in this mode."""
        group = self._waiting[mode]
        at = bisect_left(group, waiter.key, key=_key)
        if group[at] is not waiter:
            at = group.index(waiter)
        del group[at]

    def is_free_for(self, mode: Mode) -> bool:
        """Whether no holder conflicts."""
        return not any(self._count[other] for other in CONFLICTS[mode])

    def is_eligible(self, waiter: W, mode: Mode) -> bool:
        """Whether neither a holder nor an earlier waiter conflicts."""
        if not self.is_free_for(mode):
            return False
        for other in CONFLICTS[mode]:
            group = self._waiting[other]
            if group and group[0] is not waiter and group[0].key < waiter.key:
                return False
        return True

    def candidates(self, freed: Mode) -> list[W]:
        """Waiters that may have become eligible now that ``freed`` is held or wanted no more."""
        found: list[W] = []
        for mode in CONFLICTS[freed]:
            group = self._waiting[mode]
            if not group or not self.is_free_for(mode):
                continue
            for waiter in group:
                if not self.is_eligible(waiter, mode):
                    break
                found.append(waiter)
                if mode is Mode.EXCLUSIVE:
                    break
        found.sort(key=_key)
        return found

    def waiters(self) -> Iterator[tuple[W, Mode]]:
        """Waiters in their order."""
        every = [(waiter, mode) for mode in Mode for waiter in self._waiting[mode]]
        every.sort(key=lambda item: item[0].key)
        return iter(every)

    def holding_mode(self) -> str | None:
        """``exclusive``, ``shared`` or None, as lists show it (an intention shows nothing)."""
        if self._count[Mode.EXCLUSIVE]:
            return "exclusive"
        return "shared" if self._count[Mode.SHARED] else None

"""Locks as users see them: a row of the list for each, and why a request waits."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.locking.level_locks import Level
from ganeti.locking.request import Owner, Request
from ganeti.locking.shared_lock import CONFLICTS, Mode, SharedLock

SET_NAME = "[lockset]"


@dataclass(frozen=True)
class LockView:
    """One row of the lock list."""

    name: str
    mode: str | None
    owners: tuple[Owner, ...]
    #: (mode, owner), in the order in which they will be served
    pending: tuple[tuple[str, Owner], ...]


@dataclass(frozen=True)
class Obstacle:
    """One lock that a waiting request cannot have yet."""

    #: ``level/name``
    lock: str
    #: mode in which it is wanted
    mode: str
    #: owners that hold it in a way that excludes the request, and how
    holders: tuple[tuple[Owner, str], ...]
    #: owners of earlier requests that exclude it, in their order
    ahead: tuple[Owner, ...]


@dataclass(frozen=True)
class WaitView:
    """The request that one owner waits for."""

    level: str
    names: tuple[str, ...] | None
    mode: str
    #: seconds
    age: float
    obstacles: tuple[Obstacle, ...]


def view(name: str, lock: SharedLock[Request]) -> LockView:
    """The row of a lock."""
    strong = (Mode.SHARED, Mode.EXCLUSIVE)
    owners = [owner for owner, mode in lock.holders.items() if mode in strong]
    pending = [(w.mode, w.owner) for w, mode in lock.waiters() if mode in strong]
    return LockView(name, lock.holding_mode(), tuple(owners), tuple(pending))  # type: ignore[arg-type]


def explain(level: Level, request: Request, now: float) -> WaitView:
    """Which locks a waiting request cannot have yet; ``now`` is a monotonic time."""
    labels = [SET_NAME, *(request.names or ())]
    found = [
        _obstacle(f"{level.label}/{name}", lock, request, mode)
        for name, (lock, mode) in zip(labels, level.parts(request), strict=True)
    ]
    obstacles = tuple(item for item in found if item.holders or item.ahead)
    return WaitView(level.label, request.names, request.mode, now - request.since, obstacles)


def _obstacle(name: str, lock: SharedLock[Request], request: Request, mode: Mode) -> Obstacle:
    bad = CONFLICTS[mode]
    holders = [(owner, held) for owner, held in lock.holders.items() if held in bad]
    ahead = [
        waiter.owner
        for waiter, wanted in lock.waiters()
        if wanted in bad and waiter is not request and waiter.key < request.key
    ]
    words = {Mode.SHARED: "shared", Mode.EXCLUSIVE: "exclusive"}
    return Obstacle(
        name,
        request.mode,
        tuple((owner, words.get(held, "parts of it")) for owner, held in holders),  # type: ignore[misc]
        tuple(ahead),
    )

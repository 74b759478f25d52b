"""One level of locks, and what an owner holds of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ganeti import errors
from ganeti.locking.request import Owner, Request
from ganeti.locking.shared_lock import Mode, SharedLock


@dataclass
class Level:
    """The locks of one level: one for all of it, and one for each name."""

    label: str
    whole: SharedLock[Request] = field(default_factory=SharedLock)
    names: dict[str, SharedLock[Request]] = field(default_factory=dict)
    #: names that a request wants to add but does not hold yet
    promised: dict[str, Owner] = field(default_factory=dict)

    def check_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.names:
                raise make_removed_error(self.label, name)

    def check_new(self, names: Iterable[str]) -> None:
        for name in names:
            promised = self.promised.get(name)
            if promised is not None:
                raise errors.LockError(f"{self.label} '{name}' is being added by job {promised}")
            if name in self.names:
                holders = [str(owner) for owner in self.names[name].holders]
                by = f" (used by job {', '.join(holders)})" if holders else ""
                raise errors.LockError(f"{self.label} '{name}' exists already{by}")

    def locks(self, names: Iterable[str] | None) -> list[SharedLock[Request]]:
        return [] if names is None else [self.names[name] for name in names]

    def parts(self, request: Request) -> list[tuple[SharedLock[Request], Mode]]:
        """Every lock that a request needs, the set lock first."""
        strong = Mode.SHARED if request.shared else Mode.EXCLUSIVE
        if request.names is None:
            return [(self.whole, strong)]
        intent = Mode.INTEND_SHARED if request.shared else Mode.INTEND_EXCLUSIVE
        return [(self.whole, intent), *((self.names[name], strong) for name in request.names)]

    def enqueue(self, request: Request) -> None:
        for lock, mode in self.parts(request):
            lock.wait(request, mode)

    def leave(self, request: Request) -> list[tuple[SharedLock[Request], Mode]]:
        """Take a request that will not be granted out of all queues; returns what it waited for."""
        parts = self.parts(request)
        for lock, mode in parts:
            lock.leave(request, mode)
        for name in request.new:
            self.promised.pop(name, None)
        return parts

    def grant(self, request: Request) -> Held | None:
        """Give a waiting request all its locks at once; None if it cannot have all of them."""
        parts = self.parts(request)
        if not all(lock.is_eligible(request, mode) for lock, mode in parts):
            return None
        for lock, mode in parts:
            lock.leave(request, mode)
            lock.hold(request.owner, mode)
        for name in request.new:
            del self.promised[name]
            self.names[name] = SharedLock()
            self.names[name].hold(request.owner, Mode.EXCLUSIVE)
        names = None if request.names is None else {*request.names, *request.new}
        return Held(request.shared, names, set(request.new))

    def take_free(self, probe: Request, names: Iterable[str] | None) -> set[str]:
        """Take those of the names (None: of all) that are free for a request that does not wait."""
        intent = Mode.INTEND_SHARED if probe.shared else Mode.INTEND_EXCLUSIVE
        mode = Mode.SHARED if probe.shared else Mode.EXCLUSIVE
        granted: set[str] = set()
        if self.whole.is_eligible(probe, intent):
            for name in self.names if names is None else names:
                lock = self.names.get(name)
                if lock is not None and lock.is_eligible(probe, mode):
                    lock.hold(probe.owner, mode)
                    granted.add(name)
        if granted:
            self.whole.hold(probe.owner, intent)
        return granted


@dataclass
class Held:
    """The locks that an owner holds at one level."""

    shared: bool
    #: names, or ALL
    names: set[str] | None
    #: names that exist only as long as their owner, unless it keeps them
    fresh: set[str] = field(default_factory=set)

    def covers(self, name: str) -> bool:
        return self.names is None or name in self.names


def make_removed_error(what: str, name: str) -> errors.LockError:
    """The error of who looked up a name before another job removed it."""
    return errors.LockError(f"{what} {name} was removed meanwhile")

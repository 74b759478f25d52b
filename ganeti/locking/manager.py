"""All locks of the cluster: levels, sets, owners, and the one rule that prevents deadlocks.

The rule: an owner takes levels in order, and all locks of one level in one request. A request
waits for all its locks together and holds none of them meanwhile, so it cannot be part of a
cycle. Nothing here blocks: a request that cannot be granted at once calls back later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import count

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.locking.shared_lock import CONFLICTS, Mode, SharedLock

#: Who holds or wants locks: a job id, or the name of a part of the daemon.
Owner = int | str

#: Stands for every name of a level, also those that appear while it is held or wanted.
ALL = None

SET_NAME = "[lockset]"


class State(Enum):
    WAITING = "waiting"
    GRANTED = "granted"
    FAILED = "failed"
    CANCELED = "canceled"


@dataclass(eq=False)
class Request:
    """A request for locks of one level; decided when ``state`` is no longer WAITING."""

    owner: Owner
    level: int
    #: names in order, or ALL
    names: tuple[str, ...] | None
    shared: bool
    priority: int
    seq: int
    since: float
    on_done: Callable[[Request], None]
    #: names that the request adds
    new: tuple[str, ...] = ()
    state: State = State.WAITING
    error: errors.LockError | None = None
    #: priority with ageing; smaller is more urgent
    effective: int = 0

    @property
    def key(self) -> tuple[int, int]:
        return (self.effective, self.seq)

    @property
    def mode(self) -> str:
        return "shared" if self.shared else "exclusive"


@dataclass
class _Level:
    label: str
    whole: SharedLock[Request] = field(default_factory=SharedLock)
    names: dict[str, SharedLock[Request]] = field(default_factory=dict)
    #: names that a request wants to add but does not hold yet
    promised: dict[str, Owner] = field(default_factory=dict)


@dataclass
class _Held:
    """What an owner holds at one level."""

    shared: bool
    #: names, or ALL
    names: set[str] | None
    #: names that exist only as long as their owner, unless it keeps them
    fresh: set[str] = field(default_factory=set)


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
    """What one owner waits for."""

    level: str
    names: tuple[str, ...] | None
    mode: str
    #: seconds
    age: float
    obstacles: tuple[Obstacle, ...]


class LockManager:
    """Thread-safe; every method returns at once. Callbacks run without internal locks held."""

    def __init__(self, levels: Iterable[str], clock: Clock = SYSTEM) -> None:
        """``levels`` in the order in which they must be taken."""
        self._levels = [_Level(label) for label in levels]
        self._clock = clock
        self._mutex = threading.Lock()
        self._seq = count()
        self._held: dict[Owner, dict[int, _Held]] = {}
        self._waiting: dict[Owner, Request] = {}

    # existence ---------------------------------------------------------------------------

    def create(self, level: int, names: Iterable[str]) -> None:
        """Make locks for existing objects (at start-up); known names are left as they are."""
        with self._mutex:
            table = self._levels[level].names
            for name in names:
                table.setdefault(name, SharedLock())

    def remove(self, owner: Owner, level: int, name: str) -> None:
        """Remove a lock that the owner holds exclusively; whoever waits for it fails.

        Raises:
            LockError: the owner does not hold it exclusively.
        """
        with self._mutex:
            held = self._held.get(owner, {}).get(level)
            known = name in self._levels[level].names
            if held is None or held.shared or not known or not self._covers(held, name):
                raise errors.LockError(
                    f"lock {self._levels[level].label}/{name} is not held exclusively"
                    f" by {owner} and cannot be removed"
                )
            decided = self._remove(level, name)
            if held.names is not None:
                held.names.discard(name)
            held.fresh.discard(name)
        self._call_back(decided)

    def discard(self, level: int, name: str) -> None:
        """Remove a lock that nobody holds (the global lock keeps others away); waiters fail.

        Raises:
            LockError: somebody holds it.
        """
        with self._mutex:
            lock = self._levels[level].names.get(name)
            if lock is None:
                return
            if lock.holders:
                raise errors.LockError(f"lock {self._levels[level].label}/{name} is being held")
            decided = self._remove(level, name)
        self._call_back(decided)

    def forget(self, level: int, names: Iterable[str]) -> None:
        """Remove locks of objects that are gone, whoever holds them; waiters fail. Idempotent."""
        decided: list[Request] = []
        with self._mutex:
            for name in set(names) & set(self._levels[level].names):
                decided += self._remove(level, name)
                for levels in self._held.values():
                    if level in levels and levels[level].names is not None:
                        (levels[level].names or set()).discard(name)
                        levels[level].fresh.discard(name)
        self._call_back(decided)

    def keep(self, owner: Owner, level: int, names: Iterable[str]) -> None:
        """Locks that the owner added shall outlive it: their objects exist now."""
        with self._mutex:
            held = self._held.get(owner, {}).get(level)
            if held is not None:
                held.fresh.difference_update(names)

    # requests ----------------------------------------------------------------------------

    def request(
        self,
        owner: Owner,
        level: int,
        names: Iterable[str] | None,
        *,
        shared: bool,
        on_done: Callable[[Request], None],
        priority: int = 0,
        new: Iterable[str] = (),
    ) -> Request:
        """Ask for locks of a level; ``names`` None means all. See ``state`` of the result.

        ``on_done`` is called once, from another thread, if the request is WAITING on return.
        ``new`` are locks to be made; they vanish with their owner unless they are kept.

        Raises:
            LockError: wrong order, a second request at this level, an unknown name, or a name
                to be added that exists or is being added by somebody else.
            ProgrammerError: locks are to be made together with a shared lock, or one on all.
        """
        wanted = None if names is None else tuple(sorted(set(names)))
        added = tuple(sorted(set(new)))
        if added and (shared or wanted is None):
            raise errors.ProgrammerError(
                "a request that makes locks must be exclusive and name what else it needs"
            )
        with self._mutex:
            self._check_order(owner, level)
            lev = self._levels[level]
            self._check_known(lev, wanted or ())
            self._check_new(lev, added)
            request = Request(
                owner,
                level,
                wanted,
                shared,
                priority,
                next(self._seq),
                self._clock.monotonic(),
                on_done,
                new=added,
                effective=priority,
            )
            lev.promised.update(dict.fromkeys(added, owner))
            self._enqueue(request)
            if not self._try_grant(request):
                self._waiting[owner] = request
        return request

    def take_free(
        self, owner: Owner, level: int, names: Iterable[str] | None, *, shared: bool
    ) -> frozenset[str]:
        """Take those locks of a level that are free right now (opportunistic); maybe none.

        Raises:
            LockError: wrong order or a second request at this level.
        """
        with self._mutex:
            self._check_order(owner, level)
            lev = self._levels[level]
            intent = Mode.INTEND_SHARED if shared else Mode.INTEND_EXCLUSIVE
            mode = Mode.SHARED if shared else Mode.EXCLUSIVE
            taken: set[str] = set()
            probe = Request(
                owner, level, (), shared, 0, next(self._seq), 0.0, lambda _request: None
            )
            if lev.whole.is_eligible(probe, intent):
                for name in lev.names if names is None else names:
                    lock = lev.names.get(name)
                    if lock is not None and lock.is_eligible(probe, mode):
                        lock.hold(owner, mode)
                        taken.add(name)
            if taken:
                lev.whole.hold(owner, intent)
                self._held.setdefault(owner, {})[level] = _Held(shared, taken)
        return frozenset(taken)

    def cancel(self, request: Request) -> bool:
        """Give up a waiting request; False when it was decided already. Never calls back."""
        with self._mutex:
            if request.state is not State.WAITING:
                return False
            request.state = State.CANCELED
            decided = self._serve(self._leave(request))
        self._call_back(decided)
        return True

    def set_priority(self, owner: Owner, priority: int) -> None:
        """Move what the owner waits for; no effect when it does not wait."""
        with self._mutex:
            request = self._waiting.get(owner)
            if request is None:
                return
            request.priority = priority
            decided = self._rekey([(request, priority)])
        self._call_back(decided)

    def age(self, after: float) -> None:
        """Each full ``after`` seconds of waiting make a request more urgent by one."""
        now = self._clock.monotonic()
        with self._mutex:
            changed = [
                (request, effective)
                for request in self._waiting.values()
                if (effective := request.priority - int((now - request.since) / after))
                != request.effective
            ]
            decided = self._rekey(changed)
        self._call_back(decided)

    # release -----------------------------------------------------------------------------

    def release(
        self, owner: Owner, level: int | None = None, names: Iterable[str] | None = None
    ) -> None:
        """Release names of a level, a whole level, or everything (``level`` None). Idempotent.

        Single names cannot be released from a lock on all names.
        """
        with self._mutex:
            decided: list[Request] = []
            held_levels = self._held.get(owner, {})
            for lvl in sorted(held_levels, reverse=True) if level is None else [level]:
                held = held_levels.get(lvl)
                if held is None:
                    continue
                decided += self._release(owner, lvl, held, names)
                if held.names is None or not held.names:
                    del held_levels[lvl]
            if not held_levels:
                self._held.pop(owner, None)
        self._call_back(decided)

    def downgrade(self, owner: Owner, level: int) -> None:
        """Turn exclusive locks of a level into shared ones, without a gap. Idempotent.

        Raises:
            ProgrammerError: one of them is new and was not kept; it may vanish, so nobody else
                may hold it.
        """
        with self._mutex:
            held = self._held.get(owner, {}).get(level)
            if held is None or held.shared:
                return
            if held.fresh:
                raise errors.ProgrammerError(
                    f"locks {', '.join(sorted(held.fresh))} of {owner} are not kept yet and"
                    " cannot be shared"
                )
            lev = self._levels[level]
            changed: list[tuple[SharedLock[Request], Mode]] = []
            for lock in self._locks(lev, held.names):
                lock.drop(owner)
                lock.hold(owner, Mode.SHARED)
                changed.append((lock, Mode.EXCLUSIVE))
            mode = lev.whole.drop(owner)
            lev.whole.hold(owner, Mode.SHARED if mode is Mode.EXCLUSIVE else Mode.INTEND_SHARED)
            changed.append((lev.whole, mode))
            held.shared = True
            decided = self._serve(changed)
        self._call_back(decided)

    # introspection -----------------------------------------------------------------------

    def held(self, owner: Owner, level: int) -> frozenset[str]:
        """Names that the owner holds at a level (a lock on all names: all that exist now)."""
        with self._mutex:
            found = self._held.get(owner, {}).get(level)
            if found is None:
                return frozenset()
            names = self._levels[level].names if found.names is None else found.names
            return frozenset(names)

    def holds(self, owner: Owner, level: int, name: str, *, shared: bool = True) -> bool:
        """Whether the owner may read (``shared``) or change what the lock protects."""
        with self._mutex:
            found = self._held.get(owner, {}).get(level)
            return found is not None and (shared or not found.shared) and self._covers(found, name)

    def waiting(self, owner: Owner) -> Request | None:
        with self._mutex:
            return self._waiting.get(owner)

    def snapshot(self) -> list[LockView]:
        """Every lock, set locks included, in level order and by name."""
        with self._mutex:
            rows: list[LockView] = []
            for lev in self._levels:
                for name, lock in sorted(lev.names.items()):
                    rows.append(self._view(f"{lev.label}/{name}", lock))
                rows.append(self._view(f"{lev.label}/{SET_NAME}", lev.whole))
            return rows

    def explain(self, owner: Owner) -> WaitView | None:
        """Why an owner does not have its locks yet; None when it waits for none."""
        with self._mutex:
            request = self._waiting.get(owner)
            if request is None:
                return None
            lev = self._levels[request.level]
            labels = [SET_NAME, *(request.names or ())]
            parts = zip(labels, self._parts(request), strict=True)
            found = [
                self._obstacle(f"{lev.label}/{name}", lock, request, mode)
                for name, (lock, mode) in parts
            ]
            age = self._clock.monotonic() - request.since
            obstacles = tuple(item for item in found if item.holders or item.ahead)
            return WaitView(lev.label, request.names, request.mode, age, obstacles)

    @staticmethod
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

    @staticmethod
    def _view(name: str, lock: SharedLock[Request]) -> LockView:
        strong = (Mode.SHARED, Mode.EXCLUSIVE)
        owners = [owner for owner, mode in lock.holders.items() if mode in strong]
        pending = [(w.mode, w.owner) for w, mode in lock.waiters() if mode in strong]
        return LockView(name, lock.holding_mode(), tuple(owners), tuple(pending))  # type: ignore[arg-type]

    # internals; the mutex is held --------------------------------------------------------

    def _check_order(self, owner: Owner, level: int) -> None:
        held = self._held.get(owner)
        if owner in self._waiting:
            raise errors.LockError(f"{owner} waits for locks already")
        if held and max(held) >= level:
            highest = self._levels[max(held)].label
            raise errors.LockError(
                f"{owner} holds locks of level {highest} and cannot take locks of level"
                f" {self._levels[level].label} any more"
            )

    @staticmethod
    def _check_known(lev: _Level, names: Iterable[str]) -> None:
        for name in names:
            if name not in lev.names:
                raise _removed(lev.label, name)

    @staticmethod
    def _check_new(lev: _Level, names: Iterable[str]) -> None:
        for name in names:
            promised = lev.promised.get(name)
            if promised is not None:
                raise errors.LockError(f"{lev.label} '{name}' is being added by job {promised}")
            if name in lev.names:
                holders = [str(owner) for owner in lev.names[name].holders]
                by = f" (used by job {', '.join(holders)})" if holders else ""
                raise errors.LockError(f"{lev.label} '{name}' exists already{by}")

    @staticmethod
    def _covers(held: _Held, name: str) -> bool:
        return held.names is None or name in held.names

    @staticmethod
    def _locks(lev: _Level, names: Iterable[str] | None) -> list[SharedLock[Request]]:
        return [] if names is None else [lev.names[name] for name in names]

    def _parts(self, request: Request) -> list[tuple[SharedLock[Request], Mode]]:
        """Every lock that a request needs, the set lock first."""
        lev = self._levels[request.level]
        strong = Mode.SHARED if request.shared else Mode.EXCLUSIVE
        if request.names is None:
            return [(lev.whole, strong)]
        intent = Mode.INTEND_SHARED if request.shared else Mode.INTEND_EXCLUSIVE
        return [(lev.whole, intent), *((lev.names[name], strong) for name in request.names)]

    def _enqueue(self, request: Request) -> None:
        for lock, mode in self._parts(request):
            lock.wait(request, mode)

    def _try_grant(self, request: Request) -> bool:
        parts = self._parts(request)
        if not all(lock.is_eligible(request, mode) for lock, mode in parts):
            return False
        lev = self._levels[request.level]
        for lock, mode in parts:
            lock.leave(request, mode)
            lock.hold(request.owner, mode)
        names = None if request.names is None else {*request.names, *request.new}
        held = _Held(request.shared, names, set(request.new))
        for name in request.new:
            del lev.promised[name]
            lev.names[name] = SharedLock()
            lev.names[name].hold(request.owner, Mode.EXCLUSIVE)
        self._held.setdefault(request.owner, {})[request.level] = held
        request.state = State.GRANTED
        self._waiting.pop(request.owner, None)
        return True

    def _leave(self, request: Request) -> list[tuple[SharedLock[Request], Mode]]:
        """Take a request that will not be granted out of all queues; returns what it waited for."""
        parts = self._parts(request)
        for lock, mode in parts:
            lock.leave(request, mode)
        for name in request.new:
            self._levels[request.level].promised.pop(name, None)
        self._waiting.pop(request.owner, None)
        return parts

    def _rekey(self, changes: Iterable[tuple[Request, int]]) -> list[Request]:
        """Move waiting requests in line; returns the granted ones.

        All move before anybody is served: nobody may overtake by moving first.
        """
        moved: list[tuple[SharedLock[Request], Mode]] = []
        requests: list[Request] = []
        for request, effective in changes:
            parts = self._parts(request)
            for lock, mode in parts:
                lock.leave(request, mode)
            request.effective = effective
            for lock, mode in parts:
                lock.wait(request, mode)
            moved += parts
            requests.append(request)
        decided = self._serve(moved)
        for request in requests:
            if request.state is State.WAITING and self._try_grant(request):
                decided.append(request)
        return decided

    def _serve(self, freed: Iterable[tuple[SharedLock[Request], Mode]]) -> list[Request]:
        """Grant what has become possible; returns the granted requests.

        A grant never makes another waiter eligible (the new holder conflicts with whatever the
        waiter conflicted with), so one pass is enough.
        """
        granted: list[Request] = []
        for lock, mode in freed:
            for request in lock.candidates(mode):
                if request.state is State.WAITING and self._try_grant(request):
                    granted.append(request)
        return granted

    def _release(
        self, owner: Owner, level: int, held: _Held, names: Iterable[str] | None
    ) -> list[Request]:
        lev = self._levels[level]
        decided: list[Request] = []
        freed: list[tuple[SharedLock[Request], Mode]] = []
        if held.names is not None:
            gone = set(held.names) if names is None else held.names & set(names)
            held.names -= gone
            for name in sorted(gone):
                if name in held.fresh:
                    decided += self._remove(level, name)
                else:
                    lock = lev.names[name]
                    freed.append((lock, lock.drop(owner)))
            if held.names:
                return decided + self._serve(freed)
        elif names is not None:
            raise errors.LockError(f"{owner} holds all locks of level {lev.label} as one")
        freed.append((lev.whole, lev.whole.drop(owner)))
        return decided + self._serve(freed)

    def _remove(self, level: int, name: str) -> list[Request]:
        """Delete a lock; requests that wait for it fail.

        All of them leave before anybody is served, lest the lock is granted while it goes.
        """
        lev = self._levels[level]
        failed = [request for request, _mode in lev.names[name].waiters()]
        left: list[tuple[SharedLock[Request], Mode]] = []
        for request in failed:
            request.state = State.FAILED
            request.error = _removed(lev.label, name)
            left += self._leave(request)
        del lev.names[name]
        return [*failed, *self._serve(left)]

    @staticmethod
    def _call_back(decided: Iterable[Request]) -> None:
        for request in decided:
            request.on_done(request)


def _removed(what: str, name: str) -> errors.LockError:
    """The error of who looked up a name before another job removed it."""
    return errors.LockError(f"{what} {name} was removed meanwhile")

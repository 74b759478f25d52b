"""All locks of the cluster: levels, sets, owners, and the one rule that prevents deadlocks.

The rule: an owner takes levels in order, and all locks of one level in one request. A request
waits for all its locks together and holds none of them meanwhile, so it cannot be part of a
cycle. Nothing here blocks: a request that cannot be granted at once calls back later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from itertools import count

from ganeti import errors
from ganeti.base.clock import SYSTEM, Clock
from ganeti.locking import views
from ganeti.locking.level_locks import Held, Level, make_removed_error
from ganeti.locking.request import Owner, Request, State
from ganeti.locking.shared_lock import Mode, SharedLock
from ganeti.locking.views import LockView, WaitView


class LockManager:
    """Thread-safe; every method returns at once. Callbacks run without internal locks held."""

    def __init__(self, levels: Iterable[str], clock: Clock = SYSTEM) -> None:
        """``levels`` in the order in which they must be taken."""
        self._levels = [Level(label) for label in levels]
        self._clock = clock
        self._mutex = threading.Lock()
        self._seq = count()
        self._held: dict[Owner, dict[int, Held]] = {}
        self._waiting: dict[Owner, Request] = {}

    # existence ---------------------------------------------------------------------------

    def create(self, level: int, names: Iterable[str]) -> None:
        """Make locks for existing objects (at start-up); known names are left as they are."""
        with self._mutex:
            table = self._levels[level].names
            for name in names:
                table.setdefault(name, SharedLock())

    def remove(self, owner: Owner, level: int, name: str) -> None:
        """Remove a lock that the owner holds exclusively; its waiters fail.

        Raises:
            LockError: the owner does not hold it exclusively.
        """
        with self._mutex:
            held = self._held.get(owner, {}).get(level)
            known = name in self._levels[level].names
            if held is None or held.shared or not known or not held.covers(name):
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
            lev.check_known(wanted or ())
            lev.check_new(added)
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
            lev.enqueue(request)
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
            probe = Request(
                owner, level, (), shared, 0, next(self._seq), 0.0, lambda _request: None
            )
            granted = lev.take_free(probe, names)
            if granted:
                self._held.setdefault(owner, {})[level] = Held(shared, granted)
        return frozenset(granted)

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
            for lock in lev.locks(held.names):
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

    def list_held(self, owner: Owner, level: int) -> frozenset[str]:
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
            return found is not None and (shared or not found.shared) and found.covers(name)

    def find_waiting(self, owner: Owner) -> Request | None:
        with self._mutex:
            return self._waiting.get(owner)

    def snapshot(self) -> list[LockView]:
        """Every lock, set locks included, in level order and by name."""
        with self._mutex:
            rows: list[LockView] = []
            for lev in self._levels:
                for name, lock in sorted(lev.names.items()):
                    rows.append(views.view(f"{lev.label}/{name}", lock))
                rows.append(views.view(f"{lev.label}/{views.SET_NAME}", lev.whole))
            return rows

    def explain(self, owner: Owner) -> WaitView | None:
        """Why an owner does not have its locks yet; None when it waits for none."""
        with self._mutex:
            request = self._waiting.get(owner)
            if request is None:
                return None
            return views.explain(self._levels[request.level], request, self._clock.monotonic())

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

    def _try_grant(self, request: Request) -> bool:
        held = self._levels[request.level].grant(request)
        if held is None:
            return False
        self._held.setdefault(request.owner, {})[request.level] = held
        request.state = State.GRANTED
        self._waiting.pop(request.owner, None)
        return True

    def _leave(self, request: Request) -> list[tuple[SharedLock[Request], Mode]]:
        """Take a request that will not be granted out of all queues; returns what it waited for."""
        self._waiting.pop(request.owner, None)
        return self._levels[request.level].leave(request)

    def _rekey(self, changes: Iterable[tuple[Request, int]]) -> list[Request]:
        """Move waiting requests in line; returns the granted ones.

        All move before anybody is served: nobody may overtake by moving first.
        """
        moved: list[tuple[SharedLock[Request], Mode]] = []
        requests: list[Request] = []
        for request, effective in changes:
            parts = self._levels[request.level].parts(request)
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
        self, owner: Owner, level: int, held: Held, names: Iterable[str] | None
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
            request.error = make_removed_error(lev.label, name)
            left += self._leave(request)
        del lev.names[name]
        return [*failed, *self._serve(left)]

    @staticmethod
    def _call_back(decided: Iterable[Request]) -> None:
        for request in decided:
            request.on_done(request)

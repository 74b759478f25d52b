"""The lock manager does what a much simpler model does, whatever comes in which order.

The model keeps one list of wishes for each level and looks through all of it after every step; it
knows no lock objects, no modes and no queues.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from examples import TIMES, examples
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ganeti import errors
from ganeti.locking.manager import LockManager
from ganeti.locking.request import Request, State

LABELS = ("cluster", "instance", "node")
NAMES = ("BGL", "a", "b", "c", "d")
OWNERS = (1, 2, 3, 4, 5, "watcher")
AGE = 10.0

Owner = int | str
Names = frozenset[str] | None


class SteppedClock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


# the model ---------------------------------------------------------------------------------


@dataclass(eq=False)
class Wish:
    owner: Owner
    level: int
    names: Names
    shared: bool
    new: frozenset[str]
    priority: int
    effective: int
    number: int
    since: float
    outcome: str = "waiting"


@dataclass
class Grip:
    names: set[str] | None
    shared: bool
    fresh: set[str] = field(default_factory=set)


def clash(one: Iterable[str] | None, one_shared: bool, two: Names, two_shared: bool) -> bool:
    if one_shared and two_shared:
        return False
    return one is None or two is None or not two.isdisjoint(one)


class Model:
    """What the locks mean, in the plainest words."""

    def __init__(self) -> None:
        self.exists: list[set[str]] = [set() for _ in LABELS]
        self.grips: dict[tuple[Owner, int], Grip] = {}
        self.wishes: list[Wish] = []
        self.number = 0

    def wish_of(self, owner: Owner) -> Wish | None:
        return next((w for w in self.wishes if w.owner == owner), None)

    def refuses(self, owner: Owner, level: int) -> bool:
        highest = max((lvl for o, lvl in self.grips if o == owner), default=-1)
        return self.wish_of(owner) is not None or highest >= level

    def in_the_way(self, wish: Wish) -> bool:
        held = any(
            lvl == wish.level and clash(grip.names, grip.shared, wish.names, wish.shared)
            for (_owner, lvl), grip in self.grips.items()
        )
        before = (wish.effective, wish.number)
        return held or any(
            w.level == wish.level
            and (w.effective, w.number) < before
            and clash(w.names, w.shared, wish.names, wish.shared)
            for w in self.wishes
        )

    def settle(self) -> None:
        for wish in sorted(self.wishes, key=lambda w: (w.effective, w.number)):
            if self.in_the_way(wish):
                continue
            self.wishes.remove(wish)
            wish.outcome = "granted"
            names = None if wish.names is None else set(wish.names | wish.new)
            self.grips[wish.owner, wish.level] = Grip(names, wish.shared, set(wish.new))
            self.exists[wish.level] |= wish.new

    def vanish(self, level: int, name: str) -> None:
        self.exists[level].discard(name)
        for wish in list(self.wishes):
            if wish.level == level and wish.names is not None and name in wish.names:
                self.wishes.remove(wish)
                wish.outcome = "failed"

    def let_go(self, owner: Owner, level: int, names: set[str] | None) -> None:
        grip = self.grips.get((owner, level))
        if grip is None:
            return
        if grip.names is not None and names is not None:
            gone = grip.names & names
            grip.names -= gone
        else:
            gone = grip.names or set()
            grip.names = set()
        if not grip.names:
            del self.grips[owner, level]
        for name in sorted(gone & grip.fresh):
            self.vanish(level, name)
        self.settle()

    def names_held(self, owner: Owner, level: int) -> frozenset[str]:
        grip = self.grips.get((owner, level))
        if grip is None:
            return frozenset()
        return frozenset(self.exists[level] if grip.names is None else grip.names)

    def rows(self) -> list[tuple[str, str | None, set[Owner], list[tuple[str, Owner]]]]:
        """What a list of all locks has to show."""
        rows = []
        for level, label in enumerate(LABELS):
            for name in [*sorted(self.exists[level]), None]:
                grips = {
                    owner: grip
                    for (owner, lvl), grip in self.grips.items()
                    if lvl == level
                    and (
                        name in grip.names
                        if grip.names is not None and name
                        else grip.names is None and name is None
                    )
                }
                modes = {"shared" if grip.shared else "exclusive" for grip in grips.values()}
                line = [
                    ("shared" if w.shared else "exclusive", w.owner)
                    for w in sorted(self.wishes, key=lambda w: (w.effective, w.number))
                    if w.level == level
                    and (
                        name in w.names
                        if w.names is not None and name
                        else w.names is None and name is None
                    )
                ]
                shown = f"{label}/{name or '[lockset]'}"
                rows.append((shown, modes.pop() if modes else None, set(grips), line))
                assert not modes
        return rows


# both side by side -------------------------------------------------------------------------


@dataclass
class Asked:
    """A request, and what was heard of it."""

    wish: Wish
    request: Request
    told: list[State] = field(default_factory=list)
    waited: bool = False


class Pair:
    """Does the same to the manager and to the model, and compares them."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.manager = LockManager(LABELS, self.clock)
        self.model = Model()
        self.open: list[Asked] = []
        self.create(0, {"BGL"})
        self.create(1, {"a", "b", "c"})
        self.create(2, {"a", "b"})

    def create(self, level: int, names: set[str]) -> None:
        promised = {n for w in self.model.wishes if w.level == level for n in w.new}
        names -= promised
        self.manager.create(level, names)
        self.model.exists[level] |= names

    def request(
        self,
        owner: Owner,
        level: int,
        names: Names,
        *,
        shared: bool,
        priority: int = 0,
        new: frozenset[str] = frozenset(),
    ) -> None:
        model = self.model
        exists = model.exists[level]
        promised = {n for w in model.wishes if w.level == level for n in w.new}
        refused = (
            model.refuses(owner, level)
            or not (names or frozenset()) <= exists
            or bool(new & (exists | promised))
        )
        told: list[State] = []

        def ask() -> Request:
            return self.manager.request(
                owner,
                level,
                names,
                shared=shared,
                priority=priority,
                new=new,
                on_done=lambda request: told.append(request.state),
            )

        if new and (shared or names is None):
            with pytest.raises(errors.ProgrammerError):
                ask()
            return
        if refused:
            with pytest.raises(errors.LockError):
                ask()
            return
        model.number += 1
        wish = Wish(
            owner, level, names, shared, new, priority, priority, model.number, self.clock.time
        )
        model.wishes.append(wish)
        model.settle()
        asked = Asked(wish, ask(), told)
        asked.waited = asked.request.state is State.WAITING
        self.open.append(asked)

    def take_free(self, owner: Owner, level: int, names: Names, *, shared: bool) -> None:
        model = self.model
        if model.refuses(owner, level):
            with pytest.raises(errors.LockError):
                self.manager.take_free(owner, level, names, shared=shared)
            return
        wanted = model.exists[level] if names is None else names & model.exists[level]
        taken = set()
        for name in sorted(wanted):
            probe = Wish(
                owner, level, frozenset({name}), shared, frozenset(), 0, 0, model.number + 1, 0.0
            )
            if not model.in_the_way(probe):
                taken.add(name)
        assert self.manager.take_free(owner, level, names, shared=shared) == taken
        if taken:
            model.grips[owner, level] = Grip(taken, shared)

    def cancel(self, owner: Owner) -> None:
        asked = next((a for a in self.open if a.wish.owner == owner), None)
        if asked is None:
            return
        waits = asked.wish in self.model.wishes
        assert self.manager.cancel(asked.request) is waits
        if waits:
            self.model.wishes.remove(asked.wish)
            asked.wish.outcome = "canceled"
            self.model.settle()

    def set_priority(self, owner: Owner, priority: int) -> None:
        self.manager.set_priority(owner, priority)
        wish = self.model.wish_of(owner)
        if wish is not None:
            wish.priority = wish.effective = priority
            self.model.settle()

    def age(self, seconds: float) -> None:
        self.clock.time += seconds
        self.manager.age(AGE)
        for wish in self.model.wishes:
            wish.effective = wish.priority - int((self.clock.time - wish.since) / AGE)
        self.model.settle()

    def release(self, owner: Owner) -> None:
        self.manager.release(owner)
        for level in reversed(range(len(LABELS))):
            self.model.let_go(owner, level, None)

    def release_level(self, owner: Owner, level: int, names: frozenset[str] | None) -> None:
        grip = self.model.grips.get((owner, level))
        if grip is not None and grip.names is None and names is not None:
            with pytest.raises(errors.LockError):
                self.manager.release(owner, level, names)
            return
        self.manager.release(owner, level, names)
        self.model.let_go(owner, level, None if names is None else set(names))

    def downgrade(self, owner: Owner, level: int) -> None:
        grip = self.model.grips.get((owner, level))
        if grip is not None and grip.fresh and not grip.shared:
            with pytest.raises(errors.ProgrammerError):
                self.manager.downgrade(owner, level)
            return
        self.manager.downgrade(owner, level)
        if grip is not None:
            grip.shared = True
            self.model.settle()

    def keep(self, owner: Owner, level: int, names: frozenset[str]) -> None:
        self.manager.keep(owner, level, names)
        grip = self.model.grips.get((owner, level))
        if grip is not None:
            grip.fresh -= names

    def remove(self, owner: Owner, level: int, name: str) -> None:
        grip = self.model.grips.get((owner, level))
        if grip is None or grip.shared or name not in self.model.names_held(owner, level):
            with pytest.raises(errors.LockError):
                self.manager.remove(owner, level, name)
            return
        self.manager.remove(owner, level, name)
        if grip.names is not None:
            grip.names.discard(name)
        grip.fresh.discard(name)
        self.model.vanish(level, name)
        self.model.settle()

    def discard(self, level: int, name: str) -> None:
        held = any(
            lvl == level and grip.names is not None and name in grip.names
            for (_owner, lvl), grip in self.model.grips.items()
        )
        if held:
            with pytest.raises(errors.LockError):
                self.manager.discard(level, name)
            return
        self.manager.discard(level, name)
        self.model.vanish(level, name)
        self.model.settle()

    # comparison --------------------------------------------------------------------------

    def check(self) -> None:
        for asked in list(self.open):
            outcome = asked.wish.outcome
            assert asked.request.state.value == outcome
            decided = asked.waited and outcome in ("granted", "failed")
            assert asked.told == ([asked.request.state] if decided else [])
            assert (asked.request.error is not None) == (outcome == "failed")
            if outcome != "waiting":
                self.open.remove(asked)
        for owner in OWNERS:
            found = self.manager.find_waiting(owner)
            wish = self.model.wish_of(owner)
            assert (found is None) == (wish is None)
            for level in range(len(LABELS)):
                names = self.model.names_held(owner, level)
                assert self.manager.list_held(owner, level) == names
        rows = [(v.name, v.mode, set(v.owners), list(v.pending)) for v in self.manager.snapshot()]
        assert rows == self.model.rows()

    def check_exclusion(self) -> None:
        """Stated without the model: who may change something is alone with it."""
        for level, names in enumerate(self.model.exists):
            for name in names:
                may = [o for o in OWNERS if self.manager.holds(o, level, name)]
                change = [o for o in may if self.manager.holds(o, level, name, shared=False)]
                assert not change or may == change == [may[0]]

    def drain(self) -> None:
        """Owners that do not wait end one after the other; then nobody may be left waiting."""
        for _round in OWNERS:
            for owner in OWNERS:
                if self.manager.find_waiting(owner) is None:
                    self.release(owner)
                    self.check()
        assert not self.model.wishes
        assert all(self.manager.find_waiting(owner) is None for owner in OWNERS)


# the walks ---------------------------------------------------------------------------------

owners = st.sampled_from(OWNERS)
levels = st.integers(0, len(LABELS) - 1)
some_names = st.frozensets(st.sampled_from(NAMES), max_size=3)
names_or_all = st.one_of(st.none(), some_names)
priorities = st.integers(-20, 19)


@examples(
    40,
    stateful_step_count=100,
    database=None,
    suppress_health_check=list(HealthCheck),
)
class LockMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()

    @rule(owner=owners, level=levels, names=names_or_all, shared=st.booleans(), priority=priorities)
    def request(self, owner, level, names, shared, priority):
        exists = self.pair.model.exists[level]
        known = names if names is None else names & exists
        self.pair.request(owner, level, known, shared=shared, priority=priority)

    @rule(owner=owners, level=levels, names=names_or_all, shared=st.booleans(), new=some_names)
    def request_strange(self, owner, level, names, shared, new):
        self.pair.request(owner, level, names, shared=shared, new=new)

    @rule(owner=owners, level=levels, names=some_names, new=some_names, priority=priorities)
    def request_new(self, owner, level, names, new, priority):
        exists = self.pair.model.exists[level]
        self.pair.request(
            owner, level, names & exists, shared=False, new=new - exists, priority=priority
        )

    @rule(owner=owners, level=levels, names=names_or_all, shared=st.booleans())
    def take_free(self, owner, level, names, shared):
        self.pair.take_free(owner, level, names, shared=shared)

    @rule(owner=owners)
    def cancel(self, owner):
        self.pair.cancel(owner)

    @rule(owner=owners, priority=priorities)
    def set_priority(self, owner, priority):
        self.pair.set_priority(owner, priority)

    @rule(seconds=st.floats(0, 25))
    def age(self, seconds):
        self.pair.age(seconds)

    @rule(owner=owners)
    def release(self, owner):
        self.pair.release(owner)

    @rule(owner=owners, level=levels, names=names_or_all)
    def release_level(self, owner, level, names):
        self.pair.release_level(owner, level, names)

    @rule(owner=owners, level=levels)
    def downgrade(self, owner, level):
        self.pair.downgrade(owner, level)

    @rule(owner=owners, level=levels, names=some_names)
    def keep(self, owner, level, names):
        self.pair.keep(owner, level, names)

    @rule(owner=owners, level=levels, name=st.sampled_from(NAMES))
    def remove(self, owner, level, name):
        self.pair.remove(owner, level, name)

    @rule(level=levels, name=st.sampled_from(NAMES))
    def discard(self, level, name):
        self.pair.discard(level, name)

    @rule(level=levels, names=some_names)
    def create(self, level, names):
        self.pair.create(level, set(names))

    @invariant()
    def check_agreement(self):
        self.pair.check()
        self.pair.check_exclusion()

    def teardown(self):
        self.pair.drain()


TestLockMachine = LockMachine.TestCase


def _step(pair: Pair, rng: random.Random) -> None:
    """One step, with many requests and few removals, so that queues grow."""
    owner, level = rng.choice(OWNERS), rng.randrange(len(LABELS))
    exists = pair.model.exists[level]
    names: Any = frozenset(rng.sample(sorted(exists), min(len(exists), rng.randint(0, 3))))
    every_or_some = None if rng.random() < 0.15 else names
    shared = rng.random() < 0.5
    missing = frozenset(NAMES) - exists
    new = frozenset(rng.sample(sorted(missing), min(len(missing), rng.randint(0, 1))))
    actions = {
        "request": 40,
        "new": 4,
        "free": 4,
        "cancel": 6,
        "priority": 6,
        "age": 3,
        "release": 20,
        "part": 6,
        "downgrade": 4,
        "keep": 3,
        "remove": 3,
        "discard": 2,
        "create": 3,
    }
    match rng.choices(list(actions), list(actions.values()))[0]:
        case "request":
            pair.request(owner, level, every_or_some, shared=shared, priority=rng.randint(-3, 3))
        case "new":
            pair.request(owner, level, names, shared=False, new=new)
        case "free":
            pair.take_free(owner, level, every_or_some, shared=shared)
        case "cancel":
            pair.cancel(owner)
        case "priority":
            pair.set_priority(owner, rng.randint(-5, 5))
        case "age":
            pair.age(rng.random() * 15)
        case "release":
            pair.release(owner)
        case "part":
            pair.release_level(owner, level, every_or_some)
        case "downgrade":
            pair.downgrade(owner, level)
        case "keep":
            pair.keep(owner, level, frozenset(NAMES))
        case "remove":
            pair.remove(owner, level, rng.choice(NAMES))
        case "discard":
            pair.discard(level, rng.choice(NAMES))
        case "create":
            pair.create(level, set(names) | {rng.choice(NAMES)})


@pytest.mark.parametrize("seed", range(2 * TIMES))
def test_a_long_walk(seed):
    rng = random.Random(seed)
    pair = Pair()
    waited = 0
    for number in range(4000):
        _step(pair, rng)
        pair.check()
        waited += len(pair.open) > 1
        if number % 20 == 0:
            pair.check_exclusion()
        if number % 500 == 499:
            pair.drain()
    pair.drain()
    assert waited > 400  # the walk was about waiting, not about refusals

"""Free capacity: put instances of one size until none fits, or of smaller and smaller sizes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ganeti.base.json_types import JsonObject
from ganeti.placement import survival
from ganeti.placement.facts import Instance, Mirror, Policy, Spec
from ganeti.placement.layout import Layout
from ganeti.placement.seats import Failure, Seats, ranking
from ganeti.placement.use import Bools

#: How much smaller the next size is, by what was missing.
_STEPS = {
    Failure.MEMORY: ("memory", 64),
    Failure.N1: ("memory", 64),
    Failure.DISK: ("disk", 256),
    Failure.CPU: ("vcpus", 1),
    Failure.SPINDLES: ("spindles", 1),
}
#: Places are prepared for so many instances at once.
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an allocation."""

    #: ask that the instances of every node have somewhere to go when it fails
    survive: bool = True
    #: nodes that cannot fail now do not count
    accept_errors: bool = False
    #: a group with such a node takes nothing, the others do; otherwise no group takes anything
    independent: bool = False
    #: groups take only what their policies allow
    policy: bool = False
    vcpu_ratio: float | None = None
    disk_ratio: float = 0.0
    limit: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """An instance that was put, with its nodes."""

    item: Instance
    primary: int
    secondary: int
    #: of the cluster afterwards
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """The placed instances, the layout with them, and what was missing in the end."""

    placed: list[Placed]
    layout: Layout
    failures: Counter[str]
    #: sizes in the order they were tried, with how many were put
    sizes: list[tuple[Instance, int]]

    @property
    def worst_failure(self) -> Failure:
        """The resource that is missing at most places in the end."""
        if not self.failures:
            return Failure.INTERNAL
        return max(Failure, key=lambda one: self.failures[one])


def model_instance(spec: Spec, template: str, name: str = "new") -> Instance:
    """A running instance of a size, without a place."""
    return Instance(
        name=name,
        memory=spec.memory,
        disk=spec.disk if template != "diskless" else 0,
        vcpus=spec.cpus,
        status="running",
        auto_balance=True,
        primary="",
        secondary="",
        template=template,
        spindle_use=spec.spindles,
        spindles=spec.spindles,
    )


class Filler:
    """Puts one instance after the other into a layout."""

    State = tuple[Layout, list[int], Instance | None, int, int]

    def __init__(self, layout: Layout, rules: Rules, within: Bools | None = None) -> None:
        self.layout = layout
        self.rules = rules
        self.within = within
        self.placed: list[Placed] = []
        self._free: list[int] = []
        self._size: Instance | None = None
        self._count = 1
        #: nodes that cannot fail already; they make the question pointless, or do not count
        self.weak = frozenset(survival.list_failing(layout)) if rules.survive else frozenset()
        patient = rules.accept_errors or rules.independent
        self._suspect: int | None = None
        self._survive = rules.survive and (patient or not self.weak)

    @property
    def state(self) -> State:
        """The instances placed so far; assign an earlier state to remove those placed since."""
        return self.layout, list(self._free), self._size, self._count, len(self.placed)

    @state.setter
    def state(self, value: State) -> None:
        self.layout, free, self._size, self._count, count = value
        self._free = list(free)
        del self.placed[count:]

    def failures_of(self, item: Instance) -> Counter[str]:
        """Count the failures of the places for an instance; empty when one place has none."""
        before = self.state
        _, failures = self.try_one(item)
        self.state = before
        return failures

    def try_one(self, item: Instance) -> tuple[Placed | None, Counter[str]]:
        """Put one instance, or say what the places lack."""
        refused = self._find_refused(item)
        seats, allowed = self._find_seats(item, refused)
        for done, after in self._survivors(seats, allowed):
            self.layout = after
            self._free.pop()
            self.placed.append(done)
            return done, Counter()
        return None, self._lacks(seats, allowed) + self._policy_lacks(item, refused)

    def find_places(self, item: Instance) -> list[Placed]:
        """The best place of each primary node that has one, the best of all first; puts nothing."""
        before = self.state
        found: dict[int, Placed] = {}
        for done, _after in self._survivors(*self._find_seats(item, self._find_refused(item))):
            found.setdefault(done.primary, done)
        self.state = before
        return list(found.values())

    def _find_seats(self, item: Instance, refused: dict[int, Failure]) -> tuple[Seats, Bools]:
        """All places of an instance, and which of them lack nothing."""
        index = self._take_index(item)
        seats = Seats(
            self.layout,
            item,
            index,
            within=self._find_open_nodes(refused),
            vcpu_ratio=self.rules.vcpu_ratio,
            disk_ratio=self.rules.disk_ratio,
        )
        return seats, seats.allowed() if len(seats.nodes) else np.zeros((0, 0), dtype=bool)

    def _survivors(self, seats: Seats, allowed: Bools) -> Iterator[tuple[Placed, Layout]]:
        """Places after which the loss of any node is survived, best first, and the layouts then."""
        if not allowed.any():
            return
        scores = np.where(allowed, seats.scores(), np.inf)
        for i, j in ranking(scores):
            primary, secondary = int(seats.rows[i]), int(seats.s[0, j])
            after = seats.layout.move(seats.index, primary, secondary)
            if not self._survive or self._survives(after, primary):
                yield Placed(seats.item, primary, secondary, float(scores[i, j])), after

    def _find_refused(self, item: Instance) -> dict[int, Failure]:
        """Groups whose policy does not allow an instance, by their number on the board."""
        if not self.rules.policy:
            return {}
        board = self.layout.board
        found = {}
        for node in np.unique(board.group_of, return_index=True)[1].tolist():
            failure = policy_failure(board.policies[node], item)
            if failure is not None:
                found[int(board.group_of[node])] = failure
        return found

    def _find_open_nodes(self, refused: dict[int, Failure]) -> Bools | None:
        """The nodes that may be chosen."""
        if not refused:
            return self.within
        kept: Bools = ~np.isin(self.layout.board.group_of, list(refused))
        return kept if self.within is None else kept & self.within

    def _policy_lacks(self, item: Instance, refused: dict[int, Failure]) -> Counter[str]:
        """How many places policies rule out."""
        board = self.layout.board
        able = board.online if self.within is None else board.online & self.within
        total: Counter[str] = Counter()
        for group, failure in refused.items():
            count = int((able & (board.group_of == group)).sum())
            pairs = item.mirror is Mirror.SECONDARY
            total[failure] += count * (count - 1) if pairs else count
        return +total

    def _survives(self, after: Layout, primary: int) -> bool:
        board = after.board
        asked: Bools = board.online & (board.group_of == board.group_of[primary])
        asked[list(self.weak)] = False
        # What did not survive at the last place will most often not survive at this one.
        last = self._suspect
        if last is not None and asked[last] and not survival.survives(after, last):
            return False
        self._suspect = survival.find_failing(after, asked)
        return self._suspect is None

    def _take_index(self, item: Instance) -> int:
        same = item == self._size
        if not same or not self._free:
            count = min(_BATCH, 2 * self._count) if same else 1
            keep = len(self.layout.board.instances) - len(self._free)
            board = self.layout.board.add_instances([item] * count, keep)
            self.layout = self.layout.transfer(board, keep)
            self._size, self._count = item, count
            self._free = list(range(keep + count - 1, keep - 1, -1))
        return self._free[-1]

    def _lacks(self, seats: Seats, allowed: Bools) -> Counter[str]:
        """How many places lack what; those that only the failure of a node rules out are N1."""
        if not len(seats.nodes):
            return Counter()
        total = seats.counts()
        if allowed.any():
            total[Failure.N1] += int(allowed.sum())
        return total


def policy_failure(policy: Policy, item: Instance) -> Failure | None:
    """Return the failure of an instance that is outside the policy of a group; else None."""
    if item.template not in policy.templates:
        return Failure.DISK
    have = (
        ("memory", item.memory, Failure.MEMORY),
        ("cpus", item.vcpus, Failure.CPU),
        ("disk", item.disk, Failure.DISK),
        ("spindles", item.spindle_use, Failure.SPINDLES),
    )
    first: Failure | None = None
    for least, most in policy.bounds:
        wrong = [
            failure
            for name, value, failure in have
            if not getattr(least, name) <= value <= getattr(most, name)
            and not (name == "disk" and item.template == "diskless")
        ]
        if not wrong:
            return None
        first = first or wrong[0]
    return first


def _nodes_that_forbid(filler: Filler, item: Instance, rules: Rules) -> Bools:
    """Nodes whose loss the cluster does not survive even now; they close their group."""
    board = filler.layout.board
    found: Bools = filler.layout.fails & board.online
    if rules.survive and (rules.independent or item.mirror is not Mirror.SECONDARY):
        found = found.copy()
        found[list(filler.weak)] = True
    return found


def _start(layout: Layout, item: Instance, rules: Rules, within: Bools | None) -> Filler:
    """A filler for the groups that survive the loss of any node.

    One bad group closes all, unless groups are independent; ``accept_errors`` opens all.
    """
    # What is open is filled without making more nodes unable to fail.
    filler = Filler(layout, dataclasses.replace(rules, independent=True), within)
    if rules.accept_errors:
        return filler
    unhappy = _nodes_that_forbid(filler, item, rules)
    if not unhappy.any():
        return filler
    board = layout.board
    closed: Bools = np.ones(len(board.nodes), dtype=bool)
    if rules.independent:
        closed = np.isin(board.group_of, board.group_of[unhappy])
    filler.within = ~closed if within is None else within & ~closed
    return filler


def _count_none_left(filler: Filler) -> Counter[str]:
    """Count all nodes as failing when no group is open; else nothing."""
    open_nodes = filler.layout.board.online if filler.within is None else filler.within
    return Counter() if open_nodes.any() else Counter({str(Failure.N1): len(open_nodes)})


def fill(layout: Layout, item: Instance, rules: Rules, within: Bools | None = None) -> Filling:
    """Put instances of one size until none fits or the limit is reached."""
    filler = _start(layout, item, rules, within)
    failures = _count_none_left(filler)
    while not failures and (rules.limit < 0 or len(filler.placed) < rules.limit):
        done, failures = filler.try_one(item)
        if done is None:
            break
    return Filling(filler.placed, filler.layout, failures, [(item, len(filler.placed))])


def fill_tiered(
    layout: Layout, item: Instance, smallest: Spec, rules: Rules, within: Bools | None = None
) -> Filling:
    """Put instances of one size until none fits, then of the next smaller one, and so on.

    The size shrinks in what most places lack.
    """
    filler = _start(layout, item, rules, within)
    sizes: list[tuple[Instance, int]] = []
    failures = _count_none_left(filler)
    size: Instance | None = None if failures else item
    while size is not None:
        before = len(filler.placed)
        while rules.limit < 0 or len(filler.placed) < rules.limit:
            done, failures = filler.try_one(size)
            if done is None:
                break
        count = len(filler.placed) - before
        if count:
            sizes.append((size, count))
        if 0 <= rules.limit <= len(filler.placed):
            break
        size = _find_next_size(filler, size, failures, smallest)
    return Filling(filler.placed, filler.layout, failures, sizes)


def _find_next_size(
    filler: Filler, size: Instance, failures: Counter[str], smallest: Spec
) -> Instance | None:
    """The largest smaller size that something else than before ends, found by halving."""
    for name, places in failures.most_common():
        field, amount, count = _ladder(size, Failure(name), smallest)

        def rung(number: int, field: str = field, amount: int = amount) -> Instance:
            change: JsonObject = {field: getattr(size, field) - (number + 1) * amount}
            return dataclasses.replace(size, **change)

        if not count or not _helps(filler, rung(count - 1), name, places):
            continue
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            if _helps(filler, rung(middle), name, places):
                high = middle
            else:
                low = middle + 1
        return rung(low)
    return None


def _helps(filler: Filler, size: Instance, name: str, places: int) -> bool:
    """Whether an instance of a size fits, or a reason refuses it less often than another one does.

    And less often than at ``places`` places, where it refused the larger size.
    """
    failures = filler.failures_of(size)
    return failures[name] < min(places, max(failures.values(), default=1))


def _ladder(item: Instance, failure: Failure, smallest: Spec) -> tuple[str, int, int]:
    """Which member shrinks, by how much at a time, and how often it can."""
    name, amount = _STEPS.get(failure, ("memory", 0))
    least = {
        "memory": smallest.memory,
        "disk": smallest.disk,
        "vcpus": smallest.cpus,
        "spindles": smallest.spindles,
    }[name]
    room = (getattr(item, name) or 0) - max(least, 0)
    return name, amount, max(0, room // amount) if amount else 0

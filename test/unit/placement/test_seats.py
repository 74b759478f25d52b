"""Places of an instance that has none, compared with what the layout is like when it goes there."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

import numpy as np
import placement_rules
import pytest

from ganeti.placement import tags
from ganeti.placement.board import Board
from ganeti.placement.facts import BUILTIN_POLICY, LOCAL, TURNING, Cluster, Group, Instance, Node
from ganeti.placement.layout import Layout
from ganeti.placement.score import score
from ganeti.placement.seats import Seats, ranking
from ganeti.placement.use import NOWHERE, Use

CLUSTERS = 40


def layout(made: Cluster) -> Layout:
    return Layout.from_board(Board(made, made.groups[0]))


def bare_layouts(part: int) -> Iterator[tuple[Layout, Instance, int]]:
    """Layouts in which one instance has no place."""
    for seed in range(part, CLUSTERS, 2):
        of = layout(placement_rules.rich(seed))
        for index, item in enumerate(of.board.instances):
            yield of.move(index, NOWHERE, NOWHERE), item, index


def places(seats: Seats) -> Iterator[tuple[int, int, int, int]]:
    """Row and column of each place, with its primary and secondary node."""
    for row, primary in enumerate(seats.rows.tolist()):
        for column, secondary in enumerate(seats.nodes.tolist() if seats.pairs else [NOWHERE]):
            if primary != secondary:
                yield row, column, primary, secondary


@pytest.mark.parametrize("soft", [True, False])
def test_scores_are_those_that_the_layout_has_then(soft: bool) -> None:
    counted = Counter[bool]()
    for bare, item, index in bare_layouts(int(soft)):
        seats = Seats(bare, item, index, soft=soft)
        fits = seats.allowed()
        if not fits.any():
            assert seats.find_best() is None
            assert seats.find_best_single() is None
            continue
        scores = np.broadcast_to(seats.scores(), fits.shape)
        exact: dict[tuple[int, int], float] = {}
        for row, column, primary, secondary in places(seats):
            if fits[row, column]:
                exact[primary, secondary] = score(bare.move(index, primary, secondary))
                assert scores[row, column] == pytest.approx(exact[primary, secondary], abs=1e-6)
                counted[seats.pairs] += 1
        found = seats.find_best()
        assert found is not None
        assert found[2] == pytest.approx(min(exact.values()), abs=1e-6)
        assert exact[found[:2]] == pytest.approx(found[2], abs=1e-6)
        assert seats.find_best_single() == found[0]
    assert min(counted[True], counted[False]) > 20


class Rules:
    """What is missing at a place, told node by node; of several the first one is told."""

    def __init__(self, bare: Layout, item: Instance, index: int, **limits: float) -> None:
        self.bare, self.board, self.item, self.index = bare, bare.board, item, index
        self.vcpu_ratio = limits.get("vcpu_ratio")
        self.disk_ratio = limits.get("disk_ratio", 0.0)

    def explain(self, primary: int, secondary: int, *, soft: bool) -> str:
        found = self._primary(primary, soft=soft)
        if secondary == NOWHERE:
            return found
        found = found or self._storage(secondary, soft=soft)
        if soft and not found and self._fails_newly(primary, secondary, secondary):
            return "FailMem"
        return found

    def _primary(self, node: int, *, soft: bool) -> str:
        bare, item, board = self.bare, self.item, self.board
        left = float(bare.memory_left[node]) - item.memory
        if (left <= 0 and not item.forthcoming) or bare.memory_left_all[node] - item.memory <= 0:
            return "FailMem"
        found = self._storage(node, soft=soft)
        if found or not soft:
            return found
        if self._fails_newly(node, NOWHERE, node):
            return "FailMem"
        facts = board.nodes[node]
        ratio = self.vcpu_ratio or board.policies[node].vcpu_ratio
        used = bare.used[Use.CPU_ALL][node] + facts.node_cpus + item.vcpus
        if used > facts.cpus * ratio:
            return "FailCPU"
        mine = tags.select_kinds(item.tags, ["service"])
        others = (
            tags.select_kinds(other.tags, ["service"])
            for number, other in enumerate(board.instances)
            if bare.primary[number] == node
        )
        return "FailTags" if any(mine & other for other in others) else ""

    def _storage(self, node: int, *, soft: bool) -> str:
        bare, item, board = self.bare, self.item, self.board
        disk = item.disk if item.template in LOCAL else 0
        if not disk:
            return ""
        left = board.disk_room[node] - bare.used[Use.DISK_ALL][node] - disk
        if left <= 0 or left < self.disk_ratio * board.nodes[node].disk:
            return "FailDisk"
        turning = item.template in TURNING
        if board.nodes[node].exclusive_storage:
            own = (item.spindles or 0) if turning else 0
            room = board.own_spindle_room[node] - bare.used[Use.OWN_SPINDLES_ALL][node]
            return "FailSpindles" if room < own else ""
        uses = bare.used[Use.SPINDLES_ALL][node] + (item.spindle_use if turning else 0)
        return "FailDisk" if soft and uses > board.spindle_limit[node] else ""

    def _fails_newly(self, primary: int, secondary: int, node: int) -> bool:
        after = self.bare.move(self.index, primary, secondary)
        return bool(after.fails[node] and not self.bare.fails[node])


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize(
    "limits", [{}, {"vcpu_ratio": 1.0}, {"disk_ratio": 0.25}], ids=["usual", "vcpus", "disk"]
)
def test_what_is_missing_at_each_place(soft: bool, limits: dict[str, float]) -> None:
    told = Counter[str]()
    for bare, item, index in bare_layouts(0):
        seats = Seats(bare, item, index, soft=soft, **limits)  # type: ignore[arg-type]
        rules = Rules(bare, item, index, **limits)
        fits = seats.allowed()
        expected = Counter[str]()
        for row, column, primary, secondary in places(seats):
            missing = rules.explain(primary, secondary, soft=soft)
            assert bool(fits[row, column]) is (not missing), (item, primary, secondary, missing)
            expected[missing] += 1
        told += expected
        del expected[""]
        assert seats.counts() == expected
    assert len(told) > (4 if soft else 2)


def test_nodes_can_be_left_out_and_the_primary_be_given() -> None:
    bare, item, index = next(
        found for found in bare_layouts(0) if int(found[0].board.online.sum()) > 3
    )
    online = np.flatnonzero(bare.board.online).tolist()
    assert Seats(bare, item, index).nodes.tolist() == online
    assert Seats(bare, item, index, avoid=online[0]).nodes.tolist() == online[1:]
    within = np.zeros(len(bare.board.nodes), dtype=bool)
    within[online[:2]] = True
    assert Seats(bare, item, index, within=within).nodes.tolist() == online[:2]
    given = Seats(bare, item, index, primary=online[1])
    assert (given.rows.tolist(), given.nodes.tolist()) == ([online[1]], online)


def test_places_are_ranked_by_score_and_of_equal_ones_the_last_comes_first() -> None:
    scores = np.array([[1.0, np.inf, 0.5], [0.5, 0.5 + 1e-12, np.inf]])
    assert list(ranking(scores)) == [(1, 1), (1, 0), (0, 2), (0, 0)]
    assert list(ranking(np.full((2, 2), np.inf))) == []


def test_soft_rules_hold_unless_they_are_given_up() -> None:
    for bare, item, index in bare_layouts(0):
        assert (
            Seats(bare, item, index).allowed() == Seats(bare, item, index, soft=True).allowed()
        ).all()


@pytest.mark.parametrize(
    ("memory", "free", "forthcoming", "fits"),
    [
        (1023, 1500, False, True),
        (1024, 1500, False, False),  # the node has as much beside its own
        (1024, 1500, True, True),  # a reservation counts with what is free now
        (1499, 1500, True, True),
        (1500, 1500, True, False),
    ],
)
def test_an_instance_needs_less_memory_than_there_is(
    memory: int, free: int, forthcoming: bool, fits: bool
) -> None:
    node = Node("a", "g1", 2048, 1024, free, 100_000, 90_000, 8)
    status = "ADMIN_down" if forthcoming else "running"
    item = Instance("i", memory, 1024, 1, status, True, "a", "", "plain", forthcoming=forthcoming)
    made = Cluster((Group("one", "g1"),), (node,), (item,), policy=BUILTIN_POLICY)
    empty = Board(dataclasses.replace(made, instances=()), made.groups[0])
    bare = Layout.from_board(empty.add_instances([item]))
    assert bool(Seats(bare, item, 0).allowed().any()) is fits


def test_without_a_node_that_is_online_there_is_no_place() -> None:
    node = Node("a", "g1", 2048, 1024, 1500, 100_000, 90_000, 8, offline=True)
    item = Instance("i", 128, 1024, 1, "running", True, "a", "", "plain")
    made = Cluster((Group("one", "g1"),), (node,), (item,), policy=BUILTIN_POLICY)
    bare = layout(made).move(0, NOWHERE, NOWHERE)
    assert Seats(bare, item, 0).find_best() is None
    assert Seats(bare, item, 0, primary=0).find_best() is None

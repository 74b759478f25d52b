"""Which moves are allowed and what they lead to, compared with the rules move by move."""

from __future__ import annotations

import dataclasses
import itertools

import placement_rules
import pytest
from clusters import cluster

from ganeti.placement.balance import find_best
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Instance
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits, Move, describe, places_after
from ganeti.placement.moves import Judge
from ganeti.placement.score import score
from ganeti.placement.use import NOWHERE

CLUSTERS = 48
LIMITS = [
    Limits(),
    Limits(ignore_soft=True),
    Limits(vcpu_ratio=1.0),
    Limits(disk_ratio=0.25),
    Limits(evacuate=True),
    Limits(disk_moves=False),
    Limits(instance_moves=False),
    Limits(restricted_migration=True, closed=frozenset({"node1"})),
    Limits(instances=frozenset({"inst1", "inst2"}), frozen=frozenset({"inst2", "inst3"})),
]


def layout(made: Cluster) -> Layout:
    return Layout.from_board(Board(made, made.groups[0]))


def judged(of: Layout, limits: Limits) -> dict[tuple[Kind, int, int], float]:
    """The allowed moves by kind, instance and target, with the score that is foretold."""
    judge = Judge(of, limits)
    found = {}
    for kind, rows in judge.movable():
        scores = judge.scores(kind, rows)
        for i, j in zip(*(scores < float("inf")).nonzero()):
            target = NOWHERE if kind is Kind.TO_SECONDARY else int(judge.targets[j])
            found[kind, int(rows[i]), target] = float(scores[i, j])
    return found


@pytest.mark.parametrize("part", range(2))
def test_moves_are_allowed_and_foretold_as_the_rules_say(part: int) -> None:
    kinds: set[Kind] = set()
    for seed in range(part, CLUSTERS, 2):
        of = layout(placement_rules.rich(seed))
        for limits in (LIMITS[0], LIMITS[1 + seed % 4], LIMITS[5 + seed % 4]):
            found = judged(of, limits)
            assert set(found) == set(placement_rules.moves(of, limits)), (seed, limits)
            for (kind, number, target), foretold in found.items():
                exact = score(of.move(number, *places_after(of, kind, number, target)))
                assert foretold == pytest.approx(exact, abs=1e-6), (seed, limits, kind)
                kinds.add(kind)
    assert kinds == set(Kind)


def test_places_after_a_move() -> None:
    of = layout(placement_rules.rich(1))
    number = next(i for i, item in enumerate(of.board.instances) if item.template == "drbd")
    where = {"p": of.primary[number], "s": of.secondary[number], "t": 99, "-": NOWHERE}
    for kind, after in placement_rules.AFTER.items():
        assert places_after(of, kind, number, 99) == tuple(where[role] for role in after)


def test_moves_are_told_in_the_short_form_of_the_balancer() -> None:
    board = Board(cluster(1, 3, 0))
    told = [describe(board, Move(0, kind, 2, 0, 1, 0.0)) for kind in list(Kind)[1:]]
    assert told == ["r:node3", "f r:node3", "r:node3 f", "f r:node3 f", "fa:node3"]
    assert describe(board, Move(0, Kind.TO_SECONDARY, NOWHERE, 0, 1, 0.0)) == "f"


def test_the_best_move_has_the_best_score_of_all() -> None:
    moved = 0
    for seed in range(16):
        of = layout(placement_rules.rich(seed))
        found = find_best(of, Limits())
        scores = [
            score(of.move(number, *places_after(of, kind, number, target)))
            for kind, number, target in placement_rules.moves(of, Limits())
        ]
        if found is None:
            assert scores == []
            continue
        moved += 1
        after = of.move(found.instance, found.primary, found.secondary)
        assert found.score == pytest.approx(min(scores), abs=1e-9)
        assert found.score == score(after)
        assert (found.primary, found.secondary) == places_after(
            of, found.kind, found.instance, found.target
        )
    assert moved > 8


def alike(*numbers: int) -> Cluster:
    """Instances that are all the same, on node1 with the copy on node2; node3 is empty."""
    items = tuple(
        Instance(
            name=f"inst{number}",
            memory=1024,
            disk=1024,
            vcpus=1,
            status="running",
            auto_balance=True,
            primary="node1",
            secondary="node2",
            template="drbd",
        )
        for number in numbers
    )
    return dataclasses.replace(cluster(1, 3, 0), instances=items)


def test_of_equal_moves_that_of_the_first_instance_by_name_is_chosen() -> None:
    of = layout(alike(10, 9, 30))
    found = find_best(of, Limits())
    assert found is not None
    assert of.board.instances[found.instance].name == "inst9"
    assert of.board.nodes[found.target].name == "node3"


def test_of_equal_targets_the_first_by_name_is_chosen() -> None:
    made = alike(1, 2)
    more = tuple(dataclasses.replace(made.nodes[2], name=f"node{number}") for number in (20, 10))
    of = layout(dataclasses.replace(made, nodes=(*more, *made.nodes)))
    found = find_best(of, Limits())
    assert found is not None
    assert (of.board.instances[found.instance].name, found.target) == ("inst1", 2)


def test_where_nothing_may_move_there_is_no_best_move() -> None:
    of = layout(alike(1, 2))
    assert find_best(of, Limits(frozen=frozenset({"inst1", "inst2"}))) is None
    assert find_best(of, Limits(disk_moves=False, instance_moves=False)) is None
    full = dataclasses.replace(
        alike(1),
        nodes=tuple(dataclasses.replace(node, disk=1, free_disk=0) for node in alike().nodes),
    )
    only = find_best(layout(full), Limits())
    assert only is not None
    assert only.kind is Kind.TO_SECONDARY
    assert find_best(layout(full), Limits(instance_moves=False)) is None


def test_a_judge_knows_the_score_before_the_move() -> None:
    for seed in itertools.islice(itertools.count(), 10):
        of = layout(placement_rules.rich(seed))
        assert Judge(of, Limits()).score == pytest.approx(score(of))

"""Plans keep N+1, tags and policy after every move, and predict the score exactly."""

import dataclasses
import itertools

import pytest
from clusters import cluster
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ganeti.placement.balance import Goal, Step, steps
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Kind, Limits, places_after
from ganeti.placement.moves import Judge
from ganeti.placement.score import score
from ganeti.placement.use import Use

CLUSTERS = st.builds(
    cluster,
    st.integers(0, 10_000),
    st.integers(2, 7),
    st.integers(1, 25),
    templates=st.sampled_from([("drbd",), ("ext",), ("drbd", "plain", "ext")]),
    tags=st.booleans(),
    reserved=st.sampled_from([0.0, 0.3]),
    spare=st.sampled_from([256, 8192]),
    memory=st.sampled_from([16384, 65536]),
)


def make_layout(made: Cluster) -> Layout:
    return Layout.from_board(Board(made, made.groups[0]))


def plan(made: Cluster) -> list[Step]:
    return list(itertools.islice(steps(make_layout(made), Limits(), Goal(min_gain=1e-4)), 15))


def conflicts(layout: Layout) -> int:
    return int((layout.apart_count > 1).sum())


@examples(20)
@given(CLUSTERS)
def test_no_step_breaks_what_held_before(made: Cluster) -> None:
    for step in plan(made):
        before, after = step.before, step.after
        board = after.board
        assert not (after.fails & ~before.fails).any()
        assert conflicts(after) <= conflicts(before)
        cpus = after.used[Use.CPU_ALL] + board.node_cpus
        grows = after.used[Use.CPU_ALL] > before.used[Use.CPU_ALL]
        assert not (grows & (cpus > board.cpu_limit)).any()
        more = after.used[Use.DISK_ALL] > before.used[Use.DISK_ALL]
        assert not (more & (after.used[Use.DISK_ALL] > board.disk_room)).any()
        assert step.move.primary != step.move.secondary


@examples(20)
@given(CLUSTERS)
def test_the_plan_gives_the_predicted_score(made: Cluster) -> None:
    done = plan(made)
    if not done:
        return
    last = done[-1].after
    fresh = Layout(last.board, last.primary, last.secondary)
    assert score(fresh) == pytest.approx(done[-1].move.score, abs=1e-9)
    assert [s.score_before for s in done[1:]] == [s.move.score for s in done[:-1]]
    assert all(step.gain > 0 for step in done)


@examples(15)
@given(CLUSTERS, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(made: Cluster, random_: object) -> None:
    nodes, items = list(made.nodes), list(made.instances)
    random_.shuffle(nodes)  # type: ignore[attr-defined]
    random_.shuffle(items)  # type: ignore[attr-defined]
    other = dataclasses.replace(made, nodes=tuple(nodes), instances=tuple(items))
    assert [step.move for step in plan(made)] == [step.move for step in plan(other)]


@examples(15)
@given(CLUSTERS)
def test_judging_all_moves_at_once_is_judging_each(made: Cluster) -> None:
    layout = make_layout(made)
    judge = Judge(layout, Limits(ignore_soft=True))
    for kind, rows in judge.movable():
        scores = judge.scores(kind, rows)
        for i, j in itertools.islice(zip(*(scores < float("inf")).nonzero()), 0, None, 7):
            target = -1 if kind is Kind.TO_SECONDARY else int(judge.targets[j])
            primary, secondary = places_after(layout, kind, int(rows[i]), target)
            exact = score(layout.move(int(rows[i]), primary, secondary))
            assert scores[i, j] == pytest.approx(exact, abs=1e-6)

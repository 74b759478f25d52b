"""Places of an instance that has none: their scores are those that the layout then has."""

from __future__ import annotations

import numpy as np
import placement_rules
import pytest

from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster
from ganeti.placement.layout import Layout
from ganeti.placement.score import score
from ganeti.placement.seats import Seats
from ganeti.placement.use import NOWHERE

CLUSTERS = 40


def layout(made: Cluster) -> Layout:
    return Layout.from_board(Board(made, made.groups[0]))


@pytest.mark.parametrize("part", range(2))
def test_scores_are_those_that_the_layout_has_then(part: int) -> None:
    mirrored = alone = 0
    for seed in range(part, CLUSTERS, 2):
        of = layout(placement_rules.rich(seed))
        for index, item in enumerate(of.board.instances):
            bare = of.move(index, NOWHERE, NOWHERE)
            seats = Seats(bare, item, index)
            fits = seats.allowed()
            if not fits.any():
                assert seats.find_best() is None
                continue
            scores = np.broadcast_to(seats.scores(), fits.shape)
            for row, column in zip(*fits.nonzero()):
                primary = int(seats.rows[row])
                secondary = int(seats.nodes[column]) if seats.pairs else NOWHERE
                exact = score(bare.move(index, primary, secondary))
                assert scores[row, column] == pytest.approx(exact, abs=1e-6), (seed, item.name)
                mirrored += seats.pairs
                alone += not seats.pairs
    assert mirrored > 20
    assert alone > 20

"""How sizes shrink while a cluster is filled."""

from __future__ import annotations

from collections import Counter

import pytest
from clusters import cluster

from ganeti.placement import capacity
from ganeti.placement.board import Board
from ganeti.placement.capacity import Filler, Rules
from ganeti.placement.facts import Instance, Spec
from ganeti.placement.layout import Layout


@pytest.mark.parametrize("nodes", [2, 5])
def test_no_size_shrinks_by_steps_that_change_nothing(
    monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    """In the end the last node may take nothing, or it could not be replaced."""
    tries = 0
    failures_of = Filler.failures_of

    def count(self: Filler, item: Instance) -> Counter[str]:
        nonlocal tries
        tries += 1
        return failures_of(self, item)

    monkeypatch.setattr(Filler, "failures_of", count)
    facts = cluster(1, nodes=nodes, instances=0, memory=4096)
    layout = Layout.from_board(Board(facts, facts.groups[0]))
    largest = capacity.model_instance(Spec(8192, 2, 20480, 1, 1, 1), "ext")
    filled = capacity.fill_tiered(layout, largest, Spec(64, 1, 128, 1, 1, 1), Rules())
    assert sum(count for _item, count in filled.sizes) == nodes - 1
    assert tries < 40

"""A board that continues from an older one is the one that is made anew."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from clusters import cluster

from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Instance
from ganeti.placement.layout import Layout
from ganeti.placement.score import metrics
from ganeti.placement.use import Uses


def change(made: Cluster, seed: int) -> Cluster:
    """Some instances gone, some moved, some new; what nodes have free is different, too."""
    random_ = random.Random(seed)
    names = [node.name for node in made.nodes]
    items = [item for item in made.instances if random_.random() > 0.1]
    for i, item in enumerate(items):
        if random_.random() < 0.1:
            first, second = random_.sample(names, 2)
            second = second if item.secondary else ""
            items[i] = dataclasses.replace(item, primary=first, secondary=second, memory=768)
    for number in range(3):
        tags = (f"service:{random_.randrange(30)}", "rack:a")
        items.append(
            Instance(
                f"new{seed}-{number}", 512, 1024, 1, "running", True, names[0], "", "ext", tags
            )
        )
    nodes = tuple(
        dataclasses.replace(node, free_memory=node.free_memory - 100, free_disk=node.free_disk - 7)
        for node in made.nodes
    )
    return dataclasses.replace(made, nodes=nodes, instances=tuple(items))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("wishes", [(), ("htools:desiredlocation:rack",)])
def test_a_renewed_board_is_a_new_one(seed: int, wishes: tuple[str, ...]) -> None:
    made = cluster(seed, 6, 40, templates=("drbd", "ext"), tags=True, reserved=0.2)
    made = dataclasses.replace(made, tags=(*made.tags, *wishes))
    board = Board(made, made.groups[0])
    for step in range(3):
        made = change(made, seed * 10 + step)
        renewed = board.renew(made)
        assert renewed is not None
        fresh = Board(made, made.groups[0])
        assert renewed.instances == fresh.instances
        for name in ("memory_room", "disk_room"):
            assert np.array_equal(getattr(renewed, name), getattr(fresh, name)), name
        for part in dataclasses.fields(Uses):
            known, new = getattr(renewed.uses, part.name), getattr(fresh.uses, part.name)
            assert np.array_equal(known, new), part.name
        one, two = Layout.from_board(renewed), Layout.from_board(fresh)
        assert np.array_equal(one.primary, two.primary)
        assert np.array_equal(one.secondary, two.secondary)
        for name in ("used", "peers", "mirrored", "seats"):
            assert np.array_equal(getattr(one, name), getattr(two, name)), name
        assert metrics(one) == pytest.approx(metrics(two))
        for i, item in enumerate(renewed.instances):
            names = [
                {board_.exclusion_tags[tag] for tag in board_.apart[i].tolist() if tag >= 0}
                for board_ in (renewed, fresh)
            ]
            assert names[0] == names[1], item.name
        board = renewed


def test_a_board_with_other_nodes_or_rules_is_made_anew() -> None:
    made = cluster(1, 5, 20)
    board = Board(made, made.groups[0])
    assert board.renew(made) is not None
    for other in (
        dataclasses.replace(made, nodes=made.nodes[1:]),
        dataclasses.replace(made, tags=("htools:iextags:x",)),
        dataclasses.replace(made, policies=dict(made.policies)),
        dataclasses.replace(
            made, nodes=(dataclasses.replace(made.nodes[0], tags=("x",)), *made.nodes[1:])
        ),
        dataclasses.replace(made, groups=(dataclasses.replace(made.groups[0], networks=("n",)),)),
    ):
        assert board.renew(other) is None

"""The score of a cluster, compared with what is counted from its facts."""

from __future__ import annotations

import dataclasses

import placement_rules
import pytest
from clusters import cluster

from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Instance
from ganeti.placement.layout import Layout
from ganeti.placement.score import compute_bound, metrics, score, sum_counted

RICH = [placement_rules.rich(seed) for seed in range(60)]


def layout(made: Cluster) -> Layout:
    return Layout.from_board(Board(made, made.groups[0]))


def test_each_metric_is_what_the_facts_say() -> None:
    seen: set[str] = set()
    for made in RICH:
        expected = placement_rules.metrics(made)
        found = metrics(layout(made))
        assert found == pytest.approx(expected)
        assert list(found) == list(placement_rules.WEIGHTS)
        seen |= {name for name, value in expected.items() if value}
    assert seen == placement_rules.WEIGHTS.keys()


def test_the_score_weighs_the_metrics() -> None:
    parts = ("offline_all_cnt", "offline_pri_cnt", "pri_tags_score")
    parts += ("location_score", "location_exclusion_score")
    for made in RICH:
        weighed = {
            name: value * placement_rules.WEIGHTS[name]
            for name, value in placement_rules.metrics(made).items()
        }
        assert score(layout(made)) == pytest.approx(sum(weighed.values()))
        assert sum_counted(layout(made)) == pytest.approx(sum(weighed[name] for name in parts))


def test_a_cluster_without_nodes_or_instances_is_balanced() -> None:
    made = dataclasses.replace(RICH[0], nodes=(), instances=())
    assert score(layout(made)) == 0
    assert compute_bound(layout(made)) == 0
    alike = cluster(1, 3, 0)
    assert score(layout(alike)) == pytest.approx(0)


def test_memory_that_is_kept_is_in_every_score() -> None:
    """Three nodes of 64 GiB keep 3 GiB: spread evenly over two of them and over three."""
    made = cluster(1, 3, 0)
    items = tuple(
        Instance(
            name=f"inst{number}",
            memory=1024,
            disk=1024,
            vcpus=1,
            status="running",
            auto_balance=True,
            primary=f"node{number}",
            secondary=f"node{number % 3 + 1}",
            template="drbd",
        )
        for number in (1, 2, 3)
    )
    kept = layout(dataclasses.replace(made, instances=items))
    assert compute_bound(kept) == pytest.approx(0.25 * (3072 / 131072 - 3072 / 196608))
    larger = dataclasses.replace(made.nodes[0], memory=131072)
    uneven = dataclasses.replace(made, nodes=(larger, *made.nodes[1:]), instances=items)
    assert compute_bound(layout(uneven)) == pytest.approx(0.25 * (3072 / 131072 - 3072 / 262144))


def test_a_single_node_keeps_nothing() -> None:
    made = cluster(1, 2, 0)
    assert compute_bound(layout(dataclasses.replace(made, nodes=made.nodes[:1]))) == 0
    bare = tuple(dataclasses.replace(node, memory=0) for node in made.nodes)
    assert compute_bound(layout(dataclasses.replace(made, nodes=bare))) == 0

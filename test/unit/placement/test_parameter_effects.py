"""Parameters of nodes and policies that placement alone works with: each makes a difference."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from clusters import cluster

from ganeti.placement import headroom
from ganeti.placement.board import Board
from ganeti.placement.facts import Cluster, Policy, Spec
from ganeti.placement.layout import Layout
from ganeti.placement.score import metrics

#: name in Ganeti -> field of the facts, and another value
POLICY: dict[str, tuple[str, Any]] = {
    "std": ("standard", Spec(4096, 1, 10240, 1, 1, 1)),
    "spindle-ratio": ("spindle_ratio", 0.25),
    "vcpu-ratio": ("vcpu_ratio", 0.5),
}


def count(made: Cluster) -> int:
    """How many instances of the standard size fit."""
    [found] = headroom.examine(made, made.groups, headroom.Wanted("drbd"))
    return int(found.data()["normal"]["count"])


def with_policy(made: Cluster, **fields: Any) -> Cluster:
    policy: Policy = dataclasses.replace(made.policy, **fields)
    return dataclasses.replace(made, policy=policy, policies={"group1": policy})


@pytest.mark.parametrize("name", POLICY)
def test_policy_says_how_many_instances_fit(name: str) -> None:
    made = cluster(1, nodes=3, instances=0)
    key, value = POLICY[name]
    assert 0 < count(with_policy(made, **{key: value})) < count(made)


def test_spindle_count_of_a_node_bounds_what_turns_there() -> None:
    """With ``spindle-ratio``, as ``spindle_count`` is 1 unless somebody says more."""
    made = with_policy(cluster(1, nodes=3, instances=0), spindle_ratio=2.0)

    def having(spindles: int) -> int:
        nodes = tuple(dataclasses.replace(node, spindles=spindles) for node in made.nodes)
        return count(dataclasses.replace(made, nodes=nodes))

    assert having(2) < having(8)


def test_cpu_speed_makes_the_load_of_a_fast_node_smaller() -> None:
    made = cluster(3, nodes=3, instances=12)

    def spread(*speeds: float) -> float:
        nodes = tuple(dataclasses.replace(n, cpu_speed=s) for n, s in zip(made.nodes, speeds))
        changed = dataclasses.replace(made, nodes=nodes)
        return metrics(Layout.from_board(Board(changed, changed.groups[0])))["vcpu_ratio_cv"]

    assert spread(1.0, 1.0, 4.0) != pytest.approx(spread(1.0, 1.0, 1.0))
    assert spread(2.0, 2.0, 2.0) == pytest.approx(spread(1.0, 1.0, 1.0) / 2)

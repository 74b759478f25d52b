"""Which nodes become master candidates, and which stop being one."""

from __future__ import annotations

from typing import Any

import pytest

from ganeti.config import candidates
from ganeti.model import base
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.node import Node


def make(pool: int, *rest: dict[str, Any]) -> Config:
    """node1 is the master; the others have the given fields."""
    nodes = [
        Node(
            **{
                "uuid": f"n{number}",
                "name": f"node{number}",
                "primary_ip": "192.0.2.1",
                "secondary_ip": "192.0.2.1",
                "group": "g",
                **more,
            }
        )
        for number, more in enumerate([{"master_candidate": True}, *rest], 1)
    ]
    cluster = Cluster(
        uuid="c",
        master_node="n1",
        master_ip="192.0.2.9",
        master_netdev="lo",  # type: ignore[arg-type]
        master_netmask=32,
        cluster_name="c",
        candidate_pool_size=pool,
    )
    return Config(ConfigData(version=1, cluster=cluster, nodes={n.uuid: n for n in nodes}))


C: dict[str, Any] = {"master_candidate": True}


@pytest.mark.parametrize(
    ("pool", "rest", "without", "expected"),
    [
        (1, [{}, {}], (), []),
        (2, [{}, {}], (), ["n2"]),
        (10, [{}, {}], (), ["n2", "n3"]),
        (2, [C, {}], (), []),
        (2, [C, {}], ("n2",), ["n3"]),
        (3, [{"offline": True}, {"drained": True}, {"master_capable": False}, {}], (), ["n5"]),
        (1, [C, C], ("n3",), []),
    ],
)
def test_promotion(
    pool: int, rest: list[dict[str, Any]], without: tuple[str, ...], expected: list[str]
) -> None:
    found = candidates.choose_promotions(make(pool, *rest), without=without)
    assert [node.uuid for node in found] == expected


def test_names_are_taken_in_natural_order() -> None:
    config = make(2, *[{}] * 10)
    assert [node.name for node in candidates.choose_promotions(config)] == ["node2"]
    assert [n.name for n in candidates.choose_promotions(config, size=10)][-1] == "node10"


@pytest.mark.parametrize(("size", "expected"), [(1, ["n2", "n3"]), (2, ["n3"]), (3, []), (9, [])])
def test_demotion_never_takes_the_master(size: int, expected: list[str]) -> None:
    assert [n.uuid for n in candidates.choose_demotions(make(3, C, C), size=size)] == expected


def test_what_is_promoted_makes_the_pool_full() -> None:
    config = make(4, {}, {}, {}, {})
    promoted = [
        base.replace(n, master_candidate=True) for n in candidates.choose_promotions(config)
    ]
    after = config.apply([("nodes", n.uuid, n) for n in promoted], [], None, mtime=1.0)
    assert len(after.candidates()) == 4
    assert candidates.choose_promotions(after) == []

"""Which nodes may be down at the same time when a whole cluster is rebooted."""

from __future__ import annotations

import dataclasses

import pytest

from ganeti.placement import health
from ganeti.placement.board import Board
from ganeti.placement.facts import BUILTIN_POLICY, Cluster, Group, Instance, Node
from ganeti.placement.layout import Layout
from ganeti.placement.rolling import Rolling, find_conflicts, find_fixed, fits_elsewhere, groups


def cluster(
    nodes: str, *places: str, template: str = "drbd", memory: int = 1024, spare: int = 6000
) -> Cluster:
    """Nodes with names of one letter; each instance is written as primary and secondary node."""
    items = tuple(
        Instance(f"i{number}", memory, 1024, 1, "running", True, place[0], place[1:], template)
        for number, place in enumerate(places)
    )
    facts = tuple(Node(name, "g1", 8192, 1024, spare, 100_000, 90_000, 8) for name in nodes)
    return Cluster((Group("one", "g1"),), facts, items, policy=BUILTIN_POLICY)


def layout(made: Cluster) -> Layout:
    return Layout.from_board(Board(made, made.groups[0]))


def steps(made: Cluster, rolling: Rolling | None = None) -> list[str]:
    """The names of the nodes of each step."""
    of = layout(made)
    found = groups(of, list(range(len(made.nodes))), rolling or Rolling())
    return ["".join(of.board.nodes[n].name for n in members) for members in found]


def test_a_node_and_its_mirror_are_never_down_together() -> None:
    assert steps(cluster("abcd", "ab", "cd")) == ["ac", "bd"]
    assert steps(cluster("abcd")) == ["abcd"]


def test_nodes_with_the_same_mirror_wait_for_each_other() -> None:
    made = cluster("abc", "ac", "bc")
    assert steps(made) == ["a", "b", "c"]
    assert steps(made, Rolling(secondaries=True)) == ["ab", "c"]


def test_conflicts_are_mutual_and_no_node_is_in_its_own_way() -> None:
    found = find_conflicts(layout(cluster("abc", "ac", "bc", "ba")), Rolling())
    assert (found == found.T).all()
    assert not found.diagonal().any()
    assert found.sum() == 6


def test_a_ring_needs_as_many_steps_as_its_conflicts() -> None:
    made = cluster("abcd", "ab", "bc", "cd", "da")
    found = steps(made)
    assert sorted("".join(found)) == list("abcd")
    conflict = find_conflicts(layout(made), Rolling())
    for members in found:
        numbers = ["abcd".index(name) for name in members]
        assert not conflict[numbers][:, numbers].any()


def test_a_reservation_is_in_nobodys_way() -> None:
    made = cluster("ab", "ab")
    [item] = made.instances
    reserved = dataclasses.replace(
        made, instances=(dataclasses.replace(item, forthcoming=True, status="ADMIN_down"),)
    )
    assert steps(reserved) == ["ab"]


@pytest.mark.parametrize(("spare", "expected"), [(6000, ["abc", "d"]), (1500, ["ab", "cd"])])
def test_instances_on_shared_storage_must_fit_on_the_other_nodes(
    spare: int, expected: list[str]
) -> None:
    made = cluster("abcd", "a", "b", "c", template="ext", spare=spare)
    assert steps(made) == expected


def test_instances_that_cannot_move_are_made_again_or_go_down_with_their_node() -> None:
    made = cluster("ab", "a", "b", template="plain")
    assert find_fixed(layout(made)).tolist() == [True, True]
    assert find_fixed(layout(cluster("ab", "ab"))).tolist() == [False, False]
    assert steps(made) == ["a", "b"]
    assert steps(made, Rolling(ignore_fixed=True)) == ["ab"]


def test_disks_that_are_made_again_need_room() -> None:
    made = cluster("abc", "a", template="plain")
    small = [dataclasses.replace(n, free_disk=0 if n.name == "b" else 1000) for n in made.nodes]
    assert not fits_elsewhere(layout(dataclasses.replace(made, nodes=tuple(small))), [0], Rolling())
    large = [dataclasses.replace(n, free_disk=0 if n.name == "b" else 2000) for n in made.nodes]
    assert fits_elsewhere(layout(dataclasses.replace(made, nodes=tuple(large))), [0], Rolling())


def test_large_instances_choose_their_node_first() -> None:
    # 3 and 2 GiB fit on nodes with 3.5 and 2.5 GiB only in this order
    made = cluster("abc", "a", "a", template="ext")
    small, large = made.instances
    items = (dataclasses.replace(small, memory=2048), dataclasses.replace(large, memory=3072))
    nodes = [
        dataclasses.replace(n, free_memory={"a": 0, "b": 3584, "c": 2560}[n.name])
        for n in made.nodes
    ]
    made = dataclasses.replace(made, instances=items, nodes=tuple(nodes))
    assert fits_elsewhere(layout(made), [0], Rolling())
    assert not fits_elsewhere(layout(made), [0, 1], Rolling())


def test_a_node_that_is_down_is_named_with_what_it_runs_and_mirrors() -> None:
    made = cluster("abc", "ab", "ca", "bc")
    off = [dataclasses.replace(n, offline=n.name == "a") for n in made.nodes]
    made = dataclasses.replace(made, nodes=tuple(off))
    found = health.findings(layout(made))
    assert "a is offline, drained or does not answer, and has i0" in found
    assert "a cannot take over i1" in found
    counted = health.examine(layout(made), stuck=False)
    assert (counted.primaries_offline, counted.secondaries_offline) == (1, 1)
    assert counted.nodes_stuck is None
    assert counted.counts == (0, 0, 1, 1)


def test_instances_that_must_stay_apart_and_do_not() -> None:
    made = cluster("ab", "ab", "ab")
    made = dataclasses.replace(
        made,
        groups=(dataclasses.replace(made.groups[0], tags=("htools:iextags:service",)),),
        tags=("htools:iextags:service",),
        instances=tuple(dataclasses.replace(i, tags=("service:dns",)) for i in made.instances),
    )
    assert health.findings(layout(made)) == ["a runs 2 instances with exclusion tag service:dns"]
    assert health.examine(layout(made)).nodes_conflicting == 1
    assert health.examine(layout(made)).counts == (0, 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("template", "memory", "disk", "fits"),
    [
        ("ext", 1025, 0, True),
        ("ext", 1024, 0, False),  # a node keeps some memory
        ("plain", 2000, 1025, True),
        ("plain", 2000, 1024, False),  # and some of its disk
    ],
)
def test_what_must_move_needs_less_than_there_is(
    template: str, memory: int, disk: int, fits: bool
) -> None:
    made = cluster("ab", "a", template=template, spare=memory)
    nodes = tuple(dataclasses.replace(node, free_disk=disk) for node in made.nodes)
    found = fits_elsewhere(layout(dataclasses.replace(made, nodes=nodes)), [0], Rolling())
    assert found is fits

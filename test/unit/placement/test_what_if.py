"""Changes in words, made on the facts of a cluster."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from placement_samples import make_instance

from ganeti import errors
from ganeti.placement import what_if
from ganeti.placement.board import Board
from ganeti.placement.facts import BUILTIN_POLICY, Cluster, Group, Node
from ganeti.placement.layout import Layout
from ganeti.placement.use import Use


def node(name: str, *used: int, **more: object) -> Node:
    values = {"disk": 100_000, "free_disk": 90_000, "cpus": 8, **more}
    return Node(name, "g1", 8192, 1024, 7168 - sum(used), **values)  # type: ignore[arg-type]


WEB, DB = make_instance("web", "a.x", "b.x"), make_instance("db", "b.x", "c.x", memory=2048)
MADE = Cluster(
    (Group("one", "g1"),),
    (
        node("a.x", 1024, tags=("rack=a",)),
        node("b.x", 2048, tags=("rack=b",)),
        node("c.x", tags=("rack=b",)),
    ),
    (WEB, DB),
    policy=BUILTIN_POLICY,
)


def places(cluster: Cluster) -> dict[str, tuple[str, str]]:
    return {one.name: (one.primary, one.secondary) for one in cluster.instances}


def by_name(cluster: Cluster) -> dict[str, Node]:
    return {one.name: one for one in cluster.nodes}


def test_a_removed_node_is_left_first() -> None:
    found = what_if.suppose(MADE, ["remove a"])
    assert set(by_name(found.cluster)) == {"b.x", "c.x"}
    assert places(found.cluster)["web"] == ("b.x", "c.x")
    assert found.notes == ("web would go to b.x and c.x",)
    assert found.lost == ()
    assert by_name(found.cluster)["b.x"].free_memory == 7168 - 2048 - 1024


def test_who_has_no_place_is_named() -> None:
    alone = dataclasses.replace(MADE, instances=(make_instance("old", "a.x", template="plain"), DB))
    found = what_if.suppose(alone, ["remove a.x"])
    assert found.lost == ("old",)
    assert "old would have no place: its disks are on one node" in found.notes[0]
    assert "old" not in places(found.cluster)


def test_a_tag_stands_for_all_its_nodes() -> None:
    found = what_if.suppose(MADE, ["fail rack=b"])
    nodes = by_name(found.cluster)
    assert [nodes[name].offline for name in ("a.x", "b.x", "c.x")] == [False, True, True]
    assert found.lost == ("db",)
    assert places(found.cluster)["web"] == ("a.x", "b.x")


def test_a_failed_node_is_taken_over_by_the_mirrors() -> None:
    found = what_if.suppose(MADE, ["fail b.x"])
    assert places(found.cluster) == {"web": ("a.x", "b.x"), "db": ("c.x", "b.x")}
    assert by_name(found.cluster)["c.x"].free_memory == 7168 - 2048


def test_added_nodes_are_empty_and_have_other_names() -> None:
    found = what_if.suppose(MADE, ["add 2 like b", "add 1 like c"])
    new = found.cluster.nodes[3:]
    assert [one.name for one in new] == ["new1", "new2", "new3"]
    assert {one.free_memory for one in new} == {7168}
    assert new[0].free_disk == 90_000 + 2 * 1024
    assert not any(one.master for one in new)


def test_sizes_grow_shrink_and_are_set() -> None:
    found = what_if.suppose(MADE, ["memory c +64G", "disk b.x -1G", "cpus a 32"])
    nodes = by_name(found.cluster)
    assert nodes["c.x"].memory == 8192 + 65536
    assert nodes["c.x"].free_memory == 7168 + 65536
    assert (nodes["b.x"].disk, nodes["b.x"].free_disk) == (100_000 - 1024, 90_000 - 1024)
    assert nodes["a.x"].cpus == 32


def test_changes_build_on_each_other() -> None:
    found = what_if.suppose(MADE, ["add 1 like c", "remove c"])
    assert set(by_name(found.cluster)) == {"a.x", "b.x", "new1"}
    assert "c.x" not in itertools.chain(*places(found.cluster).values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not understood"),
        ("explode a", "is not understood"),
        ("remove", "name the nodes"),
        ("remove d", "there is no node 'd'"),
        ("fail rack=z", "no node has the tag 'rack=z'"),
        ("add two like a", "say how many"),
        ("add 1 as a", "say how many"),
        ("add 5000 like a", "at most 1000"),
        ("memory a", "how much"),
        ("memory a lots", "how much"),
        ("memory a +1Q", "is not an amount of memory"),
        ("cpus a +1G", "is not an amount of cpus"),
        ("memory b -7G", "uses 3072 of memory now"),
        ("disk c 0", "uses 10000 of disk now"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, said: str) -> None:
    with pytest.raises(errors.OpPrereqError) as caught:
        what_if.suppose(MADE, [text])
    assert said in errors.text(caught.value)
    assert f"what-if '{text}'" in errors.text(caught.value)


def test_of_an_unknown_node_nothing_is_known() -> None:
    made = dataclasses.replace(MADE, nodes=(*MADE.nodes[:2], node("c.x", offline=True)))
    for text in ("add 1 like c", "memory c +1G"):
        with pytest.raises(errors.OpPrereqError, match=r"nothing is known of c\.x"):
            what_if.suppose(made, [text])


def test_moved_facts_are_those_of_a_moved_layout() -> None:
    after = what_if.place_instances(MADE, {"web": ("c.x", "a.x")})
    layout = Layout.from_board(Board(MADE))
    index = layout.board.instance_index["web"]
    moved = layout.move(index, 2, 0)
    again = Layout.from_board(Board(after))
    assert (again.memory_left == moved.memory_left).all()
    board = again.board
    left = board.disk_room - again.used[Use.DISK]
    assert (left == layout.board.disk_room - moved.used[Use.DISK]).all()

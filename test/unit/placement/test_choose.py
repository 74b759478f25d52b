"""Places for new instances, and what is said when there are none."""

from __future__ import annotations

import dataclasses

import pytest

from ganeti.placement import survival
from ganeti.placement.board import Board
from ganeti.placement.choose import Chooser, Wish, choose, choose_all
from ganeti.placement.facts import Cluster, Group, Instance, Node, Policy, Spec
from ganeti.placement.layout import Layout
from ganeti.placement.secondary import choose_secondary

POLICY = Policy(
    standard=Spec(1024, 1, 1024, 1, 1, 1),
    bounds=((Spec(0, 1, 0, 0, 0, 1), Spec(65536, 64, 10**6, 16, 8, 12)),),
    templates=("drbd", "plain", "ext", "diskless"),
    vcpu_ratio=4.0,
    spindle_ratio=32.0,
)


def node(name: str, memory: int = 8192, free: int = 7168, **more: object) -> Node:
    values = {"disk": 100_000, "free_disk": 100_000, "cpus": 8, **more}
    return Node(name, "g1", memory, 1024, free, **values)  # type: ignore[arg-type]


def item(name: str, memory: int = 1024, primary: str = "", **more: object) -> Instance:
    values = {"secondary": "", "template": "ext", "vcpus": 1, "disk": 0, **more}
    values.setdefault("status", "running")
    return Instance(
        name,
        memory=memory,
        auto_balance=True,
        primary=primary,
        **values,  # type: ignore[arg-type]
    )


def cluster(*nodes: Node, instances: tuple[Instance, ...] = (), **more: object) -> Cluster:
    groups = (Group("one", "g1"),)
    return Cluster(groups, nodes, instances, policy=POLICY, **more)  # type: ignore[arg-type]


def test_a_single_node_needs_nobody_to_replace_it() -> None:
    found = choose(cluster(node("a")), Wish(item("new")))
    assert found.nodes == ("a",)


def test_nothing_goes_where_the_loss_of_a_node_could_not_be_made_good() -> None:
    found = choose(cluster(node("a"), node("b", 4096, 3072)), Wish(item("new", 4000)))
    assert found.nodes == ()
    assert "then nothing could replace a (N+1)" in found.reason
    allowed = choose(
        cluster(node("a"), node("b", 4096, 3072)), Wish(item("new", 4000)), survive=False
    )
    assert allowed.nodes == ("a",)


def test_missing_amounts_are_told_by_node_and_dimension() -> None:
    small = node("a", free=100, free_disk=500, cpus=1)
    found = choose(
        cluster(small, node("b", offline=True)),
        Wish(item("new", 1024, template="plain", disk=1000, vcpus=6)),
    )
    assert found.refusal is not None
    [group] = found.refusal.data()["groups"]
    needs = "a needs another 925 MiB of memory and 501 MiB of disk and 3 virtual processors"
    gone = "is offline, drained or does not answer"
    assert group["nodes"] == [
        {
            "node": "a",
            "reason": None,
            "missing": {"memory": 925, "disk": 501, "virtual processors": 3},
            "text": needs,
        },
        {"node": "b", "reason": gone, "missing": {}, "text": f"b {gone}"},
    ]
    assert needs in found.reason


def test_every_place_is_told_with_what_the_other_nodes_are_short_of() -> None:
    made = cluster(node("a"), node("b"), node("c", free=100), node("d", free=5000))
    wish = Wish(item("new", 1000, template="drbd", disk=100))
    chooser = Chooser(made)
    [found] = chooser.survey(wish)
    assert sorted(one.nodes[0] for one in found.places) == ["a", "b", "d"]
    scores = [round(one.score, 9) for one in found.places]
    assert scores == sorted(scores)
    assert [one.node for one in found.others.nodes] == ["c"]
    assert found.others.nodes[0].text == "c needs another 901 MiB of memory"
    best = chooser.choose(wish)
    assert (best.nodes, best.score) == (found.places[0].nodes, found.places[0].score)
    closed = Chooser(made).survey(dataclasses.replace(wish, networks=frozenset({"net"})))
    assert [one.data()["reason"] for one in closed] == ["is not connected to the network of a NIC"]


def test_why_there_is_no_new_secondary_node_and_what_would_help() -> None:
    web = item("web", 1000, "a", secondary="b", template="drbd", disk=1000)
    kept = item("batch-7", 100, "c", template="plain", disk=99_500, forthcoming=True)
    nodes = (node("a"), node("b"), node("c"), node("d", offline=True), node("e", free=900))
    name, why = choose_secondary(cluster(*nodes, instances=(web, kept)), web, frozenset({"b"}))
    assert (name, why is None) == ("", False)
    assert why is not None
    [group] = why.data()["groups"]
    assert {one["node"]: one["missing"] or one["reason"] for one in group["nodes"]} == {
        "a": "runs it",
        "b": "is the node to leave",
        "c": {"disk": 501},
        "d": "is offline, drained or does not answer",
        "e": {"memory kept for failures": 100},
    }
    assert "it would fit if you release the reservation batch-7" in why.text
    free = cluster(*nodes, instances=(web,))
    assert choose_secondary(free, web, frozenset({"b"})) == ("c", None)


def test_a_reservation_in_the_way_is_named() -> None:
    kept = item("batch-7", 6000, "a", forthcoming=True)
    found = choose(cluster(node("a"), instances=(kept,)), Wish(item("new", 2000)))
    assert "it would fit if you release the reservation batch-7" in found.reason
    freed = choose(cluster(node("a")), Wish(item("new", 2000)))
    assert freed.nodes == ("a",)


def test_a_move_that_makes_room_is_named_and_does() -> None:
    web = item("web3", 4000, "a")
    nodes = (node("a", free=3168), node("b", free=3168))
    other = item("web4", 4000, "b")
    third = node("c", 6144, 5120, cpus=1)
    full = item("big", 6000, vcpus=4)
    made = cluster(*nodes, third, instances=(web, other))
    found = choose(made, Wish(full), survive=False)
    assert "move web3 to c first" in found.reason
    moved = dataclasses.replace(
        made,
        nodes=(node("a"), nodes[1], node("c", 6144, 1120, cpus=1)),
        instances=(item("web3", 4000, "c"), other),
    )
    assert choose(moved, Wish(full), survive=False).nodes == ("a",)


def test_a_size_that_fits_is_named_and_fits() -> None:
    made = cluster(node("a"))
    found = choose(made, Wish(item("new", 8000)))
    assert "it would fit if you reduce its memory to 7104 MiB" in found.reason
    assert choose(made, Wish(item("new", 7104))).nodes == ("a",)
    assert choose(made, Wish(item("new", 7168))).nodes == ()


def test_a_restriction_in_the_way_is_named() -> None:
    made = cluster(node("a", free=100), node("b"))
    found = choose(made, Wish(item("new"), only=frozenset({"a"})), survive=False)
    assert "allow node b, which the request excludes" in found.reason
    far = dataclasses.replace(node("c"), group="g2")
    two = dataclasses.replace(
        cluster(node("a", free=100), far), groups=(Group("one", "g1"), Group("two", "g2"))
    )
    assert "place it in group two" in choose(two, Wish(item("new"), group="one")).reason


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Cluster((), (), (), policy=POLICY), "there is no group"),
        (cluster(), "group one: has no node that is online"),
        (cluster(node("a", 0, 0, disk=0, free_disk=0, cpus=0)), "has no node that is online"),
        (
            dataclasses.replace(cluster(node("a")), groups=(Group("one", "g1", "unallocable"),)),
            "group one: is unallocable",
        ),
    ],
)
def test_clusters_without_room_for_anything(made: Cluster, said: str) -> None:
    assert said in choose(made, Wish(item("new"))).reason


def test_a_group_that_does_not_exist_is_named() -> None:
    assert (
        "there is no such group" in choose(cluster(node("a")), Wish(item("new"), "nosuch")).reason
    )


def test_instances_without_memory_or_node_skew_nothing() -> None:
    odd = (item("none", 0, "a"), item("nowhere", 4096, forthcoming=True), item("lost", 1, "gone"))
    zero = node("z", 0, 0, disk=0, free_disk=0, cpus=0)
    plain = choose(cluster(node("a"), node("b")), Wish(item("new")))
    found = choose(cluster(node("a"), node("b"), zero, instances=odd), Wish(item("new")))
    assert found.nodes in (("a",), ("b",))
    assert choose(cluster(node("a"), zero), Wish(item("new", 0))).nodes == ("a",)
    assert plain.nodes


# many as one decision ----------------------------------------------------------------------------


def test_each_of_many_counts_for_the_next() -> None:
    made = cluster(node("a"), node("b"))
    found = choose_all(made, [Wish(item(f"new{i}", 3000)) for i in range(5)], survive=False)
    places = [choice.nodes for choice in found]
    assert sorted(places) == [(), ("a",), ("a",), ("b",), ("b",)]
    [refused] = [choice for choice in found if not choice.nodes]
    assert "needs another 1833 MiB of memory" in refused.reason


def test_the_order_of_a_request_does_not_decide_who_fits() -> None:
    made = cluster(node("a", free=5000), node("b", free=3100))
    wishes = [Wish(item("small", 2000)), Wish(item("large", 4900)), Wish(item("tiny", 1000))]
    for order in (wishes, wishes[::-1]):
        found = choose_all(made, order, survive=False)
        by_name = {wish.item.name: choice.nodes for wish, choice in zip(order, found)}
        assert by_name == {"small": ("b",), "large": ("a",), "tiny": ("b",)}


def test_a_batch_that_only_fits_by_disk_first_is_placed() -> None:
    nodes = (
        node("a", free=7168, free_disk=1000),
        node("b", free=7168, free_disk=9000),
    )
    wishes = [
        Wish(item("memory", 5000, template="plain", disk=900)),
        Wish(item("disk", 4000, template="plain", disk=8500)),
    ]
    found = choose_all(cluster(*nodes), wishes, survive=False)
    assert [choice.nodes for choice in found] == [("a",), ("b",)]


def test_who_leaves_a_lost_node_finds_places_the_largest_first() -> None:
    """The small guest would take the only place of the large one."""
    nodes = (node("a", 9216, 0), node("b", 9216, 5000), node("c", 9216, 4900))
    for name in ("z", "0"):
        here = (item("large", 4950, "a"), item(name, 1000, "a"))
        rest = (item("b1", 3192, "b"), item("c1", 3292, "c"))
        made = cluster(*nodes, instances=here + rest)
        layout = Layout.from_board(Board(made, made.groups[0]))
        assert survival.survives(layout, layout.board.node_index["a"]), name

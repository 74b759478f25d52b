"""Whatever is chosen keeps N+1, tags, policy and capacity; each choice counts for the next."""

from __future__ import annotations

import dataclasses

from clusters import cluster
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ganeti.placement import relocate, survival
from ganeti.placement.board import Board
from ganeti.placement.choose import Wish, choose_all, explain_policy_refusal
from ganeti.placement.facts import LOCAL, Cluster, Instance
from ganeti.placement.layout import Layout
from ganeti.placement.relocate import Leave
from ganeti.placement.use import Use

CLUSTERS = st.builds(
    cluster,
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.integers(0, 20),
    templates=st.sampled_from([("drbd",), ("ext",), ("drbd", "plain", "ext")]),
    tags=st.booleans(),
    reserved=st.sampled_from([0.0, 0.3]),
    spare=st.sampled_from([64, 4096]),
    memory=st.sampled_from([16384, 32768]),
    offline=st.integers(0, 1),
)
WISHES = st.lists(
    st.builds(
        lambda memory, disk, vcpus, template, tag: (memory, disk, vcpus, template, tag),
        st.sampled_from([512, 2048, 8192]),
        st.sampled_from([1024, 200_000]),
        st.sampled_from([1, 4]),
        st.sampled_from(["drbd", "plain", "ext"]),
        st.integers(0, 3),
    ),
    max_size=6,
)


def wishes(shapes: list[tuple[int, int, int, str, int]]) -> list[Wish]:
    return [
        Wish(
            Instance(
                f"new{i}",
                memory,
                disk,
                vcpus,
                "running",
                True,
                "",
                "",
                template,
                tags=(f"service:{tag}",),
                disks=(disk,),
            )
        )
        for i, (memory, disk, vcpus, template, tag) in enumerate(shapes)
    ]


def place(made: Cluster, items: list[Instance]) -> Cluster:
    """The cluster once these instances run where they were put."""
    nodes = {node.name: node for node in made.nodes}
    for item in items:
        one = nodes[item.primary]
        nodes[one.name] = dataclasses.replace(one, free_memory=one.free_memory - item.memory)
        for name in (item.primary, item.secondary):
            if name and item.template in LOCAL:
                one = nodes[name]
                nodes[name] = dataclasses.replace(one, free_disk=one.free_disk - item.disk)
    return dataclasses.replace(
        made, nodes=tuple(nodes.values()), instances=(*made.instances, *items)
    )


def layout(made: Cluster) -> Layout:
    return Layout.from_board(Board(made, made.groups[0]))


@examples(25)
@given(CLUSTERS, WISHES)
def test_places_break_no_rule(made: Cluster, shapes: list[tuple[int, int, int, str, int]]) -> None:
    asked = wishes(shapes)
    choices = choose_all(made, asked)
    put = []
    for wish, choice in zip(asked, choices):
        assert bool(choice.nodes) == (choice.refusal is None)
        if choice.nodes:
            assert not explain_policy_refusal(made, made.groups[0], wish.item)
            second = choice.nodes[1] if len(choice.nodes) > 1 else ""
            put.append(dataclasses.replace(wish.item, primary=choice.nodes[0], secondary=second))
            assert bool(second) == (wish.item.template == "drbd")
        else:
            assert choice.reason
    before, after = layout(made), layout(place(made, put))
    board = after.board
    used = [
        board.node_index[node] for item in put for node in (item.primary, item.secondary) if node
    ]
    assert all(board.online[i] for i in used)
    assert not (after.fails & ~before.fails).any()
    assert ((after.apart_count > 1).sum()) <= ((before.apart_count > 1).sum())
    for i in used:
        assert after.memory_left_all[i] >= min(0, before.memory_left_all[i])
        assert after.used[Use.DISK_ALL, i] <= board.disk_room[i]
    primaries = {board.node_index[item.primary] for item in put}
    for i in primaries:
        assert after.used[Use.CPU_ALL, i] + board.node_cpus[i] <= board.cpu_limit[i]
    if not survival.list_failing(before) and board.online.sum() > 1:
        assert not survival.list_failing(after)


@examples(15)
@given(CLUSTERS, WISHES, st.randoms(use_true_random=False))
def test_the_order_of_cluster_and_request_does_not_matter(
    made: Cluster, shapes: list[tuple[int, int, int, str, int]], random_: object
) -> None:
    asked = wishes(shapes)
    first = {w.item.name: c.nodes for w, c in zip(asked, choose_all(made, asked))}
    nodes, items = list(made.nodes), list(made.instances)
    for one in (nodes, items, asked):
        random_.shuffle(one)  # type: ignore[attr-defined]
    other = dataclasses.replace(made, nodes=tuple(nodes), instances=tuple(items))
    assert {w.item.name: c.nodes for w, c in zip(asked, choose_all(other, asked))} == first


@examples(25)
@given(CLUSTERS, st.sampled_from(list(Leave)), st.integers(0, 5))
def test_who_leaves_a_node_breaks_no_rule(made: Cluster, mode: Leave, number: int) -> None:
    node = made.nodes[number % len(made.nodes)]
    names = [
        item.name
        for item in made.instances
        if (item.primary == node.name and mode is not Leave.SECONDARY)
        or (item.secondary == node.name and mode is not Leave.PRIMARY)
    ]
    found = relocate.evacuate(made, names, mode, frozenset({node.name}))
    assert sorted([one.name for one in found.moved] + [name for name, _ in found.failed]) == sorted(
        names
    )
    before = now = layout(made)
    board = now.board
    for one in found.moved:
        index = board.instance_index[one.name]
        primary = board.node_index[one.nodes[0]]
        secondary = board.node_index[one.nodes[1]] if len(one.nodes) > 1 else -1
        assert one.steps
        if mode is Leave.ALL or (mode is Leave.SECONDARY and secondary >= 0):
            assert node.name not in (one.nodes if mode is Leave.ALL else one.nodes[1:])
        else:
            assert one.nodes[0] != node.name
        now = now.move(index, primary, secondary)
        if board.online[board.node_index[node.name]]:
            others = board.online.copy()
            others[board.node_index[node.name]] = False
            assert not (now.fails & ~before.fails & others).any()
            assert (now.apart_count > 1).sum() <= (before.apart_count > 1).sum()
        assert (now.memory_left_all[primary] > 0) or before.memory_left_all[primary] <= 0

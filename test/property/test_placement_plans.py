"""Plans carried out on the facts, in every order that they allow, break no rule on the way.

The facts are changed as nodes would tell them afterwards, and the model is made anew from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import pytest
from clusters import POLICY, cluster
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ganeti.placement import agenda, round_trip
from ganeti.placement.agenda import Budget, Entry
from ganeti.placement.board import Board
from ganeti.placement.choose import Wish, choose
from ganeti.placement.facts import LOCAL, Cluster, Group, Instance
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Limits
from ganeti.placement.score import score
from ganeti.placement.use import Use

CLUSTERS = st.builds(
    cluster,
    st.integers(0, 10_000),
    st.integers(3, 6),
    st.integers(1, 16),
    templates=st.sampled_from([("drbd",), ("ext",), ("drbd", "plain", "ext")]),
    tags=st.booleans(),
    reserved=st.sampled_from([0.0, 0.3]),
    spare=st.sampled_from([256, 8192]),
    memory=st.sampled_from([16384, 65536]),
)
RANDOM = st.randoms(use_true_random=False)


def layout(made: Cluster, number: int = 0) -> Layout:
    return Layout.from_board(Board(made, made.groups[number]))


def move(made: Cluster, name: str, nodes: Sequence[str]) -> Cluster:
    """The facts once an instance is on these nodes."""
    [item] = [one for one in made.instances if one.name == name]
    primary, secondary = (*nodes, "")[:2]
    new = dataclasses.replace(item, primary=primary, secondary=secondary)
    table = {node.name: node for node in made.nodes}
    for where, sign in ((item, 1), (new, -1)):
        if item.runs:
            one = table[where.primary]
            free = one.free_memory + sign * item.memory
            table[one.name] = dataclasses.replace(one, free_memory=free)
        for place in filter(None, (where.primary, where.secondary)):
            if item.template in LOCAL and not item.forthcoming:
                one = table[place]
                room = one.free_disk + sign * item.disk
                table[place] = dataclasses.replace(one, free_disk=room)
    items = tuple(new if one is item else one for one in made.instances)
    return dataclasses.replace(made, nodes=tuple(table.values()), instances=items)


def shuffle(entries: Sequence[Entry], random_: object) -> Iterator[Entry]:
    """The entries in an order in which each comes after those it waits for."""
    done: set[int] = set()
    while len(done) < len(entries):
        ready = [
            number
            for number, entry in enumerate(entries)
            if number not in done and done.issuperset(entry.waits_for)
        ]
        number = random_.choice(ready)  # type: ignore[attr-defined]
        done.add(number)
        yield entries[number]


def mix(made: Cluster, random_: object) -> Cluster:
    """The same cluster in another order."""
    nodes, items = list(made.nodes), list(made.instances)
    random_.shuffle(nodes)  # type: ignore[attr-defined]
    random_.shuffle(items)  # type: ignore[attr-defined]
    return dataclasses.replace(made, nodes=tuple(nodes), instances=tuple(items))


def check_rules(before: Layout, after: Layout, spared: frozenset[str] = frozenset()) -> None:
    """Nothing is worse on any node (but the ``spared`` ones) than it was."""
    board = after.board
    nodes = [i for i, node in enumerate(board.nodes) if node.name not in spared]
    used, old = after.used[:, nodes], before.used[:, nodes]
    assert not (after.fails & ~before.fails)[nodes].any()
    many, some = after.apart_count[:, nodes], before.apart_count[:, nodes]
    assert not ((many > 1) & (many > some)).any()
    cpus = used[Use.CPU_ALL] + board.node_cpus[nodes]
    assert not ((used[Use.CPU_ALL] > old[Use.CPU_ALL]) & (cpus > board.cpu_limit[nodes])).any()
    more = used[Use.DISK_ALL] > old[Use.DISK_ALL]
    assert not (more & (used[Use.DISK_ALL] > board.disk_room[nodes])).any()
    memory = used[Use.MEMORY_ALL] > old[Use.MEMORY_ALL]
    assert not (memory & (after.memory_left_all[nodes] <= 0)).any()


def carry_out(
    made: Cluster, entries: Iterator[Entry], check: Callable[[Layout, Layout], None] = check_rules
) -> Cluster:
    for entry in entries:
        after = move(made, entry.instance, entry.after)
        check(layout(made), layout(after))
        made = after
    return made


@examples(12)
@given(CLUSTERS, RANDOM)
def test_a_balancing_plan_in_every_order_it_allows(made: Cluster, random_: object) -> None:
    planned = agenda.plan(layout(made), "group1", Limits(), Budget(moves=8))
    last = carry_out(made, shuffle(planned.entries, random_))
    assert score(layout(last)) == pytest.approx(planned.final, abs=1e-9)
    assert agenda.plan(layout(mix(made, random_)), "group1", Limits(), Budget(moves=8)) == planned


@examples(12)
@given(CLUSTERS, RANDOM, st.booleans())
def test_nodes_are_emptied_and_filled_again(
    made: Cluster, random_: object, disks_too: bool
) -> None:
    """Nothing comes to them meanwhile, and who left comes back, when nothing else has changed."""
    nodes = frozenset({made.nodes[1].name})

    def check(before: Layout, after: Layout) -> None:
        check_rules(before, after, spared=nodes)

    trip = round_trip.leave(made, nodes, disks_too=disks_too)
    assert round_trip.leave(mix(made, random_), nodes, disks_too=disks_too) == trip
    empty = carry_out(made, shuffle(trip.entries, random_), check)
    for entry in trip.entries:
        assert entry.after[0] not in nodes
        assert not disks_too or not nodes & {*entry.after}
    stayed = {name for name, why in trip.stay if why}
    assert {i.name for i in empty.instances if i.primary in nodes} <= stayed
    homes = {entry.instance: entry.before for entry in trip.entries}
    back = round_trip.plan_return(empty, homes, nodes)
    assert round_trip.plan_return(mix(empty, random_), homes, nodes) == back
    home = carry_out(empty, shuffle(back.entries, random_))
    for item in home.instances:
        if item.name in homes and item.name not in dict(back.stay):
            assert tuple(filter(None, (item.primary, item.secondary))) == homes[item.name]
    assert all(why for _name, why in back.stay)


def join(one: Cluster, two: Cluster, ratio: float, memory: int) -> Cluster:
    """Two groups; the second over-commits less, and takes only small instances."""

    def rename(name: str) -> str:
        return f"other-{name}" if name else ""

    nodes = [dataclasses.replace(n, name=rename(n.name), group="uuid-2") for n in two.nodes]
    items = [
        dataclasses.replace(
            i, name=rename(i.name), primary=rename(i.primary), secondary=rename(i.secondary)
        )
        for i in two.instances
    ]
    [(least, most)] = POLICY.bounds
    bounds = ((least, dataclasses.replace(most, memory=memory)),)
    policy = dataclasses.replace(POLICY, vcpu_ratio=ratio, bounds=bounds)
    return dataclasses.replace(
        one,
        groups=(*one.groups, Group("group2", "uuid-2")),
        nodes=(*one.nodes, *nodes),
        instances=(*one.instances, *items),
        policies={"group1": POLICY, "group2": policy},
    )


@examples(10)
@given(CLUSTERS, CLUSTERS, st.sampled_from([0.5, 1.0]), st.sampled_from([512, 4096]), RANDOM)
def test_each_group_keeps_its_own_policy(
    one: Cluster, two: Cluster, ratio: float, memory: int, random_: object
) -> None:
    made = join(one, two, ratio, memory)
    limits = [layout(made, number).board.cpu_limit / 32 for number in (0, 1)]
    assert (set(limits[0]), set(limits[1])) == ({4.0}, {ratio})
    planned = agenda.plan(layout(made, 1), "group2", Limits(), Budget(moves=4))
    state = made
    for entry in shuffle(planned.entries, random_):
        after = move(state, entry.instance, entry.after)
        check_rules(layout(state, 1), layout(after, 1))
        state = after
    item = Instance("new", 2048, 0, 1, "running", True, "", "", "ext", tags=("service:0",))
    found = choose(made, Wish(item))
    if found.group == "group2":
        assert memory >= item.memory
        board = layout(made, 1).board
        at = board.node_index[found.nodes[0]]
        used = board.first_sums.used[Use.CPU_ALL, at] + board.node_cpus[at]
        assert used + item.vcpus <= board.cpu_limit[at]
    assert choose(mix(made, random_), Wish(item)) == found

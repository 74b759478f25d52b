"""Plans as people and operations need them, and whether a move still suits."""

from __future__ import annotations

import dataclasses

import pytest

from ganeti.placement import agenda, headroom, health, recheck
from ganeti.placement.agenda import Budget
from ganeti.placement.board import Board
from ganeti.placement.facts import BUILTIN_POLICY, Cluster, Group, Instance, Node
from ganeti.placement.layout import Layout
from ganeti.placement.move_kinds import Limits
from ganeti.placement.score import score
from ganeti.placement.seats import Failure


def cluster(nodes: int, places: list[tuple[str, ...]], template: str = "drbd") -> Cluster:
    """Nodes a, b, ... of 8 GiB and running instances of 1 GiB."""
    items = []
    for number, names in enumerate(places):
        primary, secondary = (*names, "")[:2]
        items.append(
            Instance(f"i{number}", 1024, 1024, 1, "running", True, primary, secondary, template)
        )
    names = [chr(ord("a") + number) for number in range(nodes)]
    used = {name: sum(1024 for item in items if item.primary == name) for name in names}
    facts = [Node(name, "g1", 8192, 1024, 7168 - used[name], 100_000, 90_000, 8) for name in names]
    return Cluster((Group("one", "g1"),), tuple(facts), tuple(items), policy=BUILTIN_POLICY)


TIGHT = cluster(5, [("a", "b")] * 3 + [("c", "d")] * 3)


def layout_of(made: Cluster) -> Layout:
    return Layout.from_board(Board(made, made.groups[0]))


def plan(made: Cluster, budget: Budget | None = None) -> agenda.Agenda:
    return agenda.plan(layout_of(made), "one", Limits(), budget or Budget())


def carried_out(layout: Layout, entries: tuple[agenda.Entry, ...]) -> Layout:
    for entry in entries:
        primary, secondary = (layout.board.node_index[name] for name in entry.after)
        layout = layout.move(layout.board.instance_index[entry.instance], primary, secondary)
    return layout


def test_a_plan_tells_for_each_move_why_and_what_it_gains() -> None:
    found = plan(TIGHT)
    assert found.entries
    assert found.score == pytest.approx(score(layout_of(TIGHT)))
    assert all(entry.gain > 0 and entry.reasons for entry in found.entries)
    total = sum(entry.gain for entry in found.entries)
    assert found.score - total == pytest.approx(found.final)
    assert score(carried_out(layout_of(TIGHT), found.entries)) == pytest.approx(found.final)


def test_a_second_plan_is_empty() -> None:
    after = carried_out(layout_of(TIGHT), plan(TIGHT).entries)
    assert agenda.plan(after, "one", Limits(), Budget()).entries == ()


def test_moves_of_one_node_wait_for_each_other() -> None:
    entries = plan(TIGHT).entries
    for number, entry in enumerate(entries):
        nodes = {*entry.before, *entry.after}
        waited: set[int] = set()
        todo = list(entry.waits_for)
        while todo:
            other = todo.pop()
            assert other < number
            waited.add(other)
            todo += entries[other].waits_for
        for other in range(number):
            if nodes & {*entries[other].before, *entries[other].after}:
                assert other in waited


def test_limits_end_a_plan() -> None:
    whole = plan(TIGHT)
    short = plan(TIGHT, Budget(moves=1))
    assert short.entries == whole.entries[:1]
    assert (short.cut, whole.cut) == (True, False)
    assert plan(TIGHT, Budget(moves=0)).entries == ()
    assert plan(TIGHT, Budget(moves=len(whole.entries))).cut is False


def test_what_copies_too_much_stays_and_others_move() -> None:
    big = dataclasses.replace(TIGHT.instances[0], disk=50_000)
    made = dataclasses.replace(TIGHT, instances=(big, *TIGHT.instances[1:]))
    found = plan(made, Budget(data=10_000))
    assert found.entries
    assert big.name not in {entry.instance for entry in found.entries if entry.copied > 10_000}
    assert sum(entry.copied for entry in found.entries) <= 10_000
    assert plan(made, Budget(data=0)).entries == ()


def test_a_reservation_copies_nothing() -> None:
    kept = tuple(dataclasses.replace(item, forthcoming=True) for item in TIGHT.instances)
    found = plan(dataclasses.replace(TIGHT, instances=kept))
    assert found.entries
    assert {entry.copied for entry in found.entries} == {0}
    assert not any(entry.runs for entry in found.entries)


def test_each_move_of_a_plan_still_suits_when_its_turn_comes() -> None:
    layout = layout_of(TIGHT)
    for entry in plan(TIGHT).entries:
        assert recheck.explain_refusal(layout, entry.instance, entry.after, must_gain=True) == ""
        layout = carried_out(layout, (entry,))


def test_a_move_back_makes_the_balance_worse() -> None:
    [entry, *_] = plan(TIGHT).entries
    after = carried_out(layout_of(TIGHT), (entry,))
    why = recheck.explain_refusal(after, entry.instance, entry.before, must_gain=True)
    assert why == "it would make the balance worse now"
    assert recheck.explain_refusal(after, entry.instance, entry.before) == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"offline": True}, "e cannot be used: offline, drained or without an answer"),
        ({"free_memory": 100}, "e needs another"),
        ({"cpus": 0}, "e needs another 2 virtual processors"),
    ],
)
def test_a_goal_that_changed_is_refused(changes: dict[str, object], said: str) -> None:
    last = dataclasses.replace(TIGHT.nodes[4], **changes)  # type: ignore[arg-type]
    made = dataclasses.replace(TIGHT, nodes=(*TIGHT.nodes[:4], last))
    assert said in recheck.explain_refusal(layout_of(made), "i0", ("e", "b"))


def test_what_is_gone_is_refused() -> None:
    layout = layout_of(TIGHT)
    assert recheck.explain_refusal(layout, "i9", ("a", "b")) == "it has no node in this group"
    assert "z cannot be used" in recheck.explain_refusal(layout, "i0", ("z", "b"))


def test_capacity_is_reached_exactly() -> None:
    made = cluster(3, [("a", "b")])
    wanted = headroom.Wanted("drbd", 2048, 1024, 1)
    [found] = headroom.examine(made, made.groups, wanted)
    assert found.normal.count > 0
    assert found.data()["normal"]["ended_by"] in {one.words for one in Failure}
    more = dataclasses.replace(wanted, memory=64, disk=200_000)
    [none] = headroom.examine(made, made.groups, more)
    assert (none.normal.count, none.data()["normal"]["ended_by"]) == (0, "disk")


@pytest.mark.parametrize(
    ("group", "template", "online", "said"),
    [
        (Group("one", "g1", "unallocable"), "drbd", True, "allocation policy is unallocable"),
        (Group("one", "g1"), "unknown", True, "does not allow disk template unknown"),
        (Group("one", "g1"), "drbd", False, "no node is online and answers"),
    ],
)
def test_a_closed_group_says_why(group: Group, template: str, online: bool, said: str) -> None:
    made = cluster(2, [])
    nodes = tuple(dataclasses.replace(node, offline=not online) for node in made.nodes)
    made = dataclasses.replace(made, groups=(group,), nodes=nodes)
    [found] = headroom.examine(made, made.groups, headroom.Wanted(template))
    assert said in found.closed
    assert found.normal.count == 0


def test_findings_name_nodes_and_instances() -> None:
    lost = dataclasses.replace(TIGHT.nodes[0], offline=True, memory=0)
    made = dataclasses.replace(TIGHT, nodes=(lost, *TIGHT.nodes[1:]))
    found = health.findings(layout_of(made))
    assert "a is offline, drained or does not answer, and has i0, i1, i2" in found
    small = dataclasses.replace(TIGHT.nodes[1], free_memory=1000)
    made = dataclasses.replace(TIGHT, nodes=(TIGHT.nodes[0], small, *TIGHT.nodes[2:]))
    assert "b needs another 2072 MiB of memory to take over a" in health.findings(layout_of(made))
    assert health.findings(layout_of(TIGHT)) == []

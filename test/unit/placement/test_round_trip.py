"""Nodes are emptied for maintenance, and get back what was there."""

from __future__ import annotations

import dataclasses

from placement_samples import make_instance

from ganeti.placement import round_trip, what_if
from ganeti.placement.facts import BUILTIN_POLICY, Cluster, Group, Node

DRAINED = frozenset({"a"})


def node(name: str, running: int = 0) -> Node:
    return Node(name, "g1", 8192, 1024, 7168 - running, 100_000, 90_000, 8)


HOME = Cluster(
    (Group("one", "g1"),),
    (node("a", 2048), node("b", 1024), node("c"), node("d")),
    (
        make_instance("i1", "a", "b"),
        make_instance("i2", "a", template="ext"),
        make_instance("i3", "b", "a"),
    ),
    policy=BUILTIN_POLICY,
)
HOMES = {one.name: [n for n in (one.primary, one.secondary) if n] for one in HOME.instances}


def drained(cluster: Cluster) -> Cluster:
    first = Node("a", "g1", 0, 0, 0, 0, 0, 0, offline=True, drained=True)
    return dataclasses.replace(cluster, nodes=(first, *cluster.nodes[1:]))


def apply(cluster: Cluster, trip: round_trip.Trip) -> Cluster:
    return what_if.place_instances(cluster, {entry.instance: entry.after for entry in trip.entries})


def test_guests_leave_and_mirrors_stay() -> None:
    trip = round_trip.leave(drained(HOME), DRAINED, disks_too=False)
    assert {entry.instance for entry in trip.entries} == {"i1", "i2"}
    assert trip.stay == ()
    assert all(step.verb == "migrate" for entry in trip.entries for step in entry.steps)
    assert {entry.after[0] for entry in trip.entries} <= {"b", "c", "d"}


def test_mirrors_leave_too_when_that_is_asked_for() -> None:
    trip = round_trip.leave(drained(HOME), DRAINED, disks_too=True)
    moved = {entry.instance: entry for entry in trip.entries}
    assert set(moved) == {"i1", "i2", "i3"}
    assert all("a" not in entry.after for entry in trip.entries)
    assert moved["i3"].after[0] == "b"
    assert moved["i3"].copied == 1024


def test_all_come_back_to_where_they_were() -> None:
    for disks_too in (False, True):
        gone = round_trip.leave(drained(HOME), DRAINED, disks_too=disks_too)
        away = apply(HOME, gone)
        back = round_trip.plan_return(away, HOMES, DRAINED)
        assert back.stay == ()
        assert {entry.instance for entry in back.entries} == {e.instance for e in gone.entries}
        assert apply(away, back) == HOME


def test_who_does_not_fit_any_more_stays_with_a_reason() -> None:
    away = apply(HOME, round_trip.leave(drained(HOME), DRAINED, disks_too=False))
    full = (dataclasses.replace(away.nodes[0], free_memory=1500), *away.nodes[1:])
    back = round_trip.plan_return(dataclasses.replace(away, nodes=full), HOMES, DRAINED)
    assert len(back.entries) == 1
    [(_name, why)] = back.stay
    assert "a needs another" in why


def test_a_move_that_makes_room_for_another_goes_first() -> None:
    tight = (node("a", 6000), node("b", 1500), node("c"))
    items = (
        make_instance("x", "a", template="ext", memory=6000),
        make_instance("y", "b", template="ext", memory=1500),
    )
    swapped = Cluster(HOME.groups, tight, items, policy=BUILTIN_POLICY)
    back = round_trip.plan_return(swapped, {"x": ["b"], "y": ["c"]}, frozenset())
    assert [entry.instance for entry in back.entries] == ["y", "x"]


def test_what_cannot_move_is_named() -> None:
    fixed = dataclasses.replace(HOME, instances=(make_instance("old", "a", template="plain"),))
    trip = round_trip.leave(drained(fixed), DRAINED, disks_too=False)
    assert trip.entries == ()
    [(name, why)] = trip.stay
    assert name == "old"
    assert "its disks are on one node" in why

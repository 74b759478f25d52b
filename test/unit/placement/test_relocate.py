"""How instances leave nodes and groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pytest
from placement_samples import make_instance

from ganeti.placement import relocate
from ganeti.placement.facts import BUILTIN_POLICY, MIRRORS, Cluster, Group, Instance, Mirror, Node
from ganeti.placement.relocate import Leave, Relocation, Relocations, wire_step


def node(name: str, group: str = "g1", *, free: int = 7168, **more: object) -> Node:
    values = {"disk": 100_000, "free_disk": 100_000, "cpus": 8, **more}
    return Node(name, group, 8192, 1024, free, **values)  # type: ignore[arg-type]


def cluster(nodes: Iterable[Node], *items: Instance, groups: tuple[Group, ...] = ()) -> Cluster:
    return Cluster((Group("one", "g1"), *groups), tuple(nodes), items, policy=BUILTIN_POLICY)


ABC = (node("a", free=6144), node("b"), node("c"))


def words(found: Relocation) -> list[str]:
    return [f"{step.verb} {step.node}".strip() for step in found.steps]


def get_only(found: Relocations) -> Relocation:
    assert found.failed == ()
    [moved] = found.moved
    return moved


@pytest.mark.parametrize(
    ("mode", "places", "nodes", "steps"),
    [
        (Leave.PRIMARY, ("a", "b"), ("b", "a"), ["migrate"]),
        (Leave.ALL, ("a", "b"), ("b", "c"), ["migrate", "replace-secondary c"]),
        (Leave.ALL, ("b", "a"), ("b", "c"), ["replace-secondary c"]),
        (Leave.SECONDARY, ("b", "a"), ("b", "c"), ["replace-secondary c"]),
    ],
)
def test_mirrored_instances_leave_a_node(
    mode: Leave, places: tuple[str, str], nodes: tuple[str, str], steps: list[str]
) -> None:
    made = cluster(ABC, make_instance("web", *places))
    found = get_only(relocate.evacuate(made, ["web"], mode, frozenset({"a"})))
    assert (found.nodes, words(found)) == (nodes, steps)


def test_shared_instances_leave_a_node() -> None:
    made = cluster(
        (ABC[0], node("b", free=2000), ABC[2]), make_instance("web", "a", template="ext")
    )
    found = get_only(relocate.evacuate(made, ["web"], Leave.ALL, frozenset({"a"})))
    assert (found.nodes, words(found)) == (("c",), ["migrate c"])


def test_a_guest_of_a_lost_node_fails_over_and_one_of_a_drained_node_migrates() -> None:
    lost = Node("a", "g1", 0, 0, 0, 0, 0, 0, offline=True)
    for gone, verb in ((lost, "failover"), (dataclasses.replace(lost, drained=True), "migrate")):
        made = cluster((gone, *ABC[1:]), make_instance("web", "a", "b"))
        found = get_only(relocate.evacuate(made, ["web"], Leave.ALL, frozenset({"a"})))
        assert words(found) == [verb, "replace-secondary c"]


def test_both_nodes_are_left_by_way_of_a_copy() -> None:
    made = cluster((*ABC, node("d")), make_instance("web", "a", "b"))
    found = get_only(relocate.evacuate(made, ["web"], Leave.ALL, frozenset({"a", "b"})))
    first, second = found.nodes
    assert {first, second} == {"c", "d"}
    assert words(found) == [f"replace-secondary {first}", "migrate", f"replace-secondary {second}"]


def test_a_request_that_names_no_node_means_the_one_that_all_have() -> None:
    made = cluster(ABC, make_instance("web1", "a", "b"), make_instance("web2", "c", "a"))
    assert relocate.nodes_to_empty(made, ["web1", "web2"], Leave.ALL) == {"a"}
    assert relocate.nodes_to_empty(made, ["web1", "web2"], Leave.PRIMARY) == {"a", "c"}
    found = relocate.evacuate(made, ["web1", "web2"], Leave.ALL)
    assert found.failed == ()
    assert all("a" not in one.nodes for one in found.moved)


@pytest.mark.parametrize(
    ("made", "mode", "said"),
    [
        (make_instance("web", "a", template="plain"), Leave.ALL, "its disks are on one node"),
        (make_instance("web", "a", template="ext"), Leave.SECONDARY, "it has no secondary node"),
        (make_instance("web", "a"), Leave.ALL, "it has no secondary node"),
        (make_instance("web"), Leave.ALL, "has no node"),
        (
            make_instance("web", "a", "b", memory=7168),
            Leave.PRIMARY,
            "b needs another 1 MiB of memory",
        ),
    ],
)
def test_what_cannot_leave_is_told_with_the_reason(made: Instance, mode: Leave, said: str) -> None:
    found = relocate.evacuate(cluster(ABC, made), ["web"], mode, frozenset({"a"}))
    assert found.moved == ()
    [(name, why)] = found.failed
    assert (name, said in why) == ("web", True), why


def test_an_unknown_instance_hinders_nobody() -> None:
    made = cluster(ABC, make_instance("web", "a", "b"))
    found = relocate.evacuate(made, ["nosuch", "web"], Leave.PRIMARY, frozenset({"a"}))
    assert [one.name for one in found.moved] == ["web"]
    assert found.failed == (("nosuch", "is not known"),)


def test_each_move_counts_for_the_next() -> None:
    nodes = (node("a", free=1024), node("b", free=4000), node("c", free=4000))
    items = [make_instance(f"web{i}", "a", template="ext", memory=3000) for i in (1, 2)]
    found = relocate.evacuate(cluster(nodes, *items), ["web1", "web2"], Leave.ALL, frozenset({"a"}))
    assert sorted(one.nodes for one in found.moved) == [("b",), ("c",)]


FAR = (node("x", "g2"), node("y", "g2"))


def test_to_another_group() -> None:
    empty = Group("empty", "g3")
    groups = (Group("far", "g2"), empty)
    mirrored = make_instance("web", "a", "b")
    made = cluster((*ABC, *FAR), mirrored, groups=groups)
    found = get_only(relocate.change_group(made, ["web"]))
    assert found.group == "far"
    first, second = found.nodes
    assert words(found) == [f"replace-secondary {first}", "migrate", f"replace-secondary {second}"]
    lost = dataclasses.replace(ABC[0], offline=True)
    found = get_only(
        relocate.change_group(cluster((lost, *ABC[1:], *FAR), mirrored, groups=groups), ["web"])
    )
    assert words(found)[:2] == ["failover", f"replace-secondary {found.nodes[0]}"]
    shared = cluster((*ABC, *FAR), make_instance("web", "a", template="ext"), groups=groups)
    found = get_only(relocate.change_group(shared, ["web"], ["g2"]))
    assert words(found) == [f"migrate {found.nodes[0]}"]
    for targets, said in ((["g3"], "has no node that is online"), (["g1"], "no other group")):
        refused = relocate.change_group(made, ["web"], targets)
        assert said in refused.failed[0][1]


def test_a_closed_group_takes_only_who_names_it() -> None:
    made = cluster(
        (*ABC, *FAR), make_instance("web", "a", "b"), groups=(Group("far", "g2", "unallocable"),)
    )
    assert "is unallocable" in relocate.change_group(made, ["web"]).failed[0][1]
    assert get_only(relocate.change_group(made, ["web"], ["g2"])).group == "far"


def test_steps_are_opcodes_that_allocators_may_name() -> None:
    from ganeti.opcodes import wire

    for verb in relocate.Verb:
        step = relocate.Step(verb, "b")
        op = wire.from_wire(wire_step("web", step))
        assert (getattr(op, "target_node", None) or getattr(op, "remote_node", None)) == "b"


# after the death of a node -----------------------------------------------------------------------

DEAD = Node("a", "g1", 0, 0, 0, 0, 0, 0, offline=True)
SHARED = [name for name, mirror in MIRRORS.items() if mirror is Mirror.EVERY_NODE]


def rescue(made: Cluster, *names: str) -> Relocations:
    return relocate.evacuate(made, names, Leave.PRIMARY, frozenset({"a"}), in_order=True)


@pytest.mark.parametrize("template", SHARED)
def test_a_rescue_keeps_room_for_the_next_death_where_it_can(template: str) -> None:
    """If c dies, db starts on b if it has a copy there. With web on b, there is no room for it."""
    web = make_instance("web", "a", template=template, memory=4096)
    pair = make_instance("db", "c", "b", memory=5000)
    alone = dataclasses.replace(pair, secondary="", template="plain")

    def start(db: Instance, *, free: int) -> Relocations:
        c = dataclasses.replace(node("c", free=free), memory=free + 1024 + db.memory)
        return rescue(cluster((DEAD, node("b"), c), web, db), "web")

    assert get_only(start(alone, free=7200)).nodes == ("b",)
    assert get_only(start(pair, free=7200)).nodes == ("c",)
    assert get_only(start(pair, free=4000)).nodes == ("b",)
    full = (DEAD, node("b", free=4000), node("c", free=4000))
    [(name, why)] = rescue(cluster(full, web, pair), "web").failed
    assert (name, "b needs another" in why, "c needs another" in why) == ("web", True, True)


def test_a_mirrored_instance_starts_on_its_secondary_node_also_without_room_for_the_next() -> None:
    web, pair = (
        make_instance("web", "a", "b", memory=4096),
        make_instance("db", "c", "b", memory=5000),
    )
    assert get_only(rescue(cluster((DEAD, node("b"), node("c")), web, pair), "web")).nodes[0] == "b"
    [(name, why)] = rescue(
        cluster((DEAD, node("b", free=4000), node("c")), web, pair), "web"
    ).failed
    assert (name, "b needs another" in why, "c" in why.split()) == ("web", True, False)


def test_a_rescue_places_the_first_names_first() -> None:
    small, big = (
        make_instance("small", "a", template="rbd"),
        make_instance("big", "a", template="ext", memory=6500),
    )
    made = cluster((DEAD, node("b")), small, big)
    assert [one.name for one in rescue(made, "small", "big").moved] == ["small"]
    assert [one.name for one in rescue(made, "big", "small").moved] == ["big"]


def test_a_rescue_stays_within_the_group() -> None:
    web = make_instance("web", "a", template="gluster")
    made = cluster((DEAD, node("x", "g2")), web, groups=(Group("two", "g2"),))
    assert [name for name, _why in rescue(made, "web").failed] == ["web"]

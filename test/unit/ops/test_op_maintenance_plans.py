"""What a node in maintenance remembers of the instances that left it."""

from __future__ import annotations

from op_samples import change, config, node, with_instance

from ganeti.model import base
from ganeti.model.config import Config
from ganeti.ops.planning import maintenance
from ganeti.placement.agenda import Entry


def cluster(**of_node2: object) -> Config:
    """web1 is on node2."""
    return with_instance(config(node(2, **of_node2), node(3), node(4)), "web1", "node-2")


def away(before: int = 2, after: int = 3, instance: str = "web1") -> Entry:
    names = [(f"node{number}.example.com",) for number in (before, after)]
    return Entry(instance, *names, steps=(), runs=True)


def move(of: Config, where: str) -> Config:
    of = change(of, primary_node=where)
    [disk] = of.disks.values()
    return of.apply([("disks", disk.uuid, base.replace(disk, nodes=(where,)))], [], None, mtime=3.0)


def test_a_drained_node_is_one_in_the_copy_only() -> None:
    of = cluster()
    made = maintenance.set_drained(of, [of.node("node2")], 9.0, drained=True)
    assert made.node("node2").drained
    assert not of.node("node2").drained


def test_who_leaves_is_remembered_with_the_way() -> None:
    of = cluster(drained=True)
    record = maintenance.make_record(
        of, of.node("node2"), [away(), away(before=4, instance="other")]
    )
    web1 = {"home": ["node-2"], "away": ["node-3"]}
    assert record == {"drained": True, "instances": {"inst-web1": web1}}


def test_a_second_start_keeps_the_first_home() -> None:
    before = {"drained": False, "instances": {"inst-web1": {"home": ["node-4"], "away": ["gone"]}}}
    of = cluster(maintenance=before, drained=True)
    record = maintenance.make_record(of, of.node("node2"), [away()])
    web1 = {"home": ["node-4"], "away": ["node-3"]}
    assert record == {"drained": False, "instances": {"inst-web1": web1}}
    assert before["instances"] == {"inst-web1": {"home": ["node-4"], "away": ["gone"]}}


def remembered(home: str, where: str = "node-3") -> dict[str, object]:
    return {"drained": False, "instances": {"inst-web1": {"home": [home], "away": [where]}}}


def homes(of: Config) -> tuple[dict[str, list[str]], dict[str, str]]:
    return maintenance.homes(of, [of.node("node2")])


def test_who_is_still_away_comes_back() -> None:
    of = cluster(maintenance=remembered("node-2"))
    assert homes(move(of, "node-3")) == ({"web1": ["node2.example.com"]}, {})
    assert homes(of) == ({}, {})  # it is at home
    assert homes(move(of, "node-4")) == ({}, {"web1": "it was moved by somebody else since"})


def test_who_has_no_home_any_more_stays() -> None:
    of = move(cluster(maintenance=remembered("node-9")), "node-3")
    assert homes(of) == ({}, {"web1": "a node that it came from was removed"})


def test_a_removed_instance_is_forgotten() -> None:
    of = cluster(maintenance=remembered("node-2"))
    gone = of.apply([], [("instances", "inst-web1")], None, mtime=4.0)
    assert homes(gone) == ({}, {})
    assert maintenance.homes(gone, [gone.node("node3")]) == ({}, {})

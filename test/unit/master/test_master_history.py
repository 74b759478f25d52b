"""Questions about the past of the configuration: whose, since when, by which job."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ganeti import constants, errors
from ganeti.config import store as store_module
from ganeti.config.changes import Author
from ganeti.config.store import Store
from ganeti.master import history
from ganeti.model import base
from ganeti.model.cluster import Cluster
from ganeti.model.config import Config, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.paths import Paths

BORN = 1_700_000_000.0


class Steps:
    """A minute passes with each change."""

    def __init__(self) -> None:
        self.time = BORN

    def now(self) -> float:
        self.time += 60
        return self.time

    def monotonic(self) -> float:
        return self.time


def node(number: int) -> Node:
    return Node(
        uuid=f"node-{number}",
        name=f"node{number}.example.com",
        group="group-1",
        primary_ip="127.0.2.1",
        secondary_ip="127.0.2.1",
    )


def instance(uuid: str, short: str, **more: Any) -> Instance:
    return Instance(
        **{"uuid": uuid, "name": f"{short}.example.com", "primary_node": "node-1", **more}
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    cluster = Cluster(
        uuid="cluster-1",
        cluster_name="cluster.example.com",
        master_node="node-1",
        master_ip="192.0.2.9",
        master_netdev="lo",
        master_netmask=32,
        ctime=BORN,
    )
    groups = {"group-1": NodeGroup(uuid="group-1", name="default")}
    data = ConfigData(
        version=constants.CONFIG_VERSION,
        cluster=cluster,
        ctime=BORN,
        mtime=BORN,
        nodes={"node-1": node(1), "node-2": node(2)},
        nodegroups=groups,
    )
    paths = Paths(tmp_path)
    paths.data.mkdir(parents=True)
    store_module.write_checkpoint(Config(data), paths)
    made = Store(paths, Steps())
    yield made
    made.close()


def put(store: Store, *objects: Any, job: int = 0, name: str = "put") -> None:
    def edit(draft: Any) -> None:
        for obj in objects:
            draft.put(obj)

    store.change(name, Author(job=job, user="alice", reason="why"), edit)


def delete(store: Store, *objects: Any) -> None:
    store.change("delete", Author(), lambda d: [d.delete(obj) for obj in objects])


def ask(store: Store, **wanted: Any) -> dict[str, Any]:
    return history.query(store.current, store.history, wanted)


def find_serials(store: Store, **wanted: Any) -> list[int]:
    return [change["serial"] for change in ask(store, **wanted)["changes"]]


def diff(store: Store, begin: float, end: float) -> dict[str, Any]:
    return history.diff(store.current, store.history, begin, end)


def at(serial: int) -> float:
    """When the change was made that led to a serial."""
    return BORN + 60 * (serial - 1)


@pytest.fixture
def life(store: Store) -> Store:
    """Serials 2 to 9: an instance with a disk comes, moves, is renamed, grows and goes."""
    disk = Disk(uuid="disk-1", dev_type=DiskTemplate.FILE, iv_name="disk/0", size=8)
    web = instance("inst-1", "web", disks=("disk-1",))
    put(store, disk, web, job=2)
    put(store, base.replace(web, primary_node="node-2"), job=3)
    put(store, base.replace(disk, size=16), job=4)
    put(store, instance("inst-2", "mail"), job=5)
    store.checkpoint()
    put(store, base.replace(web, name="shop.example.com", primary_node="node-2"), job=6)
    put(store, base.replace(disk, size=32), job=7)
    delete(store, store.current.instances["inst-1"], disk)
    put(store, instance("inst-3", "web"), job=9)
    return store


def test_everything_in_order(life):
    answer = ask(life)
    assert [c["serial"] for c in answer["changes"]] == list(range(2, 10))
    first = answer["changes"][0]
    assert {k: first[k] for k in ("time", "name", "job", "user", "reason", "others")} == {
        "time": at(2),
        "name": "put",
        "job": 2,
        "user": "alice",
        "reason": "why",
        "others": 0,
    }
    assert [(o["kind"], o["change"], o["name"]) for o in first["objects"]] == [
        ("instance", "added", "web.example.com"),
        ("disk", "added", "disk/0"),
    ]
    assert answer["changes"][6]["job"] is None
    assert (answer["more"], answer["missing"]) == (False, [])
    assert answer["begins"] == {"serial": 1, "time": BORN}


def test_a_name_stands_for_all_that_had_it(life):
    # the disk belongs to it; what came after it was renamed is of another name
    assert find_serials(life, object="web.example.com") == [2, 3, 4, 6, 9]
    assert find_serials(life, object="web") == [2, 3, 4, 6, 9]
    assert find_serials(life, object="shop.example.com") == [2, 3, 4, 6, 7, 8]
    assert find_serials(life, object="shop") == [2, 3, 4, 6, 7, 8]
    assert find_serials(life, object="inst-1") == [2, 3, 4, 6, 7, 8]
    assert find_serials(life, object="inst-3") == [9]
    assert find_serials(life, object="disk-1") == [2, 4, 7, 8]
    assert find_serials(life, object="mail") == [5]


def test_values_and_disks_have_names(life):
    answer = ask(life, object="inst-1")
    moved = answer["changes"][1]["objects"][0]
    assert moved["keys"] == [{"key": "primary_node", "old": "node-1", "new": "node-2"}]
    assert answer["names"]["node-2"] == "node2.example.com"
    assert answer["changes"][2]["objects"][0]["owner"] == "shop.example.com"
    delete(life, life.current.nodes["node-2"])
    assert ask(life)["names"]["node-2"] == "node2.example.com"  # it is gone, but known


def test_an_object_without_changes_is_known(life):
    assert find_serials(life, object="node2") == []
    assert find_serials(life, object="default") == []
    assert find_serials(life, object="cluster") == []
    life.change("x", Author(), lambda d: d.update_cluster(tags=("a",), cluster_name="new"))
    for name in ("cluster", "new", "cluster-1", "cluster.example.com"):
        assert find_serials(life, object=name) == [10]


@pytest.mark.parametrize("name", ["nobody", "we", "", "example.com", 'a"b', "wéb", "x" * 5000])
def test_an_unknown_object_is_refused(life, name):
    with pytest.raises(errors.OpPrereqError, match="is not known, and no change of it") as caught:
        ask(life, object=name)
    assert caught.value.args[1] == "unknown_entity"


def test_filters_go_together(life):
    assert find_serials(life, job=3) == [3]
    assert find_serials(life, job=99) == []
    assert find_serials(life, object="inst-1", job=4) == [4]
    assert find_serials(life, kind="disk") == [2, 4, 7, 8]
    assert find_serials(life, kind="disk", job=7) == [7]
    assert find_serials(life, kind="nodegroup") == find_serials(life, kind="node") == []
    assert find_serials(life, since=at(4), until=at(6)) == [4, 5, 6]
    assert find_serials(life, object="inst-1", since=at(4), until=at(5)) == [4]
    # what tells which object was meant may be newer than what was requested
    assert find_serials(life, object="shop.example.com", until=at(5)) == [2, 3, 4]
    change = ask(life, kind="disk", job=2)["changes"][0]
    assert ([o["kind"] for o in change["objects"]], change["others"]) == (["disk"], 1)


def test_the_newest_count_when_there_are_too_many(life):
    answer = ask(life, limit=3)
    assert [c["serial"] for c in answer["changes"]] == [7, 8, 9]
    assert answer["more"]
    assert not ask(life, limit=8)["more"]


@pytest.mark.parametrize(
    "wanted",
    [
        {"since": "yesterday"},
        {"since": True},
        {"until": 10**400},
        {"since": 5, "until": 4},
        {"job": 0},
        {"job": "7"},
        {"limit": -1},
        {"limit": True},
        {"object": 5},
        {"kind": "tree"},
        {"kind": []},
        {"objct": "web"},
    ],
)
def test_a_filter_without_sense_is_refused(life, wanted):
    with pytest.raises(errors.OpPrereqError) as caught:
        ask(life, **wanted)
    assert caught.value.args[1] == "wrong_input"


def test_filters_of_other_shapes(life):
    assert len(history.query(life.current, life.history, None)["changes"]) == 8
    with pytest.raises(errors.OpPrereqError, match="must be an object"):
        history.query(life.current, life.history, ["web"])


def test_a_short_name_of_two_instances_is_refused(life):
    put(life, instance("inst-8", "db"), instance("inst-9", "db", name="db.example.org"))
    with pytest.raises(errors.OpPrereqError, match="ambiguous"):
        ask(life, object="db")


# differences between two times


def test_a_difference_between_two_times(life):
    answer = diff(life, at(3), at(6) + 1)
    assert answer["from"] == {"serial": 3, "time": at(3)}
    assert answer["to"] == {"serial": 6, "time": at(6) + 1}
    told = [(o["kind"], o["uuid"], o["change"], o["serials"], o["jobs"]) for o in answer["objects"]]
    assert told == [
        ("instance", "inst-2", "added", [5], [5]),
        ("instance", "inst-1", "changed", [6], [6]),
        ("disk", "disk-1", "changed", [4], [4]),
    ]
    assert answer["objects"][2]["keys"] == [{"key": "size", "old": 8, "new": 16}]


def test_a_difference_from_the_beginning_until_now(life):
    answer = diff(life, BORN, at(9) + 1000)
    assert (answer["from"]["serial"], answer["to"]["serial"]) == (1, 9)
    told = {o["uuid"]: o["change"] for o in answer["objects"]}
    assert told == {"inst-2": "added", "inst-3": "added"}  # inst-1 came and went
    assert diff(life, at(5), at(5))["objects"] == []
    assert diff(life, at(9), at(9) + 500)["objects"] == []
    same = diff(life, at(5) + 10, at(5) + 20)
    assert (same["from"]["serial"], same["to"]["serial"]) == (5, 5)


def test_times_that_cannot_be_compared(life):
    with pytest.raises(errors.OpPrereqError, match="name the earlier time first"):
        diff(life, at(5), at(4))
    with pytest.raises(errors.OpPrereqError, match="the history on this node begins at 2023-11-1"):
        diff(life, BORN - 1, at(4))
    for wrong in ("now", None, True, 10**400):
        with pytest.raises(errors.OpPrereqError, match=r"must be a time|not a valid time"):
            diff(life, wrong, at(4))  # type: ignore[arg-type]


def test_a_master_that_missed_something_says_what(life, monkeypatch):
    monkeypatch.setattr("ganeti.config.history.SMALL", 10)
    life.checkpoint()
    kept = life.history.segments()
    assert [(s.first, s.last) for s in kept] == [(6, 9), (2, 5)]
    kept[1].path.rename(kept[1].path.with_name("2-3.gz"))
    rest = kept[1].path.with_name("2-3.gz")
    lines = gzip.decompress(rest.read_bytes()).splitlines(keepends=True)
    rest.write_bytes(gzip.compress(b"".join(lines[:2])))
    answer = ask(life)
    assert [c["serial"] for c in answer["changes"]] == [2, 3, 6, 7, 8, 9]
    assert answer["missing"] == [[4, 5]]
    assert answer["begins"] == {"serial": 6, "time": at(6)}
    with pytest.raises(errors.OpPrereqError, match=r"begins at .* \(change 6\)"):
        diff(life, at(3), at(9))
    assert diff(life, at(6), at(9))["from"]["serial"] == 6
    assert ask(life, since=at(6))["missing"] == [[4, 5]]
    assert ask(life, since=at(7))["missing"] == []


def test_secrets_stay_on_the_master(life):
    pw = "S3CR3T"
    put(life, instance("inst-2", "mail", osparams_private={"pw": pw}))
    put(life, instance("inst-2", "mail", osparams_private={"pw": pw + "2", "key": [pw]}))
    put(life, instance("inst-7", "new", osparams_private={"pw": pw}))
    delete(life, life.current.instances["inst-2"])
    answers = repr(
        (
            ask(life),
            ask(life, object="inst-2"),
            diff(life, at(9), at(20)),
            diff(life, at(10), at(11)),
            diff(life, BORN, at(20)),
        )
    )
    assert "osparams_private" in answers
    assert pw not in answers

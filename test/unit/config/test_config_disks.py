"""Disks as objects of their own: added, attached, detached, removed, and found again."""

from __future__ import annotations

import pytest
from config_samples import disk, instance

from ganeti import errors
from ganeti.config import verify
from ganeti.config.changes import Author
from ganeti.model import base
from ganeti.model.enums import DiskTemplate

WHO = Author(job=3)


@pytest.fixture
def three(store):
    """Disks a, b, c of web2, and a loose one."""

    def edit(draft):
        made = [disk(uuid, "web2", index, name=uuid * 2) for index, uuid in enumerate("abc")]
        draft.add_instance(instance(2, disks=("a", "b", "c")), made)
        draft.add_disk(disk("loose", "x", 7, name="spare"))

    store.change("setup", WHO, edit)
    return store


def order(store, number=2):
    uuids = store.current.instances[f"inst-{number}"].disks
    names = [store.current.disks[uuid].iv_name for uuid in uuids]
    assert names == [f"disk/{index}" for index in range(len(uuids))]
    assert verify.problems(store.current) == []
    return list(uuids)


@pytest.mark.parametrize(
    ("index", "expected"),
    [(0, ["loose", "a", "b", "c"]), (1, ["a", "loose", "b", "c"]), (3, ["a", "b", "c", "loose"])],
)
def test_attached_disks_move_the_later_ones_up(three, index, expected):
    owner = three.current.instances["inst-2"]
    wanted = [*owner.disks[:index], "loose", *owner.disks[index:]]
    three.change("attach", WHO, lambda d: d.set_disks(owner, wanted))
    assert order(three) == expected
    assert three.current.owner("loose").name == "web2.example.com"


def test_detached_disks_go_on_existing(three):
    now = three.current
    three.change("detach", WHO, lambda d: d.set_disks(now.instances["inst-2"], ["b", "c"]))
    assert order(three) == ["b", "c"]
    assert three.current.owner("a") is None
    assert three.current.disks["a"].logical_id == now.disks["a"].logical_id


def test_a_disk_goes_from_one_instance_to_another_in_one_change(three):
    now = three.current
    source, target = now.instances["inst-2"], now.instances["inst-1"]

    def edit(draft):
        draft.set_disks(source, ["a", "c"])
        draft.set_disks(target, ["b", "disk-1"])

    three.change("hand-over", WHO, edit)
    assert order(three) == ["a", "c"]
    assert order(three, 1) == ["b", "disk-1"]


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda d, n: d.set_disks(n.instances["inst-1"], ["new"]), "does not exist"),
        (lambda d, n: d.remove_disk(n.disks["a"]), "is attached to instance web2"),
        (lambda d, n: d.add_disk(n.disks["loose"]), "exists already"),
        (lambda d, n: d.set_disks(n.instances["inst-1"], ["loose", "loose"]), "a disk twice"),
        (lambda d, n: d.set_disks(n.instances["inst-1"], ["c"]), "attached to instance web2"),
    ],
)
def test_what_would_break_the_configuration_changes_nothing(three, edit, text):
    before = three.current
    with pytest.raises(errors.ConfigurationError, match=text):
        three.change("wrong", WHO, lambda draft: edit(draft, before))
    assert three.current is before


def test_a_removed_mirror_gives_its_port_back(store):
    mirror = disk(
        "m",
        "x",
        dev_type=DiskTemplate.DRBD,
        nodes=("node-1", "node-2"),
        logical_id=("node-1", "node-2", 11005, 0, 0, "key"),
    )
    store.change("add", WHO, lambda d: d.add_disk(mirror))
    store.change("remove", WHO, lambda d: d.remove_disk(mirror))
    assert "m" not in store.current.disks
    assert 11005 in store.current.cluster.tcpudp_port_pool


def test_an_instance_takes_its_disks_with_it(three):
    gone = three.current.instances["inst-2"]
    three.change("remove", WHO, lambda d: d.remove_instance(gone))
    assert set(three.current.disks) == {"disk-1", "loose"}


def test_disks_are_found_by_uuid_name_and_place(three):
    now = three.current
    assert now.disk("a").uuid == "a"
    assert now.disk("spare").uuid == "loose"
    assert now.disk("web2/1").uuid == "b"
    for wrong, text in (
        ("sparse", r"not known \(did you mean spare"),
        ("web2/3", "it has 3"),
        ("web9/0", "instance 'web9' is not known"),
        ("", "not known"),
    ):
        with pytest.raises(errors.OpPrereqError, match=text):
            now.disk(wrong)


def test_a_name_that_two_disks_have_needs_the_uuid(three):
    twin = base.replace(three.current.disks["a"], name="spare")
    three.change("name", WHO, lambda d: d.put(twin))
    with pytest.raises(errors.OpPrereqError, match=r"2 disks are called 'spare'.*a, loose"):
        three.current.disk("spare")

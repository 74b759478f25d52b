"""Names of snapshots, of what they can be made, and what they forbid."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import config, node, with_instance

from ganeti import errors
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import Consistency, DiskTemplate
from ganeti.model.instance import Instance
from ganeti.model.snapshot import FrozenDisk, Snapshot
from ganeti.ops.planning import snapshots

DISK = Disk(
    uuid="disk-a",
    dev_type=DiskTemplate.FILE,
    logical_id=("loop", "/srv/a"),
    iv_name="disk/0",
    size=10,
    nodes=("node-2",),
)
VOLUME = base.replace(DISK, uuid="disk-b", dev_type=DiskTemplate.PLAIN, logical_id=("vg", "b"))
MIRROR = base.replace(VOLUME, uuid="disk-c", dev_type=DiskTemplate.DRBD, children=(VOLUME, VOLUME))
OBJECT = base.replace(DISK, uuid="disk-o", dev_type=DiskTemplate.RBD, logical_id=("rbd", "a"))
DEVICE = base.replace(DISK, uuid="disk-d", dev_type=DiskTemplate("blockdev"))


def make_snapshot(name: str, number: int = 1, **more: Any) -> Snapshot:
    return Snapshot(uuid=f"uuid-{number}", name=name, created=1.0, **more)


def instance(*made: Snapshot) -> Instance:
    found = with_instance(config(node(2)), "web1", "node-2").instances["inst-web1"]
    return base.replace(found, snapshots=made)


@pytest.mark.parametrize("name", ["a", "before-upgrade", "3.2+x_y", "a" * 63])
def test_names_that_can_be(name: str) -> None:
    snapshots.check_new_name(instance(make_snapshot("other")), name)


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "a" * 64])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=r"invalid name"):
        snapshots.check_new_name(instance(), name)


def test_long_names_are_quoted_in_part() -> None:
    with pytest.raises(errors.OpPrereqError, match=f"name '{'a' * 80}' of a snapshot"):
        snapshots.check_new_name(instance(), "a" * 81)
    with pytest.raises(errors.OpPrereqError, match=f"no snapshot '{'a' * 80}'"):
        snapshots.find(instance(), "a" * 81)


def test_a_name_is_used_once_and_the_number_is_limited() -> None:
    with pytest.raises(errors.OpPrereqError, match=r"web1 has a snapshot 'old' already"):
        snapshots.check_new_name(instance(make_snapshot("old")), "old")
    many = [make_snapshot(f"s{number}", number) for number in range(snapshots.MOST)]
    snapshots.check_new_name(instance(*many[1:]), "new")
    with pytest.raises(errors.OpPrereqError, match=r"has 32 snapshots, which is the limit"):
        snapshots.check_new_name(instance(*many), "new")


def test_a_snapshot_is_found_by_name_or_uuid() -> None:
    of = instance(make_snapshot("old"), make_snapshot("new", 2))
    assert snapshots.find(of, "new").uuid == "uuid-2"
    assert snapshots.find(of, "uuid-1").name == "old"
    with pytest.raises(errors.OpPrereqError, match=r"has no snapshot 'odl'.*old"):
        snapshots.find(of, "odl")


def test_an_interrupted_snapshot_is_not_ready() -> None:
    of = instance(make_snapshot("old"), make_snapshot("new", 2, creating=7))
    assert snapshots.find_ready(of, "old").name == "old"
    with pytest.raises(errors.OpPrereqError, match=r"job 7 .*snapshot remove web1 new"):
        snapshots.find_ready(of, "new")


def test_a_draft_names_a_copy_of_each_disk() -> None:
    found = snapshots.draft(
        [DISK, VOLUME],
        uuid="u",
        name="old",
        description="text",
        created=5.0,
        consistency=Consistency.CRASH,
        job=7,
    )
    assert (found.uuid, found.name, found.description, found.created) == ("u", "old", "text", 5.0)
    assert (found.consistency, found.creating, found.reverting) == (Consistency.CRASH, 7, None)
    assert [(each.disk, each.volume, each.size) for each in found.disks] == [
        ("disk-a", "u.snap0", 10),
        ("disk-b", "u.snap1", 10),
    ]
    assert found.disks[0].nodes == ("node-2",)


def test_volumes_can_be_frozen_also_below_a_mirror() -> None:
    assert snapshots.freezes(VOLUME)
    assert snapshots.freezes(MIRROR)
    assert snapshots.freezes(DISK)
    assert not snapshots.freezes(OBJECT)


def test_disks_that_are_copied_whole_need_a_stopped_guest() -> None:
    of = instance()
    snapshots.check_copyable(of, [OBJECT, VOLUME], runs=False)
    snapshots.check_copyable(of, [VOLUME, MIRROR], runs=True)
    with pytest.raises(errors.OpPrereqError, match=r"disk/0 .*template rbd.*stop the instance"):
        snapshots.check_copyable(of, [VOLUME, OBJECT], runs=True)


def test_of_nothing_and_of_devices_of_others_there_is_no_snapshot() -> None:
    with pytest.raises(errors.OpPrereqError, match=r"web1 has no disks"):
        snapshots.check_copyable(instance(), [], runs=False)
    with pytest.raises(errors.OpPrereqError, match=r"template blockdev: the cluster does not own"):
        snapshots.check_copyable(instance(), [DEVICE], runs=False)


def test_snapshots_bind_disks() -> None:
    snapshots.check_none(instance(), "first")
    with pytest.raises(errors.OpPrereqError, match=r"remove them first: .*remove web1 old new"):
        snapshots.check_none(instance(make_snapshot("old"), make_snapshot("new", 2)), "first")


def test_a_disk_with_a_copy_stays() -> None:
    copy = FrozenDisk(disk="disk-a", volume="v", size=10)
    of = instance(make_snapshot("none"), make_snapshot("old", 2, disks=(copy,)))
    snapshots.check_detachable(of, VOLUME)
    with pytest.raises(errors.OpPrereqError, match=r"'old' of instance web1 has a copy of disk/0"):
        snapshots.check_detachable(of, DISK)


def test_an_interrupted_revert_must_end_before_a_start() -> None:
    snapshots.check_complete(instance(make_snapshot("old")))
    with pytest.raises(errors.OpPrereqError, match=r"job 9 .*revert web1 new"):
        snapshots.check_complete(
            instance(make_snapshot("old"), make_snapshot("new", 2, reverting=9))
        )

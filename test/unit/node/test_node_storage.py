"""Storage units of a node, and what is written into its disks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import loop_lvm
import msgspec
import pytest
from local_node import LocalNode
from node_samples import INSTANCE, disk, instance

from ganeti import errors
from ganeti.model.enums import LocalDisk
from ganeti.node.context import NodeContext
from ganeti.node.disk_states import combine
from ganeti.paths import Paths
from ganeti.rpc.objects import BlockDevStatus, CopyStatus, NodeDisk

MIB = 1024 * 1024


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[loop_lvm.LoopDisks]:
    """Volume group ``xenvg`` on two disks of 124 usable MiB each."""
    loop_lvm.skip_if_unavailable()
    with loop_lvm.loop_disks(tmp_path / "lvm", 128, 128) as made:
        monkeypatch.setenv("LVM_SYSTEM_DIR", str(made.home))
        made.group("xenvg")
        yield made


def test_groups_and_volumes(node: LocalNode, disks: loop_lvm.LoopDisks) -> None:
    assert node.vg_list() == {"xenvg": 248}
    disks.lvm("lvcreate", "-n", "small", "-L", "8m", "--yes", "xenvg", disks.devices[0])
    disks.lvm("lvcreate", "-n", "wide", "-L", "200m", "--yes", "xenvg")
    assert node.lv_list(["xenvg"])["xenvg/small"][0] == "8.00"
    assert sorted(node.lv_list([])) == ["xenvg/small", "xenvg/wide"]
    rows = {(row["name"], row["dev"]) for row in node.node_volumes()}
    assert rows == {
        ("small", disks.devices[0]),
        ("wide", disks.devices[0]),
        ("wide", disks.devices[1]),
    }
    with pytest.raises(errors.BlockDeviceError, match='"nonevg" not found'):
        node.lv_list(["nonevg"])


def test_room_of_groups(node: LocalNode, disks: loop_lvm.LoopDisks) -> None:
    disks.lvm("lvcreate", "-n", "v", "-L", "8m", "--yes", "xenvg", disks.devices[0])

    def room(kind: str, *params: bool, name: str = "xenvg") -> tuple[object, object]:
        [answer] = node.node_info([(kind, name, list(params))], [])[1] or []
        return answer["storage_size"], answer["storage_free"]

    assert room("lvm-vg", False) == (248, 240)
    # What is left on a disk that is in use is of no use where disks share no hardware.
    assert room("lvm-vg", True) == (248, 124)
    assert room("lvm-pv", True) == (2, 1)
    assert room("lvm-pv", False) == (0, 0)
    assert room("lvm-vg", False, name="nonevg") == (None, None)


def test_units_and_their_settings(node: LocalNode, disks: loop_lvm.LoopDisks, paths: Paths) -> None:
    fields = ["name", "size", "free", "used", "allocatable"]
    assert node.storage_list("lvm-vg", [], None, fields) == [["xenvg", 248, 248, 0, True]]
    first, second = disks.devices
    node.storage_modify("lvm-pv", [], first, {"allocatable": False})
    node.storage_modify("lvm-pv", [], first, {"allocatable": False})
    listed = node.storage_list("lvm-pv", [], None, ["name", "allocatable"])
    assert sorted(listed) == sorted([[first, False], [second, True]])
    assert node.storage_list("lvm-pv", [], second, ["name"]) == [[second]]
    (paths.file_storage / "data").write_bytes(b"x" * MIB)
    [[used]] = node.storage_list("file", [["/srv/ganeti/file-storage"]], None, ["used"])
    assert used == 1


def test_what_units_cannot_do(node: LocalNode, disks: loop_lvm.LoopDisks) -> None:
    for call in (
        lambda: node.storage_list("ext", [], None, ["name"]),
        lambda: node.storage_list("lvm-vg", [], None, ["colour"]),
        lambda: node.storage_modify("lvm-vg", [], "xenvg", {"allocatable": True}),
        lambda: node.storage_modify("lvm-pv", [], disks.devices[0], {"size": 3}),
        lambda: node.storage_modify("lvm-pv", [], disks.devices[0], {"allocatable": "no"}),
        lambda: node.storage_modify("lvm-pv", [], "--all", {"allocatable": False}),
        lambda: node.storage_execute("lvm-vg", [], "xenvg", "format"),
        lambda: node.storage_execute("lvm-vg", [], "nonevg", "fix-consistency"),
    ):
        with pytest.raises(errors.StorageError):
            call()


def test_a_lost_disk_is_seen_by_verification_and_repaired(
    node: LocalNode, disks: loop_lvm.LoopDisks
) -> None:
    disks.lose(1)
    answer = node.node_verify({"pvlist": ["xenvg"], "vglist": None}, "c", {})
    assert [pv["attributes"][-1] for pv in answer["pvlist"]] == ["-", "m"]
    node.storage_execute("lvm-vg", [], "xenvg", "fix-consistency")
    assert len(node.node_verify({"pvlist": ["xenvg"]}, "c", {})["pvlist"]) == 1


def test_sizes_of_block_devices_only(node: LocalNode, disks: loop_lvm.LoopDisks) -> None:
    asked = [disks.devices[0], "/dev/null", "/etc/passwd", "/dev/../etc/passwd", "/dev/gone"]
    assert node.bdev_sizes(asked) == {disks.devices[0]: 128}


# content


def make_disk(
    node: LocalNode, paths: Paths, index: int = 0, size: int = 8
) -> tuple[NodeDisk, Path]:
    item = msgspec.structs.replace(disk(paths, index), size=size)
    node.blockdev_create(item, size, INSTANCE, True, "", False)
    return item, Path(item.logical_id[1])


def copy_disk(node: LocalNode, source: NodeDisk, target: NodeDisk) -> CopyStatus:
    copy = node.disk_convert(source, target)
    while not (found := node.copy_status(copy)).ended:
        pass
    return found


def test_a_part_of_a_disk_is_wiped(node: LocalNode, paths: Paths) -> None:
    item, file = make_disk(node, paths)
    file.write_bytes(b"\xff" * (8 * MIB))
    node.blockdev_wipe(item, 1, 5)
    content = file.read_bytes()
    assert content[:MIB] == b"\xff" * MIB
    assert content[MIB : 6 * MIB] == bytes(5 * MIB)
    assert content[6 * MIB :] == b"\xff" * (2 * MIB)
    node.blockdev_wipe(item, 8, 0)
    for offset, size in ((4, 5), (-1, 2), (0, -1), (9, 0)):
        with pytest.raises(errors.BlockDeviceError, match="cannot wipe"):
            node.blockdev_wipe(item, offset, size)
    assert file.stat().st_size == 8 * MIB


def test_a_disk_is_copied_into_a_larger_one(node: LocalNode, paths: Paths) -> None:
    source, old = make_disk(node, paths, 0, 8)
    target, new = make_disk(node, paths, 1, 12)
    small, _file = make_disk(node, paths, 2, 4)
    content = bytes(range(256)) * (8 * MIB // 256)
    old.write_bytes(content)
    copy_disk(node, source, target)
    assert new.read_bytes() == content + bytes(4 * MIB)
    with pytest.raises(errors.BlockDeviceError, match="it has 4 MiB"):
        copy_disk(node, source, small)


def test_a_disk_is_copied_over_an_old_one(node: LocalNode, paths: Paths) -> None:
    source, old = make_disk(node, paths, 0, 8)
    target, new = make_disk(node, paths, 1, 8)
    new.write_bytes(b"\xff" * (8 * MIB))
    with old.open("r+b") as stream:
        stream.seek(3 * MIB + 17)
        stream.write(b"something")
    found = copy_disk(node, source, target)
    assert new.read_bytes() == old.read_bytes()
    assert found.done == 8 * MIB
    assert 7 * MIB < found.zeros < 8 * MIB


def test_a_copy_ends_when_its_master_is_gone(paths: Paths) -> None:
    clock = SimpleNamespace(now=time.time, monotonic=itertools.count(0, 301).__next__)
    node = LocalNode(NodeContext(paths, "node1.example.com", clock=clock))
    source, _old = make_disk(node, paths, 0, 8)
    target, _new = make_disk(node, paths, 1, 8)
    with pytest.raises(errors.BlockDeviceError, match="the master has not asked for 300 s"):
        copy_disk(node, source, target)


def test_the_stop_of_the_daemon_ends_long_writes(
    node: LocalNode, context: NodeContext, paths: Paths
) -> None:
    item, _file = make_disk(node, paths)
    context.stopping.set()
    with pytest.raises(errors.BlockDeviceError, match="ended early"):
        node.blockdev_wipe(item, 0, 8)


# states


def test_a_disk_is_no_better_than_what_it_is_built_on() -> None:
    own = BlockDevStatus(dev_path="/dev/drbd0", sync_percent=80.0, estimated_time=5)
    below = BlockDevStatus(dev_path="/x", is_degraded=True, ldisk_status=LocalDisk.FAULTY)
    found = combine(own, [BlockDevStatus(dev_path="/y"), below])
    assert (found.dev_path, found.sync_percent, found.estimated_time) == ("/dev/drbd0", 80.0, 5)
    assert (found.is_degraded, found.ldisk_status) == (True, LocalDisk.FAULTY)
    slower = BlockDevStatus(dev_path="/z", sync_percent=20.0, estimated_time=50)
    assert combine(own, [slower]).sync_percent == 20.0
    assert combine(own, [slower]).estimated_time == 50


def test_states_of_many_disks_do_not_hide_each_other(node: LocalNode, paths: Paths) -> None:
    item, _file = make_disk(node, paths)
    gone = disk(paths, 1)
    [good, bad] = node.blockdev_getmirrorstatus_multi([item, gone])
    assert good[0] is True
    assert (bad[0], "is not on this node" in str(bad[1])) == (False, True)
    with pytest.raises(errors.BlockDeviceError):
        node.blockdev_getmirrorstatus([item, gone])
    assert node.blockdev_pause_resume_sync([item, gone], True)[0] == (True, None)


def test_closing_a_disk_takes_its_link_away(node: LocalNode, paths: Paths) -> None:
    item, file = make_disk(node, paths)
    node.blockdev_assemble(item, instance(paths), True, 0)
    link = paths.instance_disks / f"{INSTANCE}:0"
    assert link.readlink() == file
    node.blockdev_open(INSTANCE, [item], True)
    node.blockdev_close(INSTANCE, [item])
    assert not link.is_symlink()
    node.blockdev_setinfo(item, "text")

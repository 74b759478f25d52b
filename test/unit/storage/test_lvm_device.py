"""Logical volumes: real LVM on loop devices, without activation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loop_lvm import LoopDisks

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import BATCH, NodeDisk
from ganeti.storage import registry
from ganeti.storage.interface import Environment, PlanRequest
from ganeti.storage.lvm import argv, repair, report, tool
from ganeti.storage.lvm import device as lvm

MIB = 1024 * 1024
ENV = Environment(Paths(Path("/nowhere")))


def volume(name: str = "u1.disk0", **more: Any) -> lvm.LvmDevice:
    env = more.pop("env", ENV)
    disk = NodeDisk(
        uuid="d1", dev_type=DiskTemplate.PLAIN, logical_id=("xenvg", name), size=8, **more
    )
    found = registry.device(disk, env)
    assert isinstance(found, lvm.LvmDevice)
    return found


def read_volume(name: str = "u1.disk0") -> report.Volume:
    found = report.volume("xenvg", name)
    assert found is not None
    return found


def test_a_volume_is_made_tagged_found_and_removed(disks: LoopDisks) -> None:
    item = volume()
    assert item.attach() is False
    item.create(20, info="originstname+web1.example.com")
    assert item.attach() is True
    assert read_volume().lv_size == 20 * MIB
    assert read_volume().tags == ["originstname+web1.example.com"]
    item.remove()
    item.remove()
    assert item.attach() is False


def test_a_volume_is_never_made_over_another(disks: LoopDisks) -> None:
    volume().create(8)
    with pytest.raises(errors.BlockDeviceError, match="exists already"):
        volume().create(12)
    assert read_volume().lv_size == 8 * MIB


def test_a_full_group_is_told_in_mebibytes(disks: LoopDisks) -> None:
    with pytest.raises(errors.BlockDeviceError, match="needs 1000 MiB, 372 MiB free in volume gr"):
        volume().create(1000)
    assert report.volumes(["xenvg"]) == []


def test_a_missing_group_is_an_error_and_no_missing_disk(disks: LoopDisks) -> None:
    lost = volume()
    lost.group = "gone"
    for step in (lost.attach, lost.remove, lost.assemble):
        with pytest.raises(errors.BlockDeviceError, match="gone"):
            step()
    with pytest.raises(errors.BlockDeviceError, match="gone"):
        lost.create(4)


def test_volumes_of_an_instance_lie_on_one_disk_and_instances_are_spread(disks: LoopDisks) -> None:
    for index, name in enumerate(["u1.disk0", "u2.disk1"]):
        volume(name).create(40, info="originstname+web1")
        volume(f"m{index}").create(40, info="originstname+mail1")
    web = {disk for name in ("u1.disk0", "u2.disk1") for disk in read_volume(name).disks}
    mail = {disk for name in ("m0", "m1") for disk in read_volume(name).disks}
    assert (len(web), len(mail)) == (1, 1)
    assert web != mail


def test_a_batch_is_put_where_all_of_it_fits(disks: LoopDisks) -> None:
    disks.lvm("lvcreate", "-n", "old", "-L", "32m", "--yes", "xenvg", disks.devices[0])
    disks.lvm("lvcreate", "-n", "old2", "-L", "40m", "--yes", "xenvg", disks.devices[2])
    # 96 MiB together: only the second disk has the room, though each part fits everywhere.
    first = volume("u1.disk0", dynamic_params={BATCH: [[], [40], [16]]})
    first.create(40, info="originstname+web1")
    assert read_volume("u1.disk0").disks == [disks.devices[1]]


def test_a_volume_spills_over_when_no_disk_has_room(disks: LoopDisks) -> None:
    volume().create(200)
    assert len(read_volume().disks) == 2


def test_disks_that_may_not_be_used_are_not_used(disks: LoopDisks) -> None:
    for device in disks.devices[:2]:
        disks.lvm("pvchange", "--allocatable", "n", device)
    volume().create(8)
    assert read_volume().disks == [disks.devices[2]]
    with pytest.raises(errors.BlockDeviceError, match="needs 200 MiB, 116 MiB free"):
        volume("u2").create(200)


def test_stripes_come_from_the_parameters(disks: LoopDisks) -> None:
    volume(params={"stripes": 2}).create(24)
    assert read_volume().stripes == 2
    assert len(read_volume().disks) == 2
    # More stripes than disks are as many as there are.
    volume("wide", params={"stripes": 8}).create(24)
    assert read_volume("wide").stripes == 3


def test_a_striped_volume_grows_by_whole_stripes(disks: LoopDisks) -> None:
    item = volume(params={"stripes": 3})
    item.create(12)
    item.grow(4)
    assert read_volume().lv_size == 24 * MIB


def test_growing(disks: LoopDisks) -> None:
    item = volume()
    item.create(8)
    item.grow(4, dry_run=True)
    assert read_volume().lv_size == 8 * MIB
    item.grow(4)
    item.grow(0)
    assert read_volume().lv_size == 12 * MIB
    assert len(read_volume().disks) == 1
    for dry_run in (True, False):
        with pytest.raises(errors.BlockDeviceError, match="Insufficient"):
            item.grow(100_000, dry_run=dry_run)
        with pytest.raises(errors.BlockDeviceError, match="only grow"):
            item.grow(-4, dry_run=dry_run)
    assert read_volume().lv_size == 12 * MIB
    with pytest.raises(errors.BlockDeviceError, match="/dev/xenvg/none does not exist"):
        volume("none").grow(4)


def test_an_existing_volume_is_adopted_by_its_name(disks: LoopDisks) -> None:
    disks.lvm("lvcreate", "-n", "data-of-old", "-L", "8m", "--yes", "xenvg")
    item = volume("data-of-old")
    for _twice in range(2):
        item.rename(("xenvg", "u7.disk0"))
    assert item.path.endswith("/dev/xenvg/u7.disk0")
    assert read_volume("u7.disk0").lv_size == 8 * MIB
    assert volume("data-of-old").attach() is False
    volume("data-of-old").rename(("xenvg", "u7.disk0"))


def test_renaming_refuses_what_would_lose_a_volume(disks: LoopDisks) -> None:
    volume("a").create(4)
    volume("b").create(4)
    with pytest.raises(errors.BlockDeviceError, match="exists already"):
        volume("a").rename(("xenvg", "b"))
    with pytest.raises(errors.BlockDeviceError, match="another volume group"):
        volume("a").rename(("othervg", "c"))
    with pytest.raises(errors.BlockDeviceError, match="does not exist"):
        volume("none").rename(("xenvg", "c"))


def test_the_text_of_a_volume_is_replaced(disks: LoopDisks) -> None:
    item = volume()
    item.create(4, info="originstname+web1")
    item.set_info("originstname+web2 (moved)")
    assert read_volume().tags == ["originstname+web2__moved_"]
    item.set_info("")
    assert read_volume().tags == []


def test_exclusive_storage_takes_whole_disks(disks: LoopDisks) -> None:
    alone = Environment(ENV.paths, exclusive_storage=True)
    with pytest.raises(errors.BlockDeviceError, match="how many spindles"):
        volume(env=alone).create(8)
    volume("shared").create(8)
    volume(env=alone, spindles=1).create(100)
    with pytest.raises(errors.BlockDeviceError, match="needs 2 empty physical volumes"):
        volume("u2", env=alone, spindles=2).create(8)
    with pytest.raises(errors.BlockDeviceError, match="needs 400 MiB, 124 MiB free"):
        volume("u2", env=alone, spindles=1).create(400)
    assert not set(read_volume().disks) & set(read_volume("shared").disks)
    assert volume().spindles() == 1
    with pytest.raises(errors.BlockDeviceError, match="24 MiB free on its own"):
        volume(env=alone).grow(28)
    volume(env=alone).grow(24)
    assert len(read_volume().disks) == 1


def test_a_lost_disk_makes_its_volumes_faulty_until_the_group_is_repaired(
    disks: LoopDisks, caplog: pytest.LogCaptureFixture
) -> None:
    for number, device in enumerate(disks.devices):
        disks.lvm("lvcreate", "-n", f"v{number}", "-L", "8m", "--yes", "xenvg", device)
    assert volume("v1").status().ldisk_status == 0
    disks.lose(1)
    status = volume("v1").status()
    assert (status.is_degraded, status.ldisk_status) == (True, 2)
    assert volume("v0").status().is_degraded is False
    assert report.group("xenvg").vg_missing_pv_count == 1
    repair.fix_consistency("xenvg")
    assert "go the volumes: v1" in caplog.text
    assert report.group("xenvg").vg_missing_pv_count == 0
    assert [item.lv_name for item in report.volumes(["xenvg"])] == ["v0", "v2"]
    repair.fix_consistency("xenvg")


def test_a_lost_empty_disk_costs_nothing(disks: LoopDisks) -> None:
    disks.lvm("lvcreate", "-n", "v0", "-L", "8m", "--yes", "xenvg", disks.devices[0])
    disks.lose(2)
    repair.fix_consistency("xenvg")
    assert [item.lv_name for item in report.volumes(["xenvg"])] == ["v0"]


def test_plans_name_the_group_of_the_disk() -> None:
    request = PlanRequest(
        instance_name="web1", disk_uuid="u1", index=2, size=8, nodes=("n1",), vg="fastvg"
    )
    assert lvm.LvmDevice.plan(request) == ("fastvg", "u1.disk2")
    for wrong, message in (("", "no volume group"), ("-x", "cannot be"), ("a/b", "cannot be")):
        with pytest.raises(errors.ParameterError, match=message):
            lvm.LvmDevice.plan(replace(request, vg=wrong))


@pytest.mark.parametrize(
    "logical_id",
    [("xenvg",), ("xenvg", 3), ("xenvg", "../x"), ("xenvg", "--all"), ("..", "x"), ("xenvg", "")]
    + [("xenvg", name) for name in ("snapshot1", "pvmove0", "a_mimage_0", "a_tdata", "a b", ".")],
)
def test_names_that_lvm_would_not_take(logical_id: tuple[Any, ...]) -> None:
    disk = NodeDisk(uuid="d1", dev_type=DiskTemplate.PLAIN, logical_id=logical_id, size=8)
    with pytest.raises(errors.BlockDeviceError):
        registry.device(disk, ENV)


def test_argument_lists() -> None:
    assert argv.create_argv("xenvg", "a", 8, 1, "", []) == [
        *("lvcreate", "--yes", "--wipesignatures", "y", "--zero", "y"),
        *("--size", "8m", "--name", "a", "xenvg"),
    ]
    assert argv.create_argv("xenvg", "a", 8, 2, "t", ["/dev/sda", "/dev/sdb"])[-7:] == [
        *("--stripes", "2", "--addtag", "t", "xenvg", "/dev/sda", "/dev/sdb")
    ]
    assert argv.grow_argv("xenvg/a", 8, "cling", [], test=True) == [
        *("lvextend", "--test", "--alloc", "cling", "--size", "+8m", "xenvg/a")
    ]
    assert argv.snapshot_argv("xenvg", "a", "a.snap", 8, ["t1", "t2"]) == [
        *("lvcreate", "--yes", "--snapshot", "--size", "8m", "--name", "a.snap"),
        *("--addtag", "t1", "--addtag", "t2", "xenvg/a"),
    ]


def test_a_node_without_lvm_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ganeti.base.process.SAFE_PATH", str(tmp_path))
    with pytest.raises(errors.BlockDeviceError, match="LVM is not installed"):
        report.groups()


def test_a_cluster_inside_a_directory_leaves_the_groups_of_the_machine_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LVM_SYSTEM_DIR", raising=False)
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    with pytest.raises(errors.BlockDeviceError, match=r"lvm\.conf does not exist"):
        report.groups()


def test_complaints_are_told_without_warnings() -> None:
    text = '  WARNING: This is old.\n  Volume group "x" not found\n  Cannot process x\n'
    assert tool.reason(text, 5) == 'Volume group "x" not found; Cannot process x'
    assert tool.reason("  WARNING: only this\n", 5) == "WARNING: only this"
    assert tool.reason("", 5) == "exit code 5"


def test_reports_that_make_no_sense() -> None:
    for text in ("", "{}", '{"report": [{"vg": [{"vg_name": "x"}]}]}', "[1]", '{"report": 3}'):
        with pytest.raises(errors.BlockDeviceError, match="cannot be read"):
            report.read_groups(text)
    assert report.read_groups('{"report": [{"vg": []}]}') == []

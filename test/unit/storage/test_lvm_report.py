"""Answers of LVM, as recorded from the real tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti.base import jsonio
from ganeti.storage.lvm import report

RECORDED = jsonio.loads((Path(__file__).parents[2] / "recorded" / "lvm_reports.json").read_text())


def volume(attr: str) -> report.Volume:
    return report.Volume(
        vg_name="xenvg", lv_name="v", lv_size=4, lv_attr=attr, lv_tags="", stripes=1, devices=""
    )


def test_segments_of_a_volume_are_one_volume() -> None:
    first, second = report.read_volumes(RECORDED["lvs_segments"])
    assert (first.lv_name, first.lv_size, first.tags) == (
        "u1.disk0",
        104857600,
        ["originstname+web1"],
    )
    assert second.disks == ["/dev/sdb", "/dev/sda"]
    assert not second.is_faulty
    good, broken = report.read_volumes(RECORDED["lvs_lost"])
    assert (good.is_faulty, broken.is_faulty) == (False, True)


def test_a_lost_disk() -> None:
    [group] = report.read_groups(RECORDED["vgs_lost"])
    assert (group.vg_free, group.vg_missing_pv_count) == (331350016, 1)
    good, lost = report.read_physicals(RECORDED["pvs_lost"])
    assert (good.is_allocatable, good.is_missing) == (True, False)
    assert (lost.pv_name, lost.is_allocatable, lost.is_missing) == ("[unknown]", False, True)


def test_what_lies_on_a_disk() -> None:
    use, full = report.read_segments(RECORDED["pvs_segments"])
    assert (full.volumes, full.free) == (("u2.disk0",), 0)
    assert report.read_segments(RECORDED["pvs_segments_lost"]) == [use]
    assert use.volumes == ("u1.disk0", "u2.disk0")
    assert use.tags == {"originstname+web1", "originstname+web2"}
    assert (use.free, use.extent_size, use.allocatable) == (331350016, 4194304, True)
    assert report.empty([use]) == []


@pytest.mark.parametrize(
    ("attr", "active", "in_use", "faulty"),
    [
        ("-wi-a-----", True, False, False),
        ("-wi-ao----", True, True, False),
        ("-wi-------", False, False, False),
        ("owi-aos---", True, True, False),
        ("-wi-XX----", False, False, False),
        ("-wi-XX--p-", False, False, True),
        ("vwi-a-----", True, False, True),
        ("swi-I-s---", True, False, True),
        ("rwi-a-r-r-", True, False, True),
    ],
)
def test_attributes_of_a_volume(attr: str, active: bool, in_use: bool, faulty: bool) -> None:
    found = volume(attr)
    assert (found.is_active, found.is_open, found.is_faulty) == (active, in_use, faulty)


def test_what_lvm_is_asked() -> None:
    json = ["--reportformat", "json", "--units", "b", "--nosuffix"]
    assert report.volumes_argv(["xenvg"], "v.disk0") == [
        "lvs",
        *json,
        "-o",
        "vg_name,lv_name,lv_size,lv_attr,lv_tags,stripes,devices",
        "--select",
        'lv_name="v.disk0"',
        "xenvg",
    ]
    assert report.segments_argv("xenvg")[-2:] == ["--select", 'vg_name="xenvg"']
    assert report.groups_argv()[:6] == ["vgs", *json]

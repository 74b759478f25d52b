"""Answers of LVM, as recorded from the real tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganeti import errors
from ganeti.base import jsonio, process
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
    assert report.groups_argv("xenvg")[6:] == [*report.groups_argv()[6:], "xenvg"]
    assert report.segments_argv() == report.segments_argv("xenvg")[:-2]
    pvs = ["pvs", *json, "-o"]
    assert report.physicals_argv()[:-1] == pvs
    assert report.physicals_argv()[-1].startswith("pv_name,vg_name,pv_size,pv_free,")


def test_a_report_that_cannot_be_read() -> None:
    for text in ("", "[]", "{}", '{"report": [[]]}', '{"report": [{"vg": [{"vg_name": "a"}]}]}'):
        with pytest.raises(errors.BlockDeviceError, match="LVM's report of vg cannot be read: "):
            report.read_groups(text)


# asking the tools -----------------------------------------------------------------------------


class Tools:
    """Programs ``vgs``, ``lvs`` and ``pvs`` with a recorded answer, and what they were asked."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def answer(self, tool: str, name: str) -> None:
        answer = self._directory / f"{tool}.json"
        answer.write_text(RECORDED.get(name, '{"report": []}'))
        program = self._directory / tool
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{program}.asked\ncat {answer}\n')
        program.chmod(0o755)

    def read_request(self, tool: str) -> list[str]:
        return [tool, *(self._directory / f"{tool}.asked").read_text().splitlines()]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    monkeypatch.setattr(process, "SAFE_PATH", f"{tmp_path}:{process.SAFE_PATH}")
    return Tools(tmp_path)


def test_volume_groups_are_asked_for(tools: Tools) -> None:
    tools.answer("vgs", "vgs_lost")
    assert [found.vg_name for found in report.groups()] == ["xenvg"]
    assert tools.read_request("vgs") == report.groups_argv()
    assert report.group("xenvg").vg_free == 331350016
    assert tools.read_request("vgs") == report.groups_argv("xenvg")


def test_volumes_are_asked_for(tools: Tools) -> None:
    tools.answer("lvs", "lvs_segments")
    assert [found.lv_name for found in report.volumes(["xenvg"])] == ["u1.disk0", "u2.disk0"]
    assert tools.read_request("lvs") == report.volumes_argv(["xenvg"])
    found = report.volume("xenvg", "u1.disk0")
    assert found is not None
    assert found.lv_name == "u1.disk0"
    assert tools.read_request("lvs") == report.volumes_argv(["xenvg"], "u1.disk0")
    tools.answer("lvs", "none")
    assert report.volume("xenvg", "u3.disk0") is None


def test_physical_volumes_are_asked_for(tools: Tools) -> None:
    tools.answer("pvs", "pvs_lost")
    assert [found.pv_name for found in report.physicals()] == ["/dev/sda", "[unknown]"]
    assert tools.read_request("pvs") == report.physicals_argv()
    tools.answer("pvs", "pvs_segments")
    assert [found.name for found in report.uses("xenvg")] == ["/dev/sda", "/dev/sdb"]
    assert tools.read_request("pvs") == report.segments_argv("xenvg")


def test_disks_that_are_empty_and_may_be_used() -> None:
    def use(name: str, allocatable: bool, *volumes: str) -> report.PhysicalUse:
        return report.PhysicalUse(name, "xenvg", 4, 8, 8, allocatable, volumes, frozenset())

    found = [use("a", True), use("b", False), use("c", True, "v"), use("d", False, "v")]
    assert [item.name for item in report.empty(found)] == ["a"]

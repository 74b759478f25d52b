"""lvmstrap takes free disks only, and hands them to LVM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.paths import Paths
from ganeti.tools import lvmstrap

GIB = 1024**3


def device(path: str, **more: Any) -> dict[str, Any]:
    """A device in the JSON of lsblk."""
    return {
        **dict.fromkeys(("fstype", "pttype", "mountpoint", "model")),
        "name": path.removeprefix("/dev/"),
        "path": path,
        "type": "disk",
        "size": 100 * GIB,
        "rm": False,
        "ro": False,
        **more,
    }


def part(path: str, **more: Any) -> dict[str, Any]:
    return device(path, type="part", **more)


def states(*devices: dict[str, Any]) -> dict[str, str]:
    found = lvmstrap.read_disks(json.dumps({"blockdevices": devices}))
    return {disk.name: disk.state for disk in found}


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (device("/dev/sdb"), "free"),
        (device("/dev/sdb", mountpoint="/"), "in use: /dev/sdb is mounted on /"),
        (device("/dev/sdb", ro=True), "in use: it can only be read"),
        (device("/dev/sdb", fstype="ext4"), "has ext4 on /dev/sdb"),
        (device("/dev/sdb", pttype="gpt"), "has a partition table (gpt)"),
        (device("/dev/sdb", fstype="LVM2_member"), "in use: /dev/sdb belongs to LVM2"),
        (
            device("/dev/sdb", pttype="gpt", children=[part("/dev/sdb1", mountpoint="[SWAP]")]),
            "in use: /dev/sdb1 is mounted on [SWAP]",
        ),
        (
            device("/dev/sdb", pttype="dos", children=[part("/dev/sdb1", fstype="xfs")]),
            "has a partition table (dos)",
        ),
        (
            device(
                "/dev/sdb",
                fstype="linux_raid_member",
                children=[device("/dev/md0", type="raid1", mountpoint="/srv")],
            ),
            "in use: /dev/sdb belongs to linux_raid",
        ),
        (
            device("/dev/sdb", children=[device("/dev/mapper/x", type="crypt")]),
            "in use: /dev/mapper/x (crypt) is on it",
        ),
    ],
)
def test_states(found: dict[str, Any], state: str) -> None:
    assert states(found) == {"sdb": state}


def test_what_is_no_disk_is_left_out() -> None:
    others = [device("/dev/sr0", type="rom"), device("/dev/zram0"), device("/dev/sdz", size=0)]
    assert states(*others, device("/dev/loop0", type="loop"), device("/dev/nvme0n1")) == {
        "nvme0n1": "free"
    }


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"blockdevices": [{}]}'])
def test_output_that_cannot_be_read(text: str) -> None:
    with pytest.raises(errors.CommandError, match="lsblk wrote"):
        lvmstrap.read_disks(text)


# the program -------------------------------------------------------------------------------------

Tools = Callable[..., list[str]]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """Stand-ins for lsblk and LVM; returns what LVM was told so far."""
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    directory = Paths(tmp_path).under("/usr/local/sbin")
    directory.mkdir(parents=True)
    log, listing = tmp_path / "log", tmp_path / "lsblk.json"
    log.touch()

    def program(name: str, text: str) -> None:
        path = directory / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    program("lsblk", f"cat {listing}")
    program("vgs", "echo ' other '")
    for name in ("wipefs", "pvcreate", "vgcreate"):
        program(name, f'echo {name} "$@" >>{log}')

    def show_disks(*devices: dict[str, Any]) -> list[str]:
        for item in devices:
            Path(item["path"]).touch()
        if devices:
            listing.write_text(json.dumps({"blockdevices": devices}))
        return log.read_text().splitlines()

    return show_disks


def test_a_group_of_all_free_disks(
    tools: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third, stick = (str(tmp_path / name) for name in ("sda", "sdb", "sdc", "sdd"))
    tools(
        device(first, mountpoint="/"),
        device(second),
        device(third, pttype="gpt"),
        device(stick, rm=True),
    )
    assert lvmstrap.main(["diskinfo"]) == 0
    assert "is mounted on /" in capsys.readouterr().out
    assert lvmstrap.main(["create", "--alldevices"]) == 0
    assert tools() == [f"pvcreate --yes {second}", f"vgcreate xenvg {second}"]


def test_named_disks(tools: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    used, old, stick = (str(tmp_path / name) for name in ("sda", "sdb", "sdc"))
    tools(device(used, fstype="LVM2_member"), device(old, pttype="gpt"), device(stick, rm=True))

    def create(*words: str) -> str:
        assert lvmstrap.main(["create", *words]) == 1
        return capsys.readouterr().err

    assert "name disks with --devices" in create()
    assert "name disks with --devices" in create("-a", "-d", old)
    assert "no disk is free" in create("-a")
    assert "has no disk sdx" in create("-d", "sdx")
    assert "belongs to LVM2" in create("-d", used, "--force")
    assert "--force erases it" in create("-d", old)
    assert "--allow-removable" in create("-d", stick)
    assert "volume group other exists" in create("-d", old, "--vg-name", "other")
    assert tools() == []
    words = ["-d", f"{old},{stick}", "-r", "--force", "--vg-name", "fast"]
    assert lvmstrap.main(["create", *words]) == 0
    assert tools() == [
        f"wipefs --all --force {old}",
        f"pvcreate --yes {old} {stick}",
        f"vgcreate fast {old} {stick}",
    ]


def test_a_disk_that_cannot_be_opened_is_in_use(
    tools: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "sdb"
    tools(device(str(gone)))
    gone.unlink()
    assert lvmstrap.main(["create", "-d", str(gone)]) == 1
    assert "has it open, or it cannot be opened" in capsys.readouterr().err

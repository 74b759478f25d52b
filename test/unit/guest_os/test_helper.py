"""What a helper guest gets, and how its words are understood."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.guest_os import definition, helper
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.model.enums import DiskTemplate
from ganeti.model.ids import DiskUuid, NetworkUuid
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

MakeOs = Callable[..., Path]
MakeInstance = Callable[..., NodeInstance]


def disks(count: int) -> list[AttachedDisk]:
    disk = NodeDisk(uuid=DiskUuid("d"), dev_type=DiskTemplate.FILE, logical_id=(), size=1)
    return [AttachedDisk(disk, "/node/disk", uri="rbd:x")] * count


def unpack(data: bytes, directory: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(directory, filter="data")
    return directory


def pack(paths: Paths, **env: str) -> bytes:
    return helper.pack_installation(definition.load("tiny", paths.os_search_path), env)


def make_untrusted(make_os: MakeOs, script: str) -> Path:
    path = make_os(create=script)
    (path / "create").rename(path / "create_untrusted")
    return path


def test_package_runs_the_script_beside_its_files_with_its_variables(
    paths: Paths, make_os: MakeOs, tmp_path: Path
) -> None:
    path = make_untrusted(make_os, 'cat data; printf "%s|" "$OSP_WORD" "${PATH_TO:-none}"')
    (path / "data").write_text("beside ")
    (path / "link").symlink_to("data")
    value = "it's $HOME `id`\nend"
    data = pack(paths, OSP_WORD=value, PATH="/nowhere", **{"bad-name;id": "x"})
    where = unpack(data, tmp_path / "out")
    assert (where / "os/link").read_text() == "beside "
    ran = subprocess.run(
        ["sh", "-c", "set -a; . ./environment; set +a; ./run"], cwd=where, capture_output=True
    )
    assert ran.stdout.decode() == f"beside {value}|none|", ran.stderr


def test_definition_that_leads_out_of_itself_is_not_packed(
    paths: Paths, make_os: MakeOs, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_untrusted(make_os, "true")
    (path / "secret").symlink_to("/etc/passwd")
    with pytest.raises(errors.OpExecError, match="secret leads out of it"):
        pack(paths)
    (path / "secret").unlink()
    pack(paths)
    monkeypatch.setattr(helper, "MAX_PACKAGE", 10)
    with pytest.raises(errors.OpExecError, match="too much for a helper guest"):
        pack(paths)


def test_disks_have_the_names_of_the_guest() -> None:
    placed = helper.place_disks(disks(24))
    assert [placed[0].path, placed[-1].path] == ["/dev/vdc", "/dev/vdz"]
    assert placed[0].uri is None
    with pytest.raises(errors.OpPrereqError, match="has 25 disks"):
        helper.place_disks(disks(25))


def test_package_for_zeroing_names_the_disks(tmp_path: Path) -> None:
    where = unpack(helper.pack_zeroing(helper.place_disks(disks(2))), tmp_path)
    lines = (where / "environment").read_text().splitlines()
    assert lines == ["DISK_0_PATH=/dev/vdc", "DISK_1_PATH=/dev/vdd", "DISK_COUNT=2"]
    assert subprocess.run(["sh", "-n", str(where / "run")]).returncode == 0


def test_package_for_reading_has_the_archive_before_the_disks(tmp_path: Path) -> None:
    where = unpack(helper.pack_reading(2, ["/etc/fstab", "/it's $HOME"]), tmp_path)
    shown = subprocess.run(
        ["sh", "-c", '. ./environment; echo "$TARGET $DISK_0_PATH $DISK_1_PATH $WANTED_1"'],
        cwd=where,
        capture_output=True,
        text=True,
    )
    assert shown.stdout == "/dev/vdc /dev/vdd /dev/vde /it's $HOME\n"
    assert subprocess.run(["sh", "-n", str(where / "run")]).returncode == 0
    with pytest.raises(errors.OpPrereqError, match="has 24 disks, and a helper guest can have 23"):
        helper.pack_reading(24, ["/"])


def test_what_the_guest_tells_of_its_archive() -> None:
    assert helper.read_archive("ganeti-helper: files 3, bytes 10240\r\n") == (3, 10240)
    assert helper.read_archive("ganeti-helper: files -3, bytes 1\nfiles 1, bytes 2\n") is None


def test_guest_reaches_no_network_but_that_of_its_node(make_instance: MakeInstance) -> None:
    nics = tuple(
        NodeNic(uuid=name, mac="aa:00:00:00:00:01", ip=None, name=name, network=NetworkUuid("n"))
        for name in ("lan", "ganeti:communication:web", "x-ganeti:communication:web")
    )
    found = helper.arrange(make_instance(nics=nics, seed={"a": "b"}), {"kernel_path": ""})
    assert [nic.name for nic in found.nics] == ["ganeti:communication:web"]
    assert found.seed == {}
    assert found.hvparams["kernel_path"] == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", (False, None)),
        ("login: ganeti-helper: begin\n", (False, None)),
        ("SeaBIOS\nganeti-helper: begin\n", (True, None)),
        ("ganeti-helper: begin\nganeti-helper: exit 0\nreboot: off\n", (True, 0)),
        ("ganeti-helper: exit 0\nganeti-helper: exit 12 \n", (True, 12)),
        ("ganeti-helper: exit 0x\nganeti-helper: exit -1\n", (False, None)),
    ],
)
def test_what_the_guest_tells(text: str, found: tuple[bool, int | None]) -> None:
    assert helper.read_result(text) == found

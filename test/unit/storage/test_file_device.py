from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.file import FileDevice
from ganeti.storage.interface import Environment, PlanRequest
from ganeti.storage.shared_file import SharedFileDevice

MIB = 1024 * 1024


@pytest.fixture
def env(tmp_path: Path, root: Path) -> Environment:
    return Environment(paths=Paths(tmp_path / "node"), file_roots=(root,))


def device(path: str | Path, env: Environment) -> FileDevice:
    disk = NodeDisk(
        uuid="u",
        dev_type=DiskTemplate.FILE,
        logical_id=("loop", str(path)),
        iv_name="disk/0",
        size=4,
    )
    return FileDevice(disk, env)


def test_a_new_file_is_sparse_and_private(root: Path, env: Environment) -> None:
    old = os.umask(0)
    try:
        device(root / "web1" / "disk0", env).create(64)
    finally:
        os.umask(old)
    found = (root / "web1" / "disk0").stat()
    assert found.st_mode & 0o7777 == 0o600
    assert found.st_size == 64 * MIB
    assert found.st_blocks * 512 < MIB
    assert (root / "web1").stat().st_mode & 0o7777 == 0o750


def test_the_last_disk_takes_the_empty_directory_along(root: Path, env: Environment) -> None:
    first, second = device(root / "web1" / "a", env), device(root / "web1" / "b", env)
    first.create(4)
    second.create(4)
    first.remove()
    assert os.listdir(root / "web1") == ["b"]
    second.remove()
    assert os.listdir(root) == []
    plain = device(root / "disk0", env)
    plain.create(4)
    plain.remove()
    assert root.is_dir()


def test_a_refused_disk_leaves_no_directory(root: Path, env: Environment) -> None:
    with pytest.raises(errors.BlockDeviceError, match=rf"MiB free in {root}/web1$"):
        device(root / "web1" / "disk0", env).create(1024**4)
    assert os.listdir(root) == []


@pytest.mark.parametrize("target", ["file", "missing"])
def test_a_link_in_place_of_the_file(
    root: Path, env: Environment, tmp_path: Path, target: str
) -> None:
    victim = tmp_path / "victim"
    if target == "file":
        victim.write_text("precious")
    (root / "disk0").symlink_to(victim)
    disk = device(root / "disk0", env)
    for step in (disk.attach, disk.remove, disk.status, disk.assemble, lambda: disk.grow(4)):
        with pytest.raises(errors.BlockDeviceError, match="symbolic link"):
            step()
    with pytest.raises(errors.BlockDeviceError, match="exists already"):
        disk.create(4)
    assert (root / "disk0").is_symlink()
    assert not victim.exists() if target == "missing" else victim.read_text() == "precious"


def test_a_directory_in_place_of_the_file(root: Path, env: Environment) -> None:
    (root / "disk0").mkdir()
    with pytest.raises(errors.BlockDeviceError, match="directory"):
        device(root / "disk0", env).remove()


def test_every_method_checks_the_path(env: Environment, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    disk = device(victim, env)
    steps = [
        disk.attach,
        disk.assemble,
        disk.shutdown,
        disk.open,
        disk.close,
        disk.status,
        disk.remove,
        lambda: disk.create(4),
        lambda: disk.grow(4),
        lambda: disk.rename(("loop", str(env.file_roots[0] / "x"))),
    ]
    for step in steps:
        with pytest.raises(errors.FileStoragePathError):
            step()
    assert victim.read_text() == "precious"


def test_renaming_out_of_the_allowed_directory(
    root: Path, env: Environment, tmp_path: Path
) -> None:
    disk = device(root / "web1" / "disk0", env)
    disk.create(4)
    with pytest.raises(errors.FileStoragePathError):
        disk.rename(("loop", str(tmp_path / "disk0")))
    assert disk.path == str(root / "web1" / "disk0")
    assert disk.attach()


def test_renaming_takes_the_empty_directory_along(root: Path, env: Environment) -> None:
    disk = device(root / "web1" / "disk0", env)
    disk.create(4)
    disk.rename(("loop", str(root / "web2" / "disk0")))
    assert os.listdir(root) == ["web2"]
    with pytest.raises(errors.BlockDeviceError, match="No such file"):
        device(root / "web1" / "disk0", env).rename(("loop", str(root / "web3" / "disk0")))


def test_a_wrong_logical_id_is_told(env: Environment) -> None:
    for logical_id in (("loop",), ("loop", 3), ()):
        with pytest.raises(errors.BlockDeviceError, match="driver, path"):
            FileDevice(
                NodeDisk(uuid="u", dev_type=DiskTemplate.FILE, logical_id=logical_id, size=4), env
            )


@pytest.mark.parametrize("driver", [FileDevice, SharedFileDevice])
def test_names_of_new_disks(driver: type[FileDevice]) -> None:
    request = PlanRequest(
        instance_name="web1.example.com",
        disk_uuid="1234",
        index=2,
        size=4,
        nodes=("n",),
        file_driver="blktap",
        file_dir="/srv/ganeti/file-storage/",
    )
    assert driver.plan(request) == (
        "blktap",
        "/srv/ganeti/file-storage/web1.example.com/1234.file.disk2",
    )


@pytest.mark.parametrize(
    ("name", "directory"), [("..", "/d"), ("a/b", "/d"), ("", "/d"), ("web1", "")]
)
def test_names_that_cannot_be_planned(name: str, directory: str) -> None:
    request = PlanRequest(
        instance_name=name, disk_uuid="1", index=0, size=4, nodes=(), file_dir=directory
    )
    with pytest.raises(errors.ParameterError):
        FileDevice.plan(request)


def test_disks_of_one_instance_made_and_removed_at_the_same_time(
    root: Path, env: Environment
) -> None:
    problems: list[Exception] = []

    def work(index: int) -> None:
        disk = device(root / "web1" / f"disk{index}", env)
        try:
            for _ in range(20):
                disk.create(4)
                disk.remove()
        except Exception as err:
            problems.append(err)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert problems == []
    assert os.listdir(root) == []

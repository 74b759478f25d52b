"""Snapshots of file disks on a file system that shares blocks between files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import needs_root

from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage.file import FileDevice
from ganeti.storage.interface import Environment

MIB = 1024 * 1024
MKFS = shutil.which("mkfs.xfs", path="/usr/sbin:/sbin:/usr/bin")

pytestmark = [
    pytest.mark.together("mounts"),
    pytest.mark.root,
    needs_root("to mount a file system"),
    pytest.mark.skipif(MKFS is None, reason="needs mkfs.xfs (package xfsprogs)"),
]


@pytest.fixture
def xfs(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of XFS."""
    image, directory = tmp_path / "image", tmp_path / "mounted"
    with image.open("wb") as stream:
        stream.truncate(320 * MIB)
    subprocess.run([str(MKFS), "-q", str(image)], check=True)
    directory.mkdir()
    subprocess.run(["mount", "-o", "loop", str(image), str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", str(directory)], check=True)


def test_a_snapshot_shares_the_blocks_until_they_change(xfs: Path, tmp_path: Path) -> None:
    env = Environment(paths=Paths(tmp_path / "root"), file_roots=(xfs,))
    path = xfs / "web1.example.com" / "disk0"
    disk = NodeDisk(uuid="u", dev_type="file", logical_id=("loop", str(path)), size=64)
    device = FileDevice(disk, env)
    device.create(64)
    path.write_bytes(os.urandom(64 * MIB))
    before = path.read_bytes()
    os.sync()
    free = shutil.disk_usage(xfs).free

    found = device.snapshot("frozen", 0)

    assert found == ("loop", str(path.parent / "frozen"))
    assert free - shutil.disk_usage(xfs).free < MIB
    with path.open("r+b") as stream:
        stream.write(b"after!")
    frozen = path.parent / "frozen"
    assert frozen.read_bytes() == before
    assert frozen.stat().st_mode & 0o777 == 0o600
    # again, under the same name
    device.snapshot("frozen", 0)
    assert frozen.read_bytes()[:6] == b"after!"

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ganeti import errors
from ganeti.storage import measure, space

MIB = 1024 * 1024


def test_room_of_a_directory(tmp_path: Path) -> None:
    size, free = space.report("file", str(tmp_path))
    facts = os.statvfs(tmp_path)
    assert size == facts.f_blocks * facts.f_frsize // MIB
    assert 0 <= free <= size


def test_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    assert space.report("file", f"{tmp_path}/a/b")[0] == space.report("file", str(tmp_path))[0]


@pytest.mark.parametrize(
    ("kind", "name"),
    [("ext", "/srv"), ("file", "srv"), ("file", ""), ("file", "/srv\0"), ("file", "/dev/null/x")],
)
def test_what_cannot_be_told(kind: str, name: str) -> None:
    with pytest.raises(errors.StorageError):
        space.report(kind, name)


def test_size_of_a_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(b"")
    os.truncate(disk, 5 * MIB + 1)
    assert measure.device_size(str(disk)) == 5 * MIB + 1
    with pytest.raises(errors.BlockDeviceError, match="gone"):
        measure.device_size(str(tmp_path / "gone"))

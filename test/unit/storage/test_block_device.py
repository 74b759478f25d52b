"""Adopted block devices, with a loop device as the administrator's disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import loop_lvm
import pytest

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage import registry
from ganeti.storage.block import BlockDevice
from ganeti.storage.interface import Environment, PlanRequest

NAME = "/dev/disk/by-id/scsi-1"


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """A disk of 8 MiB that is ``/dev/disk/by-id/scsi-1`` in the node's directory."""
    loop_lvm.skip_if_unavailable()
    (tmp_path / "san").write_bytes(b"data of the customer".ljust(8 << 20, b"\0"))
    device = loop_lvm.run("losetup", "--find", "--show", str(tmp_path / "san")).strip()
    link = tmp_path / NAME.lstrip("/")
    link.parent.mkdir(parents=True)
    link.symlink_to(device)
    yield device
    loop_lvm.run("losetup", "--detach", device)


def disk(tmp_path: Path, logical_id: tuple[Any, ...] = ("manual", NAME)) -> BlockDevice:
    wire = NodeDisk(uuid="d1", dev_type=DiskTemplate.BLOCKDEV, logical_id=logical_id, size=8)
    found = registry.device(wire, Environment(Paths(tmp_path)))
    assert isinstance(found, BlockDevice)
    return found


def test_an_adopted_device_keeps_its_content(tmp_path: Path, loop: str) -> None:
    item = disk(tmp_path)
    assert item.attach() is True
    item.create(8)
    for step in (item.assemble, item.open, item.close, item.shutdown, item.remove):
        step()
    assert item.status().major == 7
    assert Path(loop).read_bytes().startswith(b"data of the customer")
    with pytest.raises(errors.BlockDeviceError, match="has 8 MiB, not 12 MiB"):
        item.create(12)
    with pytest.raises(errors.BlockDeviceError, match="cannot be grown here"):
        item.grow(4)


def test_what_is_no_device_is_refused(tmp_path: Path) -> None:
    item = disk(tmp_path)
    assert item.attach() is False
    with pytest.raises(errors.BlockDeviceError, match="does not exist"):
        item.assemble()
    link = tmp_path / NAME.lstrip("/")
    link.parent.mkdir(parents=True)
    for target in ("/etc/passwd", "/dev/null"):
        link.symlink_to(target)
        with pytest.raises(errors.BlockDeviceError, match="not a block device below /dev"):
            item.attach()
        link.unlink()


@pytest.mark.parametrize(
    "path", ["/dev/sda", "/etc/passwd", "disk/by-id/x", "/dev/disk/../sda", "/dev/disk/a/", ""]
)
def test_only_names_that_do_not_change_are_adopted(tmp_path: Path, path: str) -> None:
    with pytest.raises(errors.BlockDeviceError):
        disk(tmp_path, ("manual", path))
    request = PlanRequest(
        instance_name="web1", disk_uuid="u1", index=0, size=8, nodes=(), adopt=path
    )
    with pytest.raises(errors.ParameterError):
        BlockDevice.plan(request)


def test_the_plan_is_the_adopted_device() -> None:
    request = PlanRequest(
        instance_name="web1", disk_uuid="u1", index=0, size=8, nodes=(), adopt=NAME
    )
    assert BlockDevice.plan(request) == ("manual", NAME)

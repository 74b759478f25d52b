"""Ceph images and Gluster files: what the commands get, and how their answers are read.

The life of such disks is tried in test/contract/storage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import loop_lvm
import network_storage
import pytest

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage import gluster, rbd, registry
from ganeti.storage.interface import Device, Environment

PLACE = gluster.GlusterParams(host="store1", port=24008, volume="vms")


def device(root: Path, kind: DiskTemplate, name: str, **params: Any) -> Device:
    wire = NodeDisk(
        uuid="d1",
        dev_type=kind,
        logical_id=("x", name),
        size=8,
        params={key.replace("_", "-"): value for key, value in params.items()},
    )
    return registry.device(wire, Environment(Paths(root), gluster_dir=root / "mnt"))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    loop_lvm.skip_if_unavailable()
    network_storage.install_rbd(tmp_path, tmp_path / "ceph")
    monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    return tmp_path


def test_an_image_that_the_hypervisor_opens_is_never_mapped(root: Path) -> None:
    image = device(root, DiskTemplate.RBD, "i1", access="userspace", pool="vms", user_id="ganeti")
    image.create(8)
    image.assemble()
    image.open()
    assert image.uri() == "rbd:vms/i1:id=ganeti"
    image.shutdown()
    image.remove()
    words = network_storage.calls(root / "ceph")
    assert words[1] == "--id ganeti create --pool vms --size 8M i1"
    assert all(line.startswith("--id ganeti ") for line in words)
    assert not [line for line in words if " map " in line]


def test_an_image_that_is_in_use_elsewhere_is_not_removed(root: Path) -> None:
    image = device(root, DiskTemplate.RBD, "i1")
    image.create(8)
    image.assemble()
    other = device(root, DiskTemplate.RBD, "i1", access="userspace")
    with pytest.raises(errors.BlockDeviceError, match="image still has watchers"):
        other.remove()
    image.remove()


def test_an_image_without_a_device_is_not_opened(root: Path) -> None:
    image = device(root, DiskTemplate.RBD, "i1")
    image.create(8)
    with pytest.raises(errors.BlockDeviceError, match="not mapped"):
        image.open()


ROW = '{"pool":"rbd","namespace":"","name":"i1","snap":"-","device":"/dev/rbd3"}'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[]", None),
        ("{}", None),
        ("", None),
        (f"[{ROW}]", "/dev/rbd3"),
        # before Nautilus
        ('{"3": {"pool": "rbd", "name": "i1", "snap": "-", "device": "/dev/rbd3"}}', "/dev/rbd3"),
        ('[{"pool":"rbd","name":"i1","snap":"s1","device":"/dev/rbd4"}]', None),
        ('[{"pool":"vms","name":"i1","snap":"-","device":"/dev/rbd4"}]', None),
        ('[{"pool":"rbd","namespace":"a","name":"i1","snap":"-","device":"/dev/rbd4"}]', None),
    ],
)
def test_mapped_images_are_found(text: str, found: str | None) -> None:
    assert rbd.mapped_device(text, "rbd", "i1") == found


def test_answers_of_ceph_that_make_no_sense() -> None:
    with pytest.raises(errors.BlockDeviceError, match="more than once"):
        rbd.mapped_device(f"[{ROW},{ROW}]", "rbd", "i1")
    for text in ("nothing", "[1]", '[{"pool": "rbd"}]', "3"):
        with pytest.raises(errors.BlockDeviceError, match="cannot be read"):
            rbd.mapped_device(text, "rbd", "i1")
        with pytest.raises(errors.BlockDeviceError, match="cannot be read"):
            rbd.read_size(text)
    assert rbd.read_size('{"name":"i1","size":8388608}') == 8388608


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a@snap", "-x"])
def test_names_that_ceph_would_read_as_something_else(tmp_path: Path, name: str) -> None:
    for params in ({}, {"pool": name or "/"}, {"user_id": name or "/"}):
        with pytest.raises(errors.BlockDeviceError):
            device(tmp_path, DiskTemplate.RBD, "i1" if params else name, **params)


def test_how_a_gluster_volume_is_mounted_and_addressed() -> None:
    assert gluster.mount_argv(PLACE, Path("/mnt/g")) == [
        "mount",
        "-t",
        "glusterfs",
        "-o",
        "server-port=24008",
        "store1:/vms",
        "/mnt/g",
    ]
    assert gluster.address(PLACE, "ganeti/u1.0") == "gluster://store1:24008/vms/ganeti/u1.0"
    six = gluster.GlusterParams(host="2001:db8::1")
    assert gluster.address(six, "f") == "gluster://[2001:db8::1]:24007/gv0/f"
    mounts = "proc /proc proc rw 0 0\nstore1:/vms /mnt/my\\040g fuse.glusterfs rw 0 0\n"
    assert gluster.find_mounted_source(mounts, Path("/mnt/my g")) == "store1:/vms"
    assert gluster.find_mounted_source(mounts, Path("/mnt")) is None


def test_a_gluster_file_is_opened_by_its_address_when_access_says_so(tmp_path: Path) -> None:
    place = {"host": "store1", "volume": "vms"}
    mounted = device(tmp_path, DiskTemplate.GLUSTER, "ganeti/u1.0", **place)
    opened = device(tmp_path, DiskTemplate.GLUSTER, "ganeti/u1.0", **place, access="userspace")
    assert mounted.uri() is None
    assert opened.uri() == "gluster://store1:24007/vms/ganeti/u1.0"


def test_another_volume_in_the_way_is_told(tmp_path: Path) -> None:
    loop_lvm.skip_if_unavailable()
    (tmp_path / "mnt").mkdir()
    loop_lvm.run("mount", "-t", "tmpfs", "other:/vol", str(tmp_path / "mnt"))
    try:
        with pytest.raises(errors.BlockDeviceError, match="other:/vol is mounted on"):
            device(tmp_path, DiskTemplate.GLUSTER, "ganeti/u1.0").attach()
    finally:
        loop_lvm.run("umount", str(tmp_path / "mnt"))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("ganeti/../x", {}),
        ("other/x", {}),
        ("ganeti/", {}),
        ("/etc/passwd", {}),
        ("ganeti/x", {"volume": "../x"}),
        ("ganeti/x", {"host": "-o x"}),
    ],
)
def test_files_and_volumes_that_cannot_be(
    tmp_path: Path, name: str, params: dict[str, str]
) -> None:
    with pytest.raises(errors.BlockDeviceError):
        device(tmp_path, DiskTemplate.GLUSTER, name, **params)

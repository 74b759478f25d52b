"""What every disk template promises, tried on each driver with real disks.

Templates that need a kernel of their own are tried in the guests of ``test/hosts``, by this same
file: there ``GANETI_TEST_VG`` names an LVM volume group that the tests may fill.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import loop_lvm
import loop_provider
import msgspec
import network_storage
import pytest

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage import measure, registry
from ganeti.storage.interface import Device, Environment, PlanRequest, Renamable, Snapshotting

MIB = 1024 * 1024
#: Index of a disk that another one is renamed to.
OTHER = 9
UUID = "0d5f8a1e-7c1b-4f6e-9d0a-3b2c1d4e5f60"

#: What the contract tables say of each template: (file based, shared, mirrored, growable).
FACTS = {
    "ext": (False, True, False, True),
    "file": (True, False, False, True),
    "gluster": (False, True, False, True),
    "plain": (False, False, False, True),
    "rbd": (False, True, False, True),
    "sharedfile": (True, True, False, True),
}


@dataclass
class Bench:
    """One template with a place to work in."""

    template: str
    env: Environment
    file_dir: str = ""
    vg: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    undo: Callable[[], object] = lambda: None

    def plan(self, index: int = 0, instance: str = "web1.example.com") -> tuple[str, ...]:
        driver = registry.TEMPLATES.get(self.template)
        return driver.plan(
            PlanRequest(
                instance_name=instance,
                disk_uuid=UUID,
                index=index,
                size=8,
                nodes=("node-uuid",),
                file_dir=self.file_dir,
                vg=self.vg,
                options=self.options,
            )
        )

    def device(self, index: int = 0, instance: str = "web1.example.com", size: int = 8) -> Device:
        return self.at(self.plan(index, instance), index, size)

    def at(self, logical_id: tuple[Any, ...], index: int = 0, size: int = 8) -> Device:
        disk = NodeDisk(
            uuid=UUID,
            dev_type=DiskTemplate(self.template),
            logical_id=logical_id,
            iv_name=f"disk/{index}",
            size=size,
        )
        return registry.device(disk, self.env)


def _files(template: str, tmp_path: Path) -> Bench:
    root = tmp_path / "disks"
    root.mkdir(mode=0o750)
    env = Environment(paths=Paths(tmp_path), node_uuid="n", file_roots=(root,))
    return Bench(template, env, str(root))


def _volumes(template: str, _tmp_path: Path) -> Bench:
    return Bench(template, Environment(paths=Paths(Path("/"))), vg=os.environ["GANETI_TEST_VG"])


def _provider(template: str, tmp_path: Path) -> Bench:
    loop_lvm.skip_if_unavailable()
    paths = Paths(tmp_path)
    directory = paths.extstorage_search_path[0] / "array"
    loop_provider.install(directory, tmp_path / "volumes")
    return Bench(template, Environment(paths), options={"provider": "array"})


def _images(template: str, tmp_path: Path) -> Bench:
    loop_lvm.skip_if_unavailable()
    network_storage.install_rbd(tmp_path, tmp_path / "ceph")
    return Bench(template, Environment(Paths(tmp_path)))


def _mounted(template: str, tmp_path: Path) -> Bench:
    loop_lvm.skip_if_unavailable()
    network_storage.install_gluster(tmp_path, tmp_path / "calls")
    env = Environment(Paths(tmp_path), gluster_dir=tmp_path / "mnt")
    return Bench(template, env, undo=lambda: loop_lvm.run("umount", str(env.gluster_dir)))


#: Template -> how its bench is made.
BENCHES: dict[str, Callable[[str, Path], Bench]] = {
    "ext": _provider,
    "file": _files,
    "gluster": _mounted,
    "rbd": _images,
    "sharedfile": _files,
}
if os.environ.get("GANETI_TEST_VG"):
    BENCHES["plain"] = _volumes

#: Templates that need more than any machine has -> where they are tried.
ELSEWHERE = {
    "blockdev": "test/unit/storage/test_block_device.py, as it makes no disks",
    "drbd": "test/unit/storage/test_drbd_device.py and test/hosts",
    "plain": "test/hosts",
}
#: Templates whose commands are found in the directory of the node.
STAND_INS = ("gluster", "rbd")


def able(ability: type[Any]) -> list[str]:
    """Templates whose disks can do something that not all can."""
    return [name for name in sorted(BENCHES) if issubclass(registry.TEMPLATES.get(name), ability)]


#: Ask for these by ``@RENAMABLE``: the test runs for those templates only.
GROWABLE = pytest.mark.parametrize(
    "bench",
    [name for name in sorted(BENCHES) if registry.TEMPLATES.get(name).traits.growable],
    indirect=True,
)
RENAMABLE = pytest.mark.parametrize("bench", able(Renamable), indirect=True)
SNAPSHOTTING = pytest.mark.parametrize("bench", able(Snapshotting), indirect=True)


@pytest.fixture(params=sorted(BENCHES))
def bench(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench]:
    if request.param in STAND_INS:
        monkeypatch.setenv("GANETI_ROOTDIR", str(tmp_path))
    made = BENCHES[request.param](request.param, tmp_path)
    try:
        yield made
    finally:
        for index in (0, 1, OTHER):
            made.device(index).remove()
        made.undo()


def test_every_template_is_tried_somewhere() -> None:
    assert set(registry.TEMPLATES.names()) <= set(BENCHES) | set(ELSEWHERE)


def test_the_life_of_a_disk(bench: Bench) -> None:
    device = bench.device()
    assert device.attach() is False
    device.create(8, info="originstname+web1.example.com")
    assert device.attach() is True
    device.assemble()
    device.open()
    with open(device.path, "r+b") as stream:
        stream.seek(MIB)
        stream.write(b"content of the guest")
    assert measure.device_size(device.path) == 8 * MIB
    status = device.status()
    assert status.dev_path == device.path
    assert (status.is_degraded, status.sync_percent, status.ldisk_status) == (False, None, 0)
    device.close()
    device.shutdown()
    device.assemble()
    with open(device.path, "rb") as stream:
        stream.seek(MIB)
        assert stream.read(20) == b"content of the guest"
    device.shutdown()
    device.remove()
    assert device.attach() is False


def test_steps_done_twice_change_nothing(bench: Bench) -> None:
    device = bench.device()
    device.remove()
    device.create(8)
    for step in (device.assemble, device.open, device.close, device.shutdown):
        step()
        step()
        assert device.attach() is True
    device.remove()
    device.remove()
    assert device.attach() is False


def test_a_disk_is_never_made_over_another(bench: Bench) -> None:
    bench.device().create(8)
    device = bench.device()
    device.assemble()
    with open(device.path, "r+b") as stream:
        stream.write(b"precious")
    with pytest.raises(errors.BlockDeviceError, match="exists"):
        device.create(4)
    with open(device.path, "rb") as stream:
        assert stream.read(8) == b"precious"
    assert measure.device_size(device.path) == 8 * MIB


def test_a_missing_disk_is_told(bench: Bench) -> None:
    device = bench.device()
    for step in (device.assemble, device.open, device.status, lambda: device.grow(4)):
        with pytest.raises(errors.BlockDeviceError) as caught:
            step()
        assert device.path in str(caught.value)


def test_a_disk_larger_than_the_storage_is_refused_and_leaves_nothing(bench: Bench) -> None:
    device = bench.device()
    says = r"needs 1099511627776 MiB, [0-9]+ MiB free" if device.traits.space_checked_as else None
    with pytest.raises(errors.BlockDeviceError, match=says):
        device.create(1024**4)
    assert device.attach() is False


@pytest.mark.parametrize("size", [0, -4])
def test_a_size_that_makes_no_sense_is_refused(bench: Bench, size: int) -> None:
    with pytest.raises(errors.BlockDeviceError):
        bench.device().create(size)


@GROWABLE
def test_growing_keeps_the_content(bench: Bench) -> None:
    device = bench.device(size=4)
    device.create(4)
    device.assemble()
    with open(device.path, "r+b") as stream:
        stream.write(b"kept")
    device.grow(4, dry_run=True)
    assert measure.device_size(device.path) == 4 * MIB
    device.grow(4)
    assert measure.device_size(device.path) == 8 * MIB
    with open(device.path, "rb") as stream:
        assert stream.read(4) == b"kept"
    for amount in (1024**4, -4):
        if amount < 0 or device.traits.space_checked_as:
            with pytest.raises(errors.BlockDeviceError):
                device.grow(amount, dry_run=True)
        with pytest.raises(errors.BlockDeviceError):
            device.grow(amount)
    assert measure.device_size(device.path) == 8 * MIB


def test_two_disks_do_not_disturb_each_other(bench: Bench) -> None:
    first, second = bench.device(0), bench.device(1)
    first.create(4)
    second.create(4)
    assert first.path != second.path
    first.remove()
    assert second.attach() is True
    second.remove()


@RENAMABLE
def test_renaming_keeps_the_content(bench: Bench) -> None:
    device = bench.device()
    assert isinstance(device, Renamable)
    device.create(4)
    with open(device.path, "r+b") as stream:
        stream.write(b"kept")
    new_id = bench.plan(OTHER, "mail1.example.com")
    device.rename(new_id)
    device.rename(new_id)
    assert bench.device().attach() is False
    moved = bench.device(OTHER, "mail1.example.com")
    assert device.path == moved.path
    assert moved.attach() is True
    with open(moved.path, "rb") as stream:
        assert stream.read(4) == b"kept"
    bench.device().rename(new_id)


@RENAMABLE
def test_renaming_never_replaces_a_disk(bench: Bench) -> None:
    device, other = bench.device(0), bench.device(1)
    assert isinstance(device, Renamable)
    device.create(4)
    other.create(8)
    with pytest.raises(errors.BlockDeviceError, match="exists"):
        device.rename(bench.plan(1))
    assert device.path != other.path
    assert measure.device_size(device.path) == 4 * MIB
    assert measure.device_size(other.path) == 8 * MIB


@SNAPSHOTTING
def test_a_snapshot_keeps_the_content_of_its_moment(bench: Bench) -> None:
    device = bench.device()
    assert isinstance(device, Snapshotting)
    device.create(8, info="originstname+web1.example.com")
    device.assemble()
    _write(device, b"before")
    if device.traits.file_based:
        # test_file_snapshots.py has a file system that can
        with pytest.raises(errors.BlockDeviceError, match="cannot share blocks"):
            device.snapshot("frozen", 8)
        assert os.listdir(os.path.dirname(device.path)) == [os.path.basename(device.path)]
        return
    frozen = bench.at(device.snapshot("frozen", 8))
    assert tuple(frozen.disk.logical_id) == device.plan_copy(device.disk.logical_id, "frozen")
    try:
        _write(device, b"after!")
        frozen.assemble()
        with open(frozen.path, "rb") as stream:
            assert stream.read(6) == b"before"
    finally:
        frozen.remove()
    assert device.attach() is True


def _write(device: Device, content: bytes) -> None:
    with open(device.path, "r+b") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def test_planning_is_pure_and_tells_disks_apart(bench: Bench) -> None:
    assert bench.plan(0) == bench.plan(0)
    assert bench.plan(0) != bench.plan(1)
    assert bench.device().attach() is False


def test_traits_agree_with_the_contract(bench: Bench) -> None:
    device = bench.device()
    traits = device.traits
    assert FACTS[bench.template] == (
        traits.file_based,
        traits.shared,
        traits.mirrored,
        traits.growable,
    )
    assert not traits.must_adopt or traits.may_adopt
    assert isinstance(device.params(), msgspec.Struct)


def test_no_descriptor_stays_open(bench: Bench) -> None:
    before = set(os.listdir("/proc/self/fd"))
    device = bench.device()
    device.create(4)
    device.grow(4)
    device.assemble()
    device.status()
    with pytest.raises(errors.BlockDeviceError):
        device.create(4)
    device.remove()
    assert set(os.listdir("/proc/self/fd")) == before

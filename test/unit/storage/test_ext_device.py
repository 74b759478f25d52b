"""External storage: a real provider with scripts, volumes and devices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import loop_lvm
import loop_provider
import pytest

from ganeti import errors
from ganeti.model.enums import DiskTemplate
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk
from ganeti.storage import external_provider, registry
from ganeti.storage.external import ExtDevice
from ganeti.storage.interface import Environment, PlanRequest

VOLUME = "u1.ext.disk0"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    where = Paths(tmp_path)
    loop_provider.install(where.extstorage_search_path[0] / "array", store(where))
    return where


@pytest.fixture
def device(paths: Paths) -> Iterator[ExtDevice]:
    loop_lvm.skip_if_unavailable()
    made = volume(paths)
    yield made
    if (store(paths) / VOLUME).exists():
        made.shutdown()


def store(paths: Paths) -> Path:
    return paths.root / "volumes"


def volume(paths: Paths, logical_id: tuple[Any, ...] = ("array", VOLUME), **more: Any) -> ExtDevice:
    disk = NodeDisk(
        uuid="d1", dev_type=DiskTemplate.EXT, logical_id=logical_id, size=8, name="data", **more
    )
    found = registry.device(disk, Environment(paths))
    assert isinstance(found, ExtDevice)
    return found


def test_each_script_gets_what_the_interface_promises(paths: Paths, device: ExtDevice) -> None:
    device = volume(paths, params={"access": "kernelspace", "provider": "array", "tier": "fast"})
    device.create(8, info="originstname+web1")
    device.assemble()
    device.open(exclusive=False)
    device.grow(4)
    assert device.snapshot("copy", 0) == ("array", "copy")
    device.close()
    device.shutdown()
    device.remove()
    own = {"VOL_NAME": VOLUME, "VOL_UUID": "d1", "VOL_CNAME": "data", "EXTP_TIER": "fast"}
    found = dict(loop_provider.calls(store(paths)))
    assert found["verify parameters"] == {"EXTP_TIER": "fast"}
    for action, more in {
        "create": {"VOL_SIZE": "8"},
        "setinfo": {"VOL_METADATA": "originstname+web1"},
        "attach": {},
        "open": {"VOL_OPEN_EXCLUSIVE": "False"},
        "grow": {"VOL_SIZE": "8", "VOL_NEW_SIZE": "12"},
        "snapshot": {"VOL_SNAPSHOT_NAME": "copy", "VOL_SNAPSHOT_SIZE": "8"},
        "close": {},
        "detach": {},
        "remove": {},
    }.items():
        assert found[action] == {**own, **more}, action


def test_a_failing_script_is_told_with_the_end_of_its_log(paths: Paths, device: ExtDevice) -> None:
    (store(paths) / "full").touch()
    with pytest.raises(errors.BlockDeviceError, match=r"could not create .*exit code 1 \(log"):
        device.create(8)
    with pytest.raises(errors.BlockDeviceError, match="the array is full"):
        device.create(8)
    log = next(paths.extstorage_log.glob(f"create-array-{VOLUME}-*.log"))
    assert "the array is full" in log.read_text()


def test_parameters_are_checked_by_the_provider(paths: Paths, device: ExtDevice) -> None:
    with pytest.raises(errors.BlockDeviceError, match=r"no parameter 'teir' \(did you mean tier"):
        volume(paths, params={"teir": "fast"}).create(8)
    with pytest.raises(errors.BlockDeviceError, match="tier is fast or slow, not medium"):
        volume(paths, params={"tier": "medium"}).create(8)
    assert not (store(paths) / VOLUME).exists()


def test_an_address_is_given_for_user_space_only(paths: Paths, device: ExtDevice) -> None:
    device.create(8)
    device.assemble()
    assert device.uri() is None
    other = volume(paths, params={"access": "userspace"})
    other.assemble()
    assert other.uri() == f"file:{store(paths)}/{VOLUME}"


def test_optional_scripts_may_be_missing(paths: Paths, device: ExtDevice) -> None:
    for action in external_provider.OPTIONAL:
        (paths.extstorage_search_path[0] / "array" / action).unlink()
    device.create(8)
    device.open()
    device.close()
    with pytest.raises(errors.BlockDeviceError, match="no script for snapshots"):
        device.snapshot("copy", 0)


def test_what_a_provider_names_must_be_a_block_device(paths: Paths, device: ExtDevice) -> None:
    device.create(8)
    script = paths.extstorage_search_path[0] / "array" / "attach"
    for answer, reason in (
        ("/etc/passwd", "not a block device"),
        ("/dev/nothing", "No such file"),
        ("", "no device"),
    ):
        script.write_text(f"#!/bin/sh\necho {answer}\n")
        with pytest.raises(errors.BlockDeviceError, match=reason):
            device.attach()


def test_a_missing_or_broken_provider_is_told(paths: Paths) -> None:
    with pytest.raises(errors.BlockDeviceError, match="'other' is not installed"):
        volume(paths, ("other", VOLUME)).create(8)
    directory = paths.extstorage_search_path[0] / "array"
    (directory / "grow").unlink()
    (directory / "detach").chmod(0o644)
    with pytest.raises(errors.BlockDeviceError, match=r"detach is not exec.*grow is missing"):
        volume(paths).attach()


@pytest.mark.parametrize(
    "logical_id",
    [("array",), ("array", 3), ("../array", "x"), ("array", "../x"), ("array", ""), ("", "x")],
)
def test_names_that_cannot_be(paths: Paths, logical_id: tuple[Any, ...]) -> None:
    with pytest.raises(errors.BlockDeviceError):
        volume(paths, logical_id)


def test_plans_need_a_provider() -> None:
    request = PlanRequest(
        instance_name="web1",
        disk_uuid="u1",
        index=1,
        size=8,
        nodes=("n",),
        options={"provider": "array", "tier": "fast"},
    )
    assert ExtDevice.plan(request) == ("array", "u1.ext.disk1")
    assert ExtDevice.plan_params(request) == {"provider": "array", "tier": "fast"}
    for options in ({}, {"provider": "a/b"}):
        with pytest.raises(errors.ParameterError):
            ExtDevice.plan(
                PlanRequest(
                    instance_name="web1",
                    disk_uuid="u1",
                    index=1,
                    size=8,
                    nodes=(),
                    options=options,
                )
            )


def test_providers_are_judged(paths: Paths) -> None:
    first, second = paths.extstorage_search_path[:2]
    (second / "array").mkdir(parents=True)
    (second / "bad name").mkdir()
    (second / "text").write_text("")
    (second / "array" / "parameters.list").write_text("b=d text\n")
    good, shadowed, bad = external_provider.diagnose(paths.extstorage_search_path)
    assert (good.path, good.valid, good.diagnose) == (str(first / "array"), True, "")
    assert good.parameters == (("tier", "Kind of disks: fast or slow"), ("pool", "Name"))
    assert (shadowed.name, shadowed.valid) == ("array", False)
    assert "script create is missing" in shadowed.diagnose
    assert "'b=d' cannot become an environment variable" in shadowed.diagnose
    assert "character" in bad.diagnose

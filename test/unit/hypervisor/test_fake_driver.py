"""The fake hypervisor misbehaves as its script says."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from ganeti import errors
from ganeti.hypervisor.abilities import (
    Ballooning,
    DiskConverting,
    DiskLimiting,
    DiskSending,
    Holding,
    Hotpluggable,
    Migratable,
    ProcessorChanging,
)
from ganeti.hypervisor.fake import FakeHypervisor
from ganeti.hypervisor.fake_script import Method
from ganeti.hypervisor.interface import AttachedDisk, Hypervisor
from ganeti.model.enums import DiskTemplate, MigrationState, RunState
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic


@pytest.fixture
def driver(tmp_path: Path) -> FakeHypervisor:
    paths = Paths(tmp_path / "root")
    paths.conf.mkdir(parents=True)
    return FakeHypervisor(paths)


def script(driver: FakeHypervisor, **rules: Any) -> None:
    driver.script_file.write_text(json.dumps(rules))


def instance(name: str = "web1", **changes: Any) -> NodeInstance:
    facts: dict[str, Any] = {
        "uuid": "u",
        "primary_node": "n",
        "hypervisor": "fake",
        "beparams": {"maxmem": 256, "vcpus": 2},
    }
    return NodeInstance(name=name, **{**facts, **changes})


DISK = NodeDisk(uuid="d-1", dev_type=DiskTemplate.FILE, logical_id=("loop", "/d"), size=4)
NIC = NodeNic(uuid="n-1", mac="aa:00:00:00:00:01")


def awaited(driver: FakeHypervisor) -> str:
    """An instance that is awaited."""
    with contextlib.suppress(errors.HypervisorError):  # it was before
        driver.accept(instance("web2"), [], {"memory": 1, "vcpus": 1}, "127.0.0.1")
    return "web2"


Call = Callable[[FakeHypervisor], Any]
METHODS: dict[str, Call] = {
    "start": lambda d: d.start(instance(), []),
    "stop": lambda d: d.stop("web1"),
    "reboot": lambda d: d.reboot(instance(), []),
    "cleanup": lambda d: d.cleanup("web1"),
    "hold": lambda d: d.hold("web1"),
    "release": lambda d: d.release("web1"),
    "list_names": lambda d: d.list_names(),
    "info": lambda d: d.info("web1"),
    "info_all": lambda d: d.info_all(),
    "node_info": lambda d: d.node_info({}),
    "verify": lambda d: d.verify({}),
    "check_params": lambda d: d.check_params({}),
    "console": lambda d: d.console(instance(), "node1", {}),
    "console_lines": lambda d: d.console_lines(instance(), {}),
    "balloon": lambda d: d.balloon(instance(), 64),
    "check_hotplug": lambda d: d.check_hotplug(instance()),
    "plugged_disks": lambda d: d.plugged_disks("web1"),
    "plug_disk": lambda d: d.plug_disk(instance(), AttachedDisk(DISK, "/d")),
    "unplug_disk": lambda d: d.unplug_disk(instance(), DISK),
    "plug_nic": lambda d: d.plug_nic(instance(), 0, NIC),
    "unplug_nic": lambda d: d.unplug_nic(instance(), NIC),
    "change_nic": lambda d: d.change_nic(instance(), 0, NIC),
    "resize_disk": lambda d: d.resize_disk(instance(), AttachedDisk(DISK, "/d"), 8),
    "limit_disk": lambda d: d.limit_disk(instance(), DISK),
    "change_media": lambda d: d.change_media(instance()),
    "set_vcpus": lambda d: d.set_vcpus(instance()),
    "check_migratable": lambda d: d.check_migratable(instance()),
    "migration_info": lambda d: d.migration_info(instance()),
    "accept": lambda d: d.accept(instance("web2"), [], {"memory": 1, "vcpus": 1}, "127.0.0.1"),
    "migrate": lambda d: d.migrate(instance(), "127.0.0.1:1", live=True),
    "migration_status": lambda d: d.migration_status(instance()),
    "check_arrived": lambda d: d.check_arrived(instance()),
    "receive_disks": lambda d: d.receive_disks(awaited(d), [], "127.0.0.1"),
    "send_disks": lambda d: d.send_disks("web1", [], str(d.guests.disks_file("web1")), 0),
    "disk_progress": lambda d: d.disk_progress("web1"),
    "convert_disks": lambda d: d.convert_disks("web1", [], 0),
    "settle_disks": lambda d: d.settle_disks("web1", {}),
    "list_conversions": lambda d: d.list_conversions(),
    "finish_source": lambda d: d.finish_source(instance(), success=False, live=True),
    "finish_target": lambda d: d.finish_target(instance("web2"), {}, success=False),
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_can_fail_and_be_slow(driver: FakeHypervisor, method: str) -> None:
    script(driver, **{method: {"*": {"fail": "as told", "delay": 0.05}}})
    begin = time.monotonic()
    with pytest.raises(errors.HypervisorError, match="as told"):
        METHODS[method](driver)
    assert time.monotonic() - begin >= 0.05
    driver.script_file.unlink()
    if method != "start":
        driver.start(instance(), [])
    METHODS[method](driver)


def test_rule_of_an_instance_comes_before_that_of_all(driver: FakeHypervisor) -> None:
    script(driver, start={"web1": {"fail": "only web1"}, "*": {}})
    driver.start(instance("web2"), [])
    with pytest.raises(errors.HypervisorError, match="only web1"):
        driver.start(instance("web1"), [])
    assert driver.list_names() == ["web2"]


def test_lies_about_work(driver: FakeHypervisor) -> None:
    script(driver, start={"web1": {"lie": True}}, stop={"web2": {"lie": True}})
    driver.start(instance("web1"), [])
    assert driver.info("web1") is None
    driver.start(instance("web2"), [])
    driver.stop("web2", force=True)
    assert driver.info("web2") is not None


def test_lies_about_guests(driver: FakeHypervisor) -> None:
    for name in ("web1", "web2", "web3"):
        driver.start(instance(name), [])
    script(
        driver,
        info={
            "web1": {"lie": {"state": 1, "time": 5.0}},
            "web2": {"lie": None},
            "ghost": {"lie": {"memory": 64}},
        },
    )
    found = driver.info_all()
    assert sorted(found) == ["ghost", "web1", "web3"]
    assert (found["web1"].state, found["web1"].memory) == (RunState.SHUTDOWN, 256)
    assert (found["ghost"].memory, found["ghost"].state) == (64, RunState.RUNNING)
    assert driver.info("web2") is None


def test_lies_about_the_node(driver: FakeHypervisor) -> None:
    script(
        driver,
        node_info={"*": {"lie": {"memory_free": 1, "hv_version": [4, 17]}}},
        verify={"*": {"lie": "no module"}},
        list_names={"*": {"lie": ["a", "b"]}},
    )
    assert driver.node_info({}).memory_free == 1
    assert driver.verify({}) == "no module"
    assert driver.list_names() == ["a", "b"]


def test_guest_that_crashes(driver: FakeHypervisor) -> None:
    driver.start(instance(), [])
    (driver.paths.fake_hypervisor / "web1").unlink()
    assert driver.info("web1") is None
    driver.start(instance(), [])


def test_only_one_of_many_starts_wins(driver: FakeHypervisor) -> None:
    results: list[str] = []

    def start() -> None:
        try:
            driver.start(instance(), [])
            results.append("started")
        except errors.HypervisorError as err:
            results.append(str(err))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert results.count("started") == 1
    assert sum("already runs" in text for text in results) == 7


def test_guests_take_memory_from_the_node(driver: FakeHypervisor) -> None:
    script(driver, node_info={"*": {}})
    before = driver.node_info({}).memory_free
    driver.start(instance(beparams={"maxmem": before, "vcpus": 1}), [])
    assert driver.node_info({}).memory_free < before / 2


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "cannot be used"),
        ('{"begin": {}}', "begin"),
        ('{"start": {"*": {"explode": true}}}', "explode"),
        ('{"start": {"*": {"delay": 61}}}', "60"),
        ('{"start": {"*": {"fail": 5}}}', "fail"),
    ],
)
def test_script_that_cannot_be_used_is_told(driver: FakeHypervisor, text: str, wrong: str) -> None:
    driver.script_file.write_text(text)
    with pytest.raises(errors.HypervisorError, match=wrong) as caught:
        driver.list_names()
    assert str(driver.script_file) in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "call"),
    [
        ({"info": {"*": {"lie": {"colour": "red"}}}}, "info"),
        ({"info": {"*": {"lie": 5}}}, "info"),
        ({"node_info": {"*": {"lie": {"colour": "red"}}}}, "node_info"),
        ({"list_names": {"*": {"lie": 5}}}, "list_names"),
    ],
)
def test_lies_that_nobody_could_believe(
    driver: FakeHypervisor, rules: dict[str, Any], call: str
) -> None:
    script(driver, **rules)
    with pytest.raises(errors.HypervisorError):
        METHODS[call](driver)


def test_file_of_a_guest_that_is_damaged(driver: FakeHypervisor) -> None:
    driver.start(instance(), [])
    (driver.paths.fake_hypervisor / "web1").write_text("0\nmany\n")
    with pytest.raises(errors.HypervisorError, match="must hold three numbers"):
        driver.info("web1")


# devices and moves


def test_disks_are_copied_and_once_more_when_the_guest_follows(tmp_path: Path) -> None:
    ends = [FakeHypervisor(Paths(tmp_path / name)) for name in ("one", "two")]
    files = [tmp_path / name for name in ("one.raw", "two.raw")]
    files[0].write_bytes(b"first" * 1000)
    files[1].write_bytes(bytes(5000))
    source, target = ends
    here, there = (AttachedDisk(DISK, str(path)) for path in files)
    source.start(instance(), [here])
    target.accept(instance(), [there], source.migration_info(instance()), "127.0.0.1")
    source.send_disks("web1", [DISK.uuid], target.receive_disks("web1", [], "127.0.0.1"), 0)
    [found] = source.disk_progress("web1")
    assert (found.uuid, found.done, found.left, found.ready) == (DISK.uuid, 5000, 0, True)
    assert files[1].read_bytes() == b"first" * 1000
    files[0].write_bytes(b"other" * 1000)
    source.migrate(instance(), "127.0.0.1:1", live=True)
    assert files[1].read_bytes() == b"other" * 1000
    with pytest.raises(errors.HypervisorError, match="is not awaited"):
        source.receive_disks("web1", [], "127.0.0.1")


def test_it_has_every_ability(driver: FakeHypervisor) -> None:
    """The script can name every method that a caller may use, and no other."""
    kinds = (Hypervisor, Ballooning, Holding, DiskLimiting)
    kinds += (Hotpluggable, ProcessorChanging, Migratable, DiskSending, DiskConverting)
    assert all(isinstance(driver, kind) for kind in kinds)
    promised = {name for kind in kinds for name, value in vars(kind).items() if callable(value)}
    promised -= {"__init__", "__subclasshook__", "_no_init_or_replace_init"}
    assert promised == set(get_args(Method))
    assert set(METHODS) == set(get_args(Method))


def test_changes_of_devices_are_noted_until_the_end(driver: FakeHypervisor) -> None:
    with pytest.raises(errors.HotplugError, match="does not run"):
        driver.check_hotplug(instance())
    driver.start(instance(), [])
    driver.plug_disk(instance(), AttachedDisk(DISK, "/d"))
    driver.unplug_nic(instance(), NIC)
    assert driver.changes("web1") == ["plug_disk d-1", "unplug_nic n-1"]
    assert driver.plugged_disks("web1") == ["d-1"]
    script(driver, plug_nic={"web1": {"fail": "no slot"}}, change_nic={"*": {"lie": True}})
    with pytest.raises(errors.HotplugError, match="no slot"):
        driver.plug_nic(instance(), 1, NIC)
    driver.change_nic(instance(), 1, NIC)
    assert len(driver.changes("web1")) == 2
    driver.stop("web1")
    driver.cleanup("web1")
    assert driver.changes("web1") == []
    assert driver.plugged_disks("web1") is None


def test_memory_of_a_running_guest(driver: FakeHypervisor) -> None:
    driver.start(instance(), [])
    driver.balloon(instance(), 100)
    found = driver.info("web1")
    assert found is not None
    assert (found.memory, found.vcpus) == (100, 2)


@pytest.fixture
def target(tmp_path: Path) -> FakeHypervisor:
    paths = Paths(tmp_path / "other")
    paths.conf.mkdir(parents=True)
    return FakeHypervisor(paths)


def begin(driver: FakeHypervisor, target: FakeHypervisor) -> dict[str, Any]:
    """Move the guest as far as both ends wait for a decision."""
    driver.start(instance(), [])
    info = driver.migration_info(instance())
    where = target.accept(instance(), [], info, "192.0.2.1")
    driver.migrate(instance(), where, live=True)
    return info


def test_a_guest_is_moved(driver: FakeHypervisor, target: FakeHypervisor) -> None:
    with pytest.raises(errors.HypervisorError, match="did not arrive"):
        target.check_arrived(instance())
    info = begin(driver, target)
    assert driver.migration_status(instance()).status is MigrationState.COMPLETED
    target.check_arrived(instance())
    assert (driver.info("web1"), target.info("web1")) == (None, None)
    for _ in range(2):
        target.finish_target(instance(), info, success=True)
    for _ in range(2):
        driver.finish_source(instance(), success=True, live=True)
    assert (driver.list_names(), target.list_names()) == ([], ["web1"])
    assert (driver.plugged_disks("web1"), target.plugged_disks("web1")) == (None, [])
    with pytest.raises(errors.HypervisorError, match="taken over"):
        target.finish_target(instance(), info, success=False)


def test_a_move_is_given_up(driver: FakeHypervisor, target: FakeHypervisor) -> None:
    info = begin(driver, target)
    for end in (driver, target):
        with pytest.raises(errors.HypervisorError, match="already runs"):
            end.start(instance(), [])
    for _ in range(2):
        target.finish_target(instance(), info, success=False)
    with pytest.raises(errors.HypervisorError, match="did not arrive"):
        target.finish_target(instance(), info, success=True)
    for _ in range(2):
        driver.finish_source(instance(), success=False, live=True)
    assert (driver.list_names(), target.list_names()) == (["web1"], [])
    with pytest.raises(errors.HypervisorError, match="was not moved"):
        driver.finish_source(instance(), success=True, live=True)


def test_a_forced_stop_ends_both_ends(driver: FakeHypervisor, target: FakeHypervisor) -> None:
    begin(driver, target)
    for end in (driver, target):
        end.stop("web1", force=True)
        end.cleanup("web1")
        assert list(end.paths.fake_hypervisor.iterdir()) == []


def test_lies_about_a_move(driver: FakeHypervisor, target: FakeHypervisor) -> None:
    begin(driver, target)
    script(driver, migration_status={"web1": {"lie": {"status": "active", "eta": 3.5}}})
    found = driver.migration_status(instance())
    assert (found.status, found.eta) == (MigrationState.ACTIVE, 3.5)

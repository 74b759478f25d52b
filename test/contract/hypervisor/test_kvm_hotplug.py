"""Devices of running guests of kvm: added, removed, changed, and still the same after a move."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boot_sectors
import msgspec
import pytest
from rack import QEMU, Rack, make_rack

from ganeti import errors
from ganeti.base import process
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.kvm import devices
from ganeti.hypervisor.kvm.devices import USER_NETWORK
from ganeti.model.enums import DiskMode, DiskTemplate, HypervisorName, MigrationState
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

pytestmark = pytest.mark.qemu


def disk(rack: Rack, mebibytes: int = 2, **changes: Any) -> AttachedDisk:
    """A further disk."""
    found = str(uuid.uuid4())
    path = rack.directory / f"{found}.raw"
    with path.open("wb") as stream:
        stream.truncate(mebibytes << 20)
    item = NodeDisk(
        uuid=found, dev_type=DiskTemplate.FILE, logical_id=("loop", str(path)), size=mebibytes
    )
    return AttachedDisk(msgspec.structs.replace(item, **changes), str(path))


def nic(mac: str = "aa:00:00:11:22:33", **parameters: str) -> NodeNic:
    """A card on QEMU's own network, if nothing else is said."""
    return NodeNic(
        uuid=str(uuid.uuid4()),
        mac=mac,
        nicparams=parameters or {"mode": "ext", "link": USER_NETWORK},
    )


def ask(rack: Rack, instance: NodeInstance, command: str, **arguments: Any) -> Any:
    with rack.driver.store.control(instance.name) as qmp:  # type: ignore[attr-defined]
        return qmp.command(command, arguments)


def peripherals(rack: Rack, instance: NodeInstance) -> set[str]:
    return {e["name"] for e in ask(rack, instance, "qom-list", path="/machine/peripheral")}


def slots(rack: Rack, instance: NodeInstance) -> dict[str, tuple[int, int]]:
    """Device -> (bus, slot) as the guest sees it."""
    found = {}

    def walk(bus: int, entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            found[entry["qdev_id"]] = (bus, entry["slot"])
            if "pci_bridge" in entry:
                number = entry["pci_bridge"]["bus"]["secondary"]
                walk(number, entry["pci_bridge"].get("devices", []))

    for top in ask(rack, instance, "query-pci"):
        walk(top["bus"], top["devices"])
    return found


def size_seen(rack: Rack, instance: NodeInstance, item: AttachedDisk) -> int:
    name = devices.device_id("disk", item.disk.uuid)
    nodes = ask(rack, instance, "query-named-block-nodes")
    return next(int(n["image"]["virtual-size"]) for n in nodes if n["node-name"] == name)


def test_disk_comes_and_goes(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, boot_sectors.ejecting)
    kvm.driver.check_hotplug(instance)
    item = disk(kvm)
    for _ in range(2):
        kvm.driver.plug_disk(instance, item)
    name = devices.disk_id(item.disk.uuid)
    assert name in peripherals(kvm, instance)
    assert slots(kvm, instance)[name] == (0, 13)
    found = kvm.make_driver().store.find(instance.name).runtime
    assert found.places[name] == "addr=0xd"
    assert [drive.path for drive in found.drives][1:] == [item.path]
    assert kvm.make_driver().plugged_disks(instance.name)[1:] == [item.disk.uuid]  # type: ignore[attr-defined]
    kvm.driver = kvm.make_driver()
    for _ in range(2):
        kvm.driver.unplug_disk(instance, item.disk)
    assert name not in peripherals(kvm, instance)
    assert item.disk.uuid not in kvm.make_driver().plugged_disks(instance.name)  # type: ignore[attr-defined]
    pid = kvm.driver.store.pid(instance.name)
    opened = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # QEMU closes others meanwhile
            opened.add(os.readlink(entry))
    assert item.path not in opened
    # The place is free again.
    kvm.driver.plug_disk(instance, other := disk(kvm))
    assert slots(kvm, instance)[devices.disk_id(other.disk.uuid)] == (0, 13)


def test_guest_that_does_not_give_up_a_disk(kvm: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("ganeti.hypervisor.kvm.unplug._TIMEOUT", 0.3)
    instance = kvm.instance()
    disks = kvm.start(instance, boot_sectors.deaf)
    kvm.driver.plug_disk(instance, item := disk(kvm))
    for _ in range(2):
        with pytest.raises(errors.HotplugError, match="did not release disk"):
            kvm.driver.unplug_disk(instance, item.disk)
    assert len(kvm.driver.store.find(instance.name).runtime.drives) == 2
    assert size_seen(kvm, instance, item) == 2 << 20
    with pytest.raises(errors.HotplugError, match="did not release"):
        kvm.driver.unplug_disk(instance, disks[0].disk)


def test_guest_that_gives_up_a_disk_late(kvm: Any, monkeypatch: Any) -> None:
    """What was told to have failed and then happened is completed by the next attempt."""
    monkeypatch.setattr("ganeti.hypervisor.kvm.unplug._TIMEOUT", 0.0)
    instance = kvm.instance()
    kvm.start(instance, boot_sectors.ejecting)
    kvm.driver.plug_disk(instance, item := disk(kvm))
    name = devices.disk_id(item.disk.uuid)
    ask(kvm, instance, "stop")  # else it may be quicker than no time at all
    with pytest.raises(errors.HotplugError, match="did not release"):
        kvm.driver.unplug_disk(instance, item.disk)
    ask(kvm, instance, "cont")
    for _ in range(200):
        if name not in peripherals(kvm, instance):
            break
    kvm.driver.unplug_disk(instance, item.disk)
    assert len(kvm.driver.store.find(instance.name).runtime.drives) == 1
    kvm.driver.plug_disk(instance, item)


def test_guest_learns_of_a_larger_disk(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, boot_sectors.ejecting)
    kvm.driver.plug_disk(instance, item := disk(kvm))
    os.truncate(item.path, 5 << 20)
    # What is there counts, not what is said: less would cut off data.
    kvm.driver.resize_disk(instance, item, 1)
    assert size_seen(kvm, instance, item) == os.stat(item.path).st_size == 5 << 20
    with pytest.raises(errors.HotplugError, match="does not have disk"):
        kvm.driver.resize_disk(instance, disk(kvm), 4)


def limits(rack: Rack, instance: NodeInstance, item: AttachedDisk) -> tuple[int, int]:
    """Operations and bytes in a second that QEMU lets the guest have."""
    found = {
        entry["qdev"].split("/")[-2 if entry["qdev"].endswith("virtio-backend") else -1]: entry
        for entry in ask(rack, instance, "query-block")
        if entry.get("qdev")
    }
    inserted = found[devices.disk_id(item.disk.uuid)]["inserted"]
    return inserted["iops"], inserted["bps"]


def test_a_guest_is_kept_to_the_limits_of_its_disks(kvm: Any) -> None:
    """From its start, when they change, and of a disk that comes later."""
    instance = kvm.instance()
    slow = disk(kvm, max_iops=50, max_bandwidth=3)
    kvm.start(instance, boot_sectors.ejecting, more=[slow])
    assert limits(kvm, instance, slow) == (50, 3 << 20)
    kvm.driver.plug_disk(instance, item := disk(kvm, max_iops=7))
    assert limits(kvm, instance, item) == (7, 0)
    kvm.driver.limit_disk(instance, msgspec.structs.replace(item.disk, max_iops=0, max_bandwidth=9))
    assert limits(kvm, instance, item) == (0, 9 << 20)
    with pytest.raises(errors.HotplugError, match="does not have disk"):
        kvm.driver.limit_disk(instance, disk(kvm).disk)


@pytest.mark.parametrize("bus", ["scsi", "ide"])
def test_limits_on_other_buses(kvm: Any, bus: str) -> None:
    instance = kvm.instance(disk_type=bus)
    kvm.start(instance, boot_sectors.ejecting, more=[slow := disk(kvm, max_iops=50)])
    assert limits(kvm, instance, slow) == (50, 0)


def test_card_comes_and_goes(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, boot_sectors.ejecting)
    one, two = nic(), nic("aa:00:00:11:22:44")
    kvm.driver.plug_nic(instance, 0, one)
    kvm.driver.plug_nic(instance, 1, two)
    kvm.driver.plug_nic(instance, 1, two)
    found = kvm.driver.store.find(instance.name).runtime
    assert [n.mac for n in found.instance.nics] == [one.mac, two.mac]
    places = slots(kvm, instance)
    assert places[devices.nic_id(two.uuid)] == (0, 14)
    kvm.driver.unplug_nic(instance, one)
    kvm.driver.unplug_nic(instance, one)
    found = kvm.driver.store.find(instance.name).runtime
    assert [n.mac for n in found.instance.nics] == [two.mac]
    assert devices.nic_id(one.uuid) not in peripherals(kvm, instance)


def test_card_with_another_address_keeps_its_place(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, boot_sectors.ejecting)
    card = nic()
    kvm.driver.plug_nic(instance, 0, card)
    kvm.driver.plug_disk(instance, disk(kvm))
    before = slots(kvm, instance)[devices.nic_id(card.uuid)]
    changed = msgspec.structs.replace(card, mac="aa:00:00:55:55:55")
    kvm.driver.change_nic(instance, 0, changed)
    assert slots(kvm, instance)[devices.nic_id(card.uuid)] == before
    mac = ask(
        kvm,
        instance,
        "qom-get",
        path=f"/machine/peripheral/{devices.nic_id(card.uuid)}",
        property="mac",
    )
    assert mac == "aa:00:00:55:55:55"
    with pytest.raises(errors.HotplugError, match="does not have NIC"):
        kvm.driver.change_nic(instance, 0, nic())


def test_other_machines_and_buses(kvm: Any) -> None:
    q35 = kvm.instance("q35", machine_version="q35")
    kvm.start(q35)
    item, card = disk(kvm), nic()
    kvm.driver.plug_disk(q35, item)
    kvm.driver.plug_nic(q35, 0, card)
    places = slots(kvm, q35)
    ports = {places[devices.disk_id(item.disk.uuid)], places[devices.nic_id(card.uuid)]}
    assert len(ports) == 2
    assert all(bus > 0 for bus, _ in ports)
    assert kvm.driver.store.find("q35").runtime.machine.startswith("pc-q35-")
    scsi = kvm.instance("scsi", disk_type="scsi", scsi_controller_type="virtio-scsi-pci")
    kvm.start(scsi, boot_sectors.ejecting)
    kvm.driver.plug_disk(scsi, item := disk(kvm, mode=DiskMode.RO))
    kvm.driver.unplug_disk(scsi, item.disk)


def test_what_cannot_be_changed_is_told(kvm: Any) -> None:
    instance = kvm.instance()
    for call in (
        lambda: kvm.driver.check_hotplug(instance),
        lambda: kvm.driver.plug_nic(instance, 0, nic()),
        lambda: kvm.driver.change_media(instance),
    ):
        with pytest.raises(errors.HotplugError, match="does not run"):
            call()
    ide = kvm.instance("ide", disk_type="ide", nic_type="ne2k_isa")
    kvm.start(ide, booted=False)
    with pytest.raises(errors.HotplugError, match="disk_type ide cannot"):
        kvm.driver.plug_disk(ide, disk(kvm))
    with pytest.raises(errors.HotplugError, match="ne2k_isa cannot"):
        kvm.driver.plug_nic(ide, 0, nic())
    loose = kvm.instance("loose", kvm_pci_reservations=0)
    kvm.start(loose, booted=False)
    with pytest.raises(errors.HotplugError, match="kvm_pci_reservations 0"):
        kvm.driver.check_hotplug(loose)


def test_refusal_of_qemu_leaves_nothing(kvm: Any) -> None:
    instance = kvm.instance()
    kvm.start(instance, booted=False)
    before = kvm.driver.store.find(instance.name).runtime
    missing = disk(kvm)
    Path(missing.path).unlink()
    with pytest.raises(errors.HotplugError, match="is not there"):
        kvm.driver.plug_disk(instance, missing)
    with pytest.raises(errors.HotplugError, match="no-such-br"):
        kvm.driver.plug_nic(instance, 0, nic(mode="bridged", link="no-such-br"))
    with pytest.raises(errors.HotplugError, match=r"mac|MAC"):
        kvm.driver.plug_nic(instance, 0, nic("nonsense"))
    assert kvm.driver.store.find(instance.name).runtime == before


def test_images_are_changed(kvm: Any, tmp_path: Path) -> None:
    first = boot_sectors.cdrom(tmp_path / "a.iso", "first")
    second = boot_sectors.cdrom(tmp_path / "b, b.iso", "second")
    instance = kvm.instance(boot_order="cdrom", cdrom_image_path=str(first))
    disks = kvm.disks(instance)
    kvm.driver.start(instance, disks)
    kvm.wait_hello(instance, hello="first")

    def put(**images: str) -> NodeInstance:
        changed = msgspec.structs.replace(instance, hvparams={**instance.hvparams, **images})
        kvm.driver.change_media(changed)
        return changed

    put(cdrom_image_path=str(second))
    kvm.driver.reboot(instance, disks)
    kvm.wait_hello(instance, hello="second")
    put(cdrom_image_path="")
    inserted = [e.get("inserted") for e in ask(kvm, instance, "query-block") if e["removable"]]
    assert inserted == [None]
    put(cdrom_image_path=str(first))
    with pytest.raises(errors.HotplugError, match="without an image in cdrom2_image_path"):
        put(cdrom2_image_path=str(second))
    assert kvm.driver.store.find(instance.name).runtime.params.cdrom_image_path == str(first)


@pytest.mark.root
def test_less_privileged_guest_gets_what_it_could_not_open(kvm: Any, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give up privileges")
    iso = boot_sectors.cdrom(tmp_path / "a.iso", "first")
    instance = kvm.instance(
        security_model="user",
        security_domain="nobody",
        use_chroot=True,
        cdrom_image_path=str(iso),
    )
    kvm.start(instance, boot_sectors.ejecting)
    item = disk(kvm)
    Path(item.path).chmod(0o600)
    kvm.driver.plug_disk(instance, item)
    assert size_seen(kvm, instance, item) == 2 << 20
    kvm.driver.unplug_disk(instance, item.disk)
    other = boot_sectors.cdrom(tmp_path / "b.iso", "second")
    other.chmod(0o600)
    hvparams = {**instance.hvparams, "cdrom_image_path": str(other)}
    kvm.driver.change_media(msgspec.structs.replace(instance, hvparams=hvparams))


# on real bridges


@pytest.fixture
def bridges() -> Iterator[tuple[str, str]]:
    names = tuple(f"gnth{os.getpid() % 100000}{letter}" for letter in "ab")
    for name in names:
        made = process.run(["ip", "link", "add", "name", name, "type", "bridge"], timeout=10)
        if not made.ok:
            pytest.skip(f"no bridge can be made here: {made.explain()}")
    yield names[0], names[1]
    for name in names:
        process.run(["ip", "link", "del", name], timeout=10)


def master(tap: str) -> str | None:
    path = Path("/sys/class/net") / tap / "master"
    return os.path.basename(os.readlink(path)) if path.exists() else None


@pytest.mark.root
def test_card_on_a_bridge_is_moved_to_another(kvm: Any, bridges: tuple[str, str]) -> None:
    one, two = bridges
    instance = kvm.instance(virtio_net_queues=2)
    kvm.start(instance, boot_sectors.ejecting)
    card = nic(mode="bridged", link=one)
    kvm.driver.plug_nic(instance, 0, card)
    note = kvm.driver.store.nic_dir(instance.name) / "0"
    tap = note.read_text().strip()
    assert master(tap) == one
    assert int((Path("/sys/class/net") / tap / "flags").read_text(), 16) & 1
    pid = kvm.driver.store.pid(instance.name)
    changed = msgspec.structs.replace(card, nicparams={"mode": "bridged", "link": two})
    kvm.driver.change_nic(instance, 0, changed)
    assert master(tap) == two
    lost = msgspec.structs.replace(card, nicparams={"mode": "bridged", "link": "no-such-br"})
    with pytest.raises(errors.HotplugError, match="no-such-br"):
        kvm.driver.change_nic(instance, 0, lost)
    assert master(tap) == two
    routed = msgspec.structs.replace(
        card, ip="192.0.2.77", nicparams={"mode": "routed", "link": ""}
    )
    kvm.driver.change_nic(instance, 0, routed)
    assert master(tap) is None
    routes = process.run(["ip", "route", "show", "dev", tap], timeout=10).stdout
    assert routes.startswith("192.0.2.77")
    kvm.driver.change_nic(instance, 0, changed)
    assert process.run(["ip", "route", "show", "dev", tap], timeout=10).stdout == ""
    assert kvm.driver.store.pid(instance.name) == pid
    kvm.driver.unplug_nic(instance, card)
    assert not (Path("/sys/class/net") / tap).exists()
    assert not note.exists()


@pytest.mark.root
def test_scripts_see_a_card_come_and_go(kvm: Any, tmp_path: Path) -> None:
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK) or os.geteuid():
        pytest.skip("taps can only be made by root")
    kvm.paths.conf.mkdir(parents=True)
    for name in ("kvm-ifup-os", "kvm-ifdown-os"):
        script = kvm.paths.conf / name
        words = '"$(basename $0) $INTERFACE_UUID $LINK"'
        script.write_text(f"#!/bin/sh\necho {words} >> {tmp_path}/said\n")
        script.chmod(0o755)
    instance = kvm.instance()
    kvm.start(instance, boot_sectors.ejecting)
    card = nic(mode="ext", link="blue")
    kvm.driver.plug_nic(instance, 0, card)
    changed = msgspec.structs.replace(card, nicparams={"mode": "ext", "link": "green"})
    kvm.driver.change_nic(instance, 0, changed)
    kvm.driver.stop(instance.name, force=True)
    kvm.driver.cleanup(instance.name)
    said = [line.split() for line in (tmp_path / "said").read_text().splitlines()]
    assert said == [
        ["kvm-ifup-os", card.uuid, "blue"],
        ["kvm-ifdown-os", card.uuid, "blue"],
        ["kvm-ifup-os", card.uuid, "green"],
        ["kvm-ifdown-os", card.uuid, "green"],
    ]


# and moves


def test_devices_are_where_they_were_after_a_move(kvm: Any, tmp_path: Path) -> None:
    if QEMU is None:
        pytest.skip("no QEMU on this machine: install qemu-system-x86")
    (tmp_path / "two").mkdir()
    target = make_rack(HypervisorName.KVM, tmp_path / "two")
    instance = kvm.instance(migration_bandwidth=1000, migration_downtime=300)
    try:
        target.instances.append(instance)
        disks = kvm.start(instance, boot_sectors.ejecting)
        first, second = disk(kvm), disk(kvm)
        for item in (first, second):
            kvm.driver.plug_disk(instance, item)
        second = AttachedDisk(msgspec.structs.replace(second.disk, max_iops=70), second.path)
        kvm.driver.limit_disk(instance, second.disk)
        kvm.driver.plug_nic(instance, 0, card := nic())
        kvm.driver.unplug_disk(instance, first.disk)
        kvm.driver.plug_nic(instance, 1, nic("aa:00:00:11:22:44"))
        kvm.driver.balloon(instance, 12)
        before = slots(kvm, instance)
        info = kvm.driver.migration_info(instance)
        # The configuration lists disks by itself, in another order.
        where = target.driver.accept(instance, [second, *disks], info, "127.0.0.1")
        kvm.driver.migrate(instance, where, live=True)
        while kvm.driver.migration_status(instance).status is MigrationState.ACTIVE:
            pass
        target.driver.finish_target(instance, info, success=True)
        kvm.driver.finish_source(instance, success=True, live=True)
        assert slots(target, instance) == before
        found = target.driver.info(instance.name)
        assert found is not None
        assert found.memory == 12
        assert limits(target, instance, second) == (70, 0)
        target.driver.unplug_nic(instance, card)
        target.driver.unplug_disk(instance, second.disk)
    finally:
        target.close()

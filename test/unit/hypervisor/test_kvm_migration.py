"""What nodes agree on for a migration, QEMU's figures, and what its journal tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ganeti import errors
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.kvm import firmware, journal, migration_plan
from ganeti.hypervisor.kvm.params import load
from ganeti.hypervisor.kvm.places import Places
from ganeti.model.enums import DiskTemplate, MigrationState
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk, NodeInstance

#: QEMU 7.2 in the middle of a migration.
ACTIVE = {
    "status": "active",
    "total-time": 1002,
    "expected-downtime": 300,
    "ram": {
        "total": 67641344,
        "remaining": 40000000,
        "transferred": 27641344,
        "mbps": 80.0,
        "dirty-pages-rate": 1000,
        "page-size": 4096,
        "dirty-sync-count": 2,
    },
}


def instance(**changes: Any) -> NodeInstance:
    facts = {"uuid": "u", "name": "web1", "primary_node": "n", "hypervisor": "kvm"}
    return NodeInstance(**{**facts, **changes})


def trip(**changes: Any) -> migration_plan.Journey:
    facts: dict[str, Any] = {
        "instance": instance(),
        "machine": "pc-i440fx-7.2",
        "accelerator": "tcg",
        "places": {"hd-1": "addr=0xc"},
        "drives": ("d2", "d1"),
        "memory": 64,
        "running": True,
        "key": "00",
    }
    return migration_plan.Journey(**{**facts, **changes})


def test_a_journey_travels_as_json() -> None:
    wire = json.loads(json.dumps(msgspec.to_builtins(trip())))
    assert migration_plan.read_journey(wire, instance()) == trip()
    with pytest.raises(errors.HypervisorError, match="not of web2"):
        migration_plan.read_journey(wire, instance(uuid="v", name="web2"))
    with pytest.raises(errors.HypervisorError, match="same version"):
        migration_plan.read_journey({**wire, "memory": "much"}, instance())


def test_disks_come_in_the_order_of_the_guest() -> None:
    disks = [
        AttachedDisk(NodeDisk(uuid=u, dev_type=DiskTemplate.FILE, logical_id=(), size=1), f"/{u}")
        for u in ("d1", "d2")
    ]
    assert [d.path for d in migration_plan.order_disks(disks, trip())] == ["/d2", "/d1"]
    for wrong in (
        disks[:1],
        [*disks, disks[0].__class__(msgspec.structs.replace(disks[0].disk, uuid="d3"), "/d3")],
    ):
        with pytest.raises(errors.HypervisorError, match="other disks"):
            migration_plan.order_disks(wrong, trip())


@pytest.mark.parametrize(
    ("target", "where"),
    [
        ("192.0.2.1", "192.0.2.1:8102"),
        ("192.0.2.1:9000", "192.0.2.1:9000"),
        ("2001:db8::1", "[2001:db8::1]:8102"),
        ("[2001:db8::1]:9000", "[2001:db8::1]:9000"),
    ],
)
def test_destinations(target: str, where: str) -> None:
    assert migration_plan.destination(target, load({})) == where


@pytest.mark.parametrize("target", ["", "node2.example.com", "1.2.3:5", "exec:reboot", ":8102"])
def test_what_is_no_destination(target: str) -> None:
    with pytest.raises(errors.HypervisorError, match="not an address"):
        migration_plan.destination(target, load({}))


def test_limits_and_capabilities() -> None:
    chosen = load({"migration_bandwidth": 33, "migration_downtime": 31})
    limits = migration_plan.limits(chosen)
    assert (limits["max-bandwidth"], limits["downtime-limit"]) == (33 << 20, 31)
    assert migration_plan.limits(load({"migration_bandwidth": 0}))["max-bandwidth"] > 1 << 60
    names = migration_plan.capabilities(load({"migration_caps": "xbzrle:auto-converge"}))
    found = [entry["capability"] for entry in names]
    assert found == ["events", "dirty-bitmaps", "xbzrle", "auto-converge"]


def test_figures_of_a_migration() -> None:
    found = migration_plan.status(ACTIVE)
    assert (found.status, found.total_ram) == (MigrationState.ACTIVE, 67641344)
    # 10 MB/s are sent, 4.1 MB/s are written again: 40 MB take 6.8 s.
    assert found.eta == 6.8
    ram: dict[str, Any] = {**ACTIVE["ram"], "dirty-pages-rate": 5000}  # type: ignore[dict-item]
    assert migration_plan.status({**ACTIVE, "ram": ram}).eta is None


@pytest.mark.parametrize(
    ("word", "state", "text"),
    [
        ("none", MigrationState.FAILED, "no migration"),
        ("setup", MigrationState.ACTIVE, None),
        ("cancelling", MigrationState.ACTIVE, None),
        ("cancelled", MigrationState.CANCELLED, None),
        ("completed", MigrationState.COMPLETED, None),
        ("failed", MigrationState.FAILED, "names no reason"),
        ("postcopy-active", MigrationState.ACTIVE, None),
        ("postcopy-paused", MigrationState.FAILED, "it is lost"),
    ],
)
def test_words_of_qemu(word: str, state: MigrationState, text: str | None) -> None:
    found = migration_plan.status({"status": word})
    assert found.status is state
    assert (found.error is None) == (text is None)
    assert text is None or text in str(found.error)
    assert (found.postcopy_status is True) == word.startswith("postcopy")


def test_the_switch_comes_when_everything_was_sent_once() -> None:
    wanted = load({"migration_caps": "postcopy-ram"})
    assert migration_plan.wants_switch(ACTIVE, wanted)
    assert not migration_plan.wants_switch(ACTIVE, load({}))
    ram = {**ACTIVE["ram"], "dirty-sync-count": 1}  # type: ignore[dict-item]
    assert not migration_plan.wants_switch({**ACTIVE, "ram": ram}, wanted)
    assert not migration_plan.wants_switch({**ACTIVE, "status": "postcopy-active"}, wanted)


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "data": data, "timestamp": {"seconds": 1}}


def test_who_has_the_guest() -> None:
    active, done = event("MIGRATION", status="active"), event("MIGRATION", status="completed")
    assert not journal.handed_over([])
    assert not journal.handed_over([active, event("STOP")])
    assert not journal.handed_over([active, event("MIGRATION", status="failed")])
    assert journal.handed_over([active, event("STOP"), done])
    assert journal.handed_over([active, event("MIGRATION", status="postcopy-active")])
    assert not journal.handed_over([active, done, event("RESUME")])
    assert journal.was_resumed([active, event("RESUME"), done])
    assert not journal.was_resumed([active, done])


def test_a_journal_is_read_from_a_position_and_kept_short(tmp_path: Path) -> None:
    book = journal.Journal(tmp_path / "events")
    assert (book.size(), book.lines(0)) == (0, [])
    book.trim()
    line = json.dumps(event("RESUME")).encode() + b"\r\n"
    book.path.write_bytes(b'{"QMP": {}}\r\n' + line + b'{"event": "CUT')
    assert [e["event"] for e in book.lines(0)] == ["RESUME"]
    with book.path.open("r+b") as stream:
        stream.seek(2 << 20)
        stream.write(line * 30000)
        before = stream.tell()
        book.trim()
        stream.write(line)
        stream.flush()
        assert book.size() > before
        assert book.path.stat().st_blocks * 512 < 1 << 20
        assert [e["event"] for e in book.tail()] == ["RESUME"]


def test_places_are_kept_and_given_again() -> None:
    places = Places(12, q35=False, occupied={"a": "addr=0xd"})
    assert [places.express(name) for name in ("a", "b", "c", "b")] == [
        "addr=0xd",
        "addr=0xc",
        "addr=0xe",
        "addr=0xc",
    ]
    places.release("b")
    assert places.slot("d") == "addr=0xc"
    assert list(places.root_ports()) == []
    ports = Places(12, q35=True)
    assert len(list(ports.root_ports())) == 20
    assert (ports.express("a"), ports.slot("b")) == ("bus=port0", "addr=0xf")
    assert ports.ide("c") == "bus=ide.0"
    none = Places(0, q35=True)
    assert (none.express("a"), none.slot("b"), list(none.root_ports())) == ("", "", [])
    assert [places.scsi(str(n)) for n in range(7)][-1] == "bus=scsi.0,scsi-id=6"
    with pytest.raises(errors.HypervisorError, match="scsi_controller_type virtio-scsi-pci"):
        places.scsi("7")


def test_firmware_and_its_variables(tmp_path: Path) -> None:
    assert firmware.find(load({})) is None
    with pytest.raises(errors.HypervisorError, match="install the package ovmf"):
        firmware.find(load({"firmware": "uefi"}), tmp_path)
    directory = tmp_path / "usr/share/OVMF"
    directory.mkdir(parents=True)
    for name in ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"):
        (directory / name).write_text(name)
    found = firmware.find(load({"firmware": "uefi"}), tmp_path)
    assert found is not None
    paths = Paths(tmp_path / "root")
    store = Path(firmware.variables(found, paths, "some-uuid"))
    assert store.read_text() == "OVMF_VARS_4M.fd"
    assert store.stat().st_mode & 0o777 == 0o600
    store.write_text("changed by the guest")
    assert Path(firmware.variables(found, paths, "some-uuid")).read_text().startswith("changed")
    with pytest.raises(errors.HypervisorError, match="uefi-secure"):
        firmware.find(load({"firmware": "uefi-secure"}), tmp_path)

"""Records that Ganeti 3.0.2 wrote of guests that run, read as ours."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ganeti import errors
from ganeti.config.upgrade.upgrade import upgrade
from ganeti.hypervisor.kvm import adoption
from ganeti.hypervisor.kvm.hotplug import Hotplug
from ganeti.hypervisor.kvm.migration_source import MigrationSource
from ganeti.hypervisor.kvm.network import Scripts
from ganeti.hypervisor.kvm.runtime import Runtime, Store
from ganeti.ops import annotate
from ganeti.rpc.objects import NodeInstance

RECORDED = Path(__file__).parents[2] / "recorded" / "takeover_3_0_2.json"
WEB, FILED = "web1.example.com", "file1.example.com"


@pytest.fixture(scope="module")
def recording() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def instance(recording: dict[str, Any], name: str) -> NodeInstance:
    config = upgrade(recording["config"]).config
    item = next(item for item in config.instances.values() if item.name == name)
    return annotate.instance(config, item)


def adopt(recording: dict[str, Any], name: str, **more: Any) -> Runtime:
    return adoption.adopt(
        adoption.read(recording["records"][name]),
        recording["argv"][name],
        more.pop("instance", None) or instance(recording, name),
        {int(index): tap for index, tap in recording["taps"][name].items()},
        started=1.0,
        **more,
    )


def test_a_guest_of_3_0_2_is_adopted_as_it_runs(recording: dict[str, Any]) -> None:
    found = adopt(recording, FILED)
    assert found.memory == 128
    assert found.accelerator == "tcg"
    assert found.user == ""
    assert [card.tap for card in found.cards] == ["tap1"]
    assert [(card.mode, card.link) for card in found.cards] == [("bridged", "br0")]
    assert [drive.path for drive in found.drives] == [
        f"/var/run/ganeti/instance-disks/{FILED}:0",
        f"/var/run/ganeti/instance-disks/{FILED}:1",
    ]
    assert found.params.disk_discard == "ignore"
    assert found.instance.nics[0].mac == "aa:00:00:77:1f:a3"


def test_a_network_of_a_nic_goes_on(recording: dict[str, Any]) -> None:
    (nic,) = adopt(recording, WEB).instance.nics
    assert nic.ip == "192.0.2.1"
    assert nic.netinfo is not None
    assert nic.netinfo["name"] == "lan"


def test_the_driver_reads_what_it_adopted(recording: dict[str, Any], tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    store.save(adopt(recording, WEB))
    found = store.find(WEB)
    assert found is not None
    assert found.pid is None
    assert found.runtime.memory == 128


def test_what_was_started_counts_and_not_what_is_configured_now(recording: dict[str, Any]) -> None:
    argv = list(recording["argv"][WEB])
    argv[argv.index("-m") + 1] = "512"
    argv[argv.index("-smp") + 1] = "2,maxcpus=4"
    changed = {**recording, "argv": {WEB: [*argv, "-enable-kvm", "-runas", "gnt-kvm"]}}
    found = adopt(changed, WEB)
    assert found.memory == 512
    assert found.instance.backend("vcpus") == 2
    assert found.accelerator == "kvm"
    assert found.user == "gnt-kvm"


@pytest.mark.parametrize("kind", ["nics", "disks"])
def test_a_device_that_the_configuration_does_not_have_is_refused(
    recording: dict[str, Any], kind: str
) -> None:
    record = json.loads(recording["records"][WEB])
    if kind == "nics":
        record[1][0]["uuid"] = "0" * 36
    else:
        record[3][0][0]["uuid"] = "0" * 36
    changed = {**recording, "records": {WEB: json.dumps(record)}}
    with pytest.raises(errors.HypervisorError, match="is not in the configuration; restart"):
        adopt(changed, WEB)


def test_parameters_that_nobody_knows_do_not_matter() -> None:
    values = {"acpi": False, "disk_discard": "default", "chameleon": 1, "serial_speed": "fast"}
    assert adoption.translate(values) == {"acpi": False, "disk_discard": "ignore"}


@pytest.mark.parametrize(
    "text", ["", "{}", '{"version": 1}', "[]", "[[], []]", "[1, [], {}]", '[["kvm"], {}, {}, []]']
)
def test_other_content_is_refused(text: str) -> None:
    with pytest.raises(errors.ParseError):
        adoption.read(text)


def test_the_older_form_without_disks_is_read() -> None:
    assert adoption.read('[["kvm", "-m", 128], [], {}]').disks == ()


def test_it_can_neither_move_nor_change_devices_before_a_restart(
    recording: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.prepare()
    monkeypatch.setattr(store, "pid", lambda _name: 1)
    made = adopt(recording, WEB)
    store.save(_by(made, "Ganeti 3.0.2"))
    hotplug = Hotplug(store, Scripts(tmp_path))
    said = "was started by Ganeti 3.0.2"
    with pytest.raises(errors.HotplugError, match=f"{said}.*reboot -t hard {WEB}"):
        hotplug.check(WEB)
    with pytest.raises(errors.HotplugError, match=said):
        hotplug.set_vcpus(made.instance)
    source = MigrationSource.__new__(MigrationSource)
    source._store = store
    with pytest.raises(errors.HypervisorError, match=said):
        source.check(WEB)


def _by(runtime: Runtime, software: str) -> Runtime:
    import msgspec

    return msgspec.structs.replace(copy.copy(runtime), software=software)

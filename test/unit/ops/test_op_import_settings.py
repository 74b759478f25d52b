"""What a new instance takes from an export, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest
from op_samples import change, config, node, put, with_instance

from ganeti import errors
from ganeti.guest_os.export_config import ExportConfig, ExportedDisk
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.opcodes import wire
from ganeti.opcodes.devices import NicParams
from ganeti.opcodes.hidden import reveal_all
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.planning import import_settings

MAC = "aa:00:00:00:00:99"
CONFIG = with_instance(config(node(2)), "web1", "node-2")


def creation(mode: str = "import", **given: Any) -> OpInstanceCreate:
    needed = {"instance_name": "new", "mode": mode, "disks": [], "nics": []}
    return wire.decode(OpInstanceCreate, {**needed, **given})


def export(**given: Any) -> ExportConfig:
    values: dict[str, Any] = {
        "name": "old",
        "os": "noop",
        "source": "node1",
        "compression": "none",
        "template": "file",
        "hypervisor": "fake",
        "hvparams": {},
        "beparams": {},
        "osparams": {},
        "osparams_private": {},
        "tags": (),
        "nics": (),
        "disks": (),
    }
    return ExportConfig(**{**values, **given})


def complete(
    of: ExportConfig, name: str = "new", config: Config = CONFIG, **given: Any
) -> tuple[OpInstanceCreate, list[str]]:
    said: list[str] = []
    return import_settings.complete(config, creation(**given), name, of, said.append), said


def test_what_is_left_open_comes_from_the_export() -> None:
    found, said = complete(
        export(
            beparams={"maxmem": "512", "vcpus": "2"},
            osparams={"a": "1", "b": "2"},
            osparams_private={"b": "hidden", "c": "hidden"},
            tags=("x",),
            disks=(ExportedDisk(10, "d0", "root"), ExportedDisk(20, "d1")),
            nics=({"ip": "192.0.2.77"},),
        ),
        osparams={"b": "3"},
        beparams={"vcpus": 4},
    )
    assert (found.os_type, found.hypervisor, found.disk_template) == ("noop", "fake", "file")
    assert found.beparams == {"maxmem": "512", "vcpus": 4}
    assert found.osparams == {"a": "1", "b": "3"}
    assert reveal_all(found.osparams_private) == {"c": "hidden"}
    assert found.tags == ["x"]
    assert [(disk.size, disk.name) for disk in found.disks] == [(10, "root"), (20, None)]
    assert [nic.ip for nic in found.nics] == ["192.0.2.77"]
    assert said == []


def test_what_is_given_counts() -> None:
    given = {
        "os_type": "mine",
        "hypervisor": "kvm",
        "disk_template": "plain",
        "tags": ["mine"],
        "nics": [{"mac": MAC}],
    }
    of = export(hvparams={"a": "1"}, tags=("x",), nics=({}, {}))
    found, said = complete(of, **given)
    assert (found.os_type, found.hypervisor, found.disk_template) == ("mine", "kvm", "plain")
    assert found.hvparams == {}
    assert found.tags == ["mine"]
    assert [nic.mac for nic in found.nics] == [MAC]
    assert said == []


def test_an_export_without_settings_leaves_them_open() -> None:
    found, _ = complete(export(os="", template=None, hypervisor=None))
    assert (found.os_type, found.hypervisor, found.disk_template) == (None, None, None)
    assert found.osparams_private is None


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (export(hypervisor="vserver"), "has hypervisor 'vserver', which this version does not"),
        (export(hypervisor="x" * 41), f"has hypervisor '{'x' * 40}', which"),
        (export(template="floppy"), "has disk template 'floppy'"),
    ],
)
def test_unknown_drivers_are_refused(of: ExportConfig, text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        complete(of)


def test_unknown_parameters_are_left_out_and_said() -> None:
    found, said = complete(
        export(
            hypervisor="kvm",
            hvparams={"acpi": "True", "z": "1", "y": "2", "kernel_path": "None"},
            beparams={"maxmem": "64", "colour": "red"},
        )
    )
    assert found.hvparams == {"acpi": "True"}
    assert found.beparams == {"maxmem": "64"}
    assert said == [
        "Hypervisor parameters of the export that this version does not know: y, z",
        "Backend parameters of the export that this version does not know: colour",
    ]


def test_parameters_of_the_cluster_are_not_imported() -> None:
    found, said = complete(export(hypervisor="kvm", hvparams={"migration_bandwidth": "9"}))
    assert (dict(found.hvparams), said) == ({}, [])


def test_names_of_disks_are_taken_once() -> None:
    disk = Disk(uuid="x", name="root", dev_type=DiskTemplate.FILE, size=1)
    of = export(disks=(ExportedDisk(10, "d0", "root"), ExportedDisk(10, "d1", "swap")))
    found, _ = complete(of, config=put(CONFIG, "disks", disk))
    assert [each.name for each in found.disks] == [None, "swap"]


def test_disks_that_are_given_must_hold_those_of_the_export() -> None:
    of = export(disks=(ExportedDisk(10, "d0"), ExportedDisk(20, "d1")))
    given = [{"size": 10}, {"size": 21}, {"size": 1}]
    found, _ = complete(of, disks=given)
    assert [disk.size for disk in found.disks] == [10, 21, 1]
    with pytest.raises(errors.OpPrereqError, match=r"has 2 disks, so .* not 1"):
        complete(of, disks=given[:1])
    with pytest.raises(errors.OpPrereqError, match=r"disk 1 needs at least 20 MiB, .* not 19"):
        complete(of, disks=[{"size": 10}, {"size": 19}])


@pytest.mark.parametrize("name", ["net1", "net-1"])
def test_a_nic_is_in_the_network_of_this_cluster(name: str) -> None:
    of = put(CONFIG, "networks", Network(uuid="net-1", name="net1", network="192.0.2.0/24"))
    nic = {"network": name, "mode": "bridged", "link": "br9", "vlan": "5", "ip": "192.0.2.5"}
    found, said = complete(export(nics=(nic,)), config=of)
    assert found.nics == [NicParams(network="net1", ip="192.0.2.5")]
    assert said == []


def test_a_network_of_another_cluster_is_left_out_and_said() -> None:
    found, said = complete(export(nics=({"network": "other", "link": "br9"},)))
    assert found.nics == [NicParams(link="br9")]
    assert said == ["The network other of a NIC is not in this cluster; the NIC has none"]


def test_the_same_instance_keeps_its_mac_address_when_it_is_free() -> None:
    of = export(nics=({"mac": MAC},))
    assert complete(of, "other")[0].nics == [NicParams()]
    found, said = complete(of, "old")
    assert (found.nics, said) == ([NicParams(mac=MAC)], [])
    used = change(CONFIG, nics=(Nic(uuid="n", mac=MAC),))
    found, said = complete(of, "old", config=used)
    assert found.nics == [NicParams()]
    assert said == [f"The MAC address {MAC} of the export is in use; the NIC gets another one"]


REMOTE = {"source_handshake": [], "source_x509_ca": "pem", "source_instance_name": "old"}


@pytest.mark.parametrize(
    ("mode", "given"),
    [
        ("create", {"no_install": True, "disks": [{"adopt": "a"}]}),
        ("import", {"src_node": "node1", "src_path": "/x"}),
        ("import", {"backup": "b", "disks": [{"size": 1}]}),
        ("remote-import", REMOTE),
    ],
)
def test_parameters_that_fit_the_mode(mode: str, given: dict[str, Any]) -> None:
    import_settings.check_mode(creation(mode, **given))


@pytest.mark.parametrize(
    ("mode", "given", "text"),
    [
        ("create", {"src_path": "/x"}, "src_path makes sense only in mode import, not create"),
        ("remote-import", {**REMOTE, "backup": "b"}, "only in mode import, not remote-import"),
        ("import", {"source_x509_ca": "p"}, "only in mode remote-import, not import"),
        ("import", {"no_install": True}, "no_install makes no sense in mode import"),
        ("import", {"disks": [{"size": 1}, {"adopt": "a"}]}, "adopted have their content already"),
        ("remote-import", {"source_handshake": []}, "needs source_x509_ca, source_instance_name"),
    ],
)
def test_parameters_that_do_not_fit_the_mode(mode: str, given: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.OpPrereqError, match=text):
        import_settings.check_mode(creation(mode, **given))

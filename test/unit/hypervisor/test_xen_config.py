"""The configuration file of a domain, and the parameters that it is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ganeti import errors
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.hypervisor.typed_params import load
from ganeti.hypervisor.xen import domain_config
from ganeti.hypervisor.xen.params import HvmParams, PvmParams
from ganeti.model.enums import DiskMode
from ganeti.paths import Paths
from ganeti.rpc.objects import NodeDisk, NodeInstance, NodeNic

TABLE = Path(__file__).parents[2] / "recorded" / "xen_params.json"
#: Parameters that only this implementation has.
OURS = {"xen-pvm": {"guest_type"}, "xen-hvm": set()}


def instance(**changes: Any) -> NodeInstance:
    facts: dict[str, Any] = {
        "uuid": "5a3c1f0e-7f4f-4a52-8a36-0d5be6d4a001",
        "name": "web1.example.com",
        "primary_node": "node1-uuid",
        "hypervisor": "xen-pvm",
        "beparams": {"maxmem": 512, "minmem": 256, "vcpus": 2},
        "nics": (nic(),),
        "network_port": 11001,
    }
    return NodeInstance(**{**facts, **changes})


def nic(**changes: Any) -> NodeNic:
    facts: dict[str, Any] = {
        "uuid": "n1",
        "mac": "aa:00:00:00:00:01",
        "ip": None,
        "nicparams": {"mode": "bridged", "link": "xen-br0", "vlan": ""},
    }
    return NodeNic(**{**facts, **changes})


def disk(path: str = "/dev/xenvg/disk0", **changes: Any) -> AttachedDisk:
    facts: dict[str, Any] = {
        "uuid": "d1",
        "dev_type": "plain",
        "logical_id": ("xenvg", "disk0"),
        "iv_name": "disk/0",
        "size": 1024,
    }
    return AttachedDisk(NodeDisk(**{**facts, **changes}), path)


def hvm(params: HvmParams | None = None, password: str | None = "pw", **changes: Any) -> str:
    guest = domain_config.Hvm(params or HvmParams(), password)
    return domain_config.hvm(instance(**changes), [disk()], guest)


@pytest.mark.parametrize(("name", "kind"), [("xen-pvm", PvmParams), ("xen-hvm", HvmParams)])
def test_parameters_are_the_documented_ones(name: str, kind: type[msgspec.Struct]) -> None:
    table = json.loads(TABLE.read_text())[name]
    found = {field.name: field.default for field in msgspec.structs.fields(kind)}
    assert set(found) - OURS[name] == set(table)
    assert {key: found[key] for key in table} == {k: row["default"] for k, row in table.items()}
    for key, row in table.items():
        for value in row.get("values", []):
            load(kind, {key: value}, "xen")
        if "values" in row:
            with pytest.raises(errors.HypervisorError, match=key):
                load(kind, {key: "something else"}, "xen")


def test_a_paravirtual_guest() -> None:
    params = PvmParams(kernel_path="/boot/k", initrd_path="/boot/i", cpu_cap=50)
    assert domain_config.pvm(instance(), [disk()], params).splitlines() == [
        "type = 'pv'",
        "name = 'web1.example.com'",
        "uuid = '5a3c1f0e-7f4f-4a52-8a36-0d5be6d4a001'",
        "memory = 512",
        "maxmem = 512",
        "vcpus = 2",
        "cap = 50",
        "cpu_weight = 256",
        "on_poweroff = 'preserve'",
        "on_reboot = 'restart'",
        "on_crash = 'restart'",
        "kernel = '/boot/k'",
        "ramdisk = '/boot/i'",
        "root = '/dev/xvda1'",
        "extra = 'ro'",
        "disk = ['format=raw,vdev=sda,access=rw,target=/dev/xenvg/disk0']",
        "vif = ['mac=aa:00:00:00:00:01,bridge=xen-br0']",
    ]


def test_a_boot_loader_takes_the_place_of_the_kernel() -> None:
    params = PvmParams(use_bootloader=True, bootloader_path="/usr/bin/pygrub", bootloader_args="-q")
    text = domain_config.pvm(instance(), [], params)
    assert "bootloader = '/usr/bin/pygrub'\nbootloader_args = '-q'\n" in text
    assert "kernel" not in text


def test_a_guest_with_help_of_the_processor() -> None:
    text = domain_config.pvm(instance(), [], PvmParams(guest_type="pvh"))
    assert text.startswith("type = 'pvh'\n")


def test_an_hvm_guest() -> None:
    lines = hvm().splitlines()
    for line in (
        'type = "hvm"',
        "acpi = 1",
        "boot = 'cd'",
        "vnc = 1",
        "vnclisten = '0.0.0.0'",
        "vncdisplay = 5101",
        "vncpasswd = 'pw'",
        "disk = ['format=raw,vdev=xvda,access=rw,target=/dev/xenvg/disk0']",
        "vif = ['mac=aa:00:00:00:00:01,bridge=xen-br0,type=ioemu,model=rtl8139']",
    ):
        assert line in lines
    assert not [line for line in lines if "override" in line]  # the builtin ones are Xen's own


def test_an_hvm_guest_with_emulated_disks_a_cd_and_paravirtual_cards() -> None:
    params = HvmParams(
        disk_type="ioemu",
        cdrom_image_path="/cd.iso",
        nic_type="paravirtual",
        pci_pass="a;b",
        device_model="/opt/qemu",
    )
    text = hvm(params)
    assert "'format=raw,vdev=hda,access=rw,target=/dev/xenvg/disk0'" in text
    assert "'format=raw,vdev=hdc,access=ro,devtype=cdrom,target=/cd.iso'" in text
    assert "bridge=xen-br0,type=vif'" in text
    assert "pci = ['a', 'b']" in text
    assert "device_model_override = '/opt/qemu'" in text


def test_without_a_password_there_is_no_display() -> None:
    text = hvm(password=None)
    assert "vnc = 0" in text
    assert "vncdisplay" not in text


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"mode": "routed", "link": "", "vlan": ""}, "ip=192.0.2.1,script=vif-route"),
        (
            {"mode": "openvswitch", "link": "sw0", "vlan": ".5:6"},
            "ip=192.0.2.1,bridge=sw0.5:6,script=vif-openvswitch",
        ),
        ({"mode": "bridged", "link": "br0", "vlan": ""}, "ip=192.0.2.1,bridge=br0"),
    ],
)
def test_network_cards(params: dict[str, str], expected: str) -> None:
    card = nic(ip="192.0.2.1", nicparams=params)
    text = domain_config.pvm(instance(nics=(card,)), [], PvmParams())
    assert f"vif = ['mac=aa:00:00:00:00:01,{expected}']" in text


def test_the_card_for_the_node_has_its_own_script() -> None:
    card = nic(ip="169.254.0.5", name="ganeti:communication:web1", nicparams={"mode": "routed"})
    text = domain_config.pvm(instance(nics=(card,)), [], PvmParams(vif_script="vif-ganeti"))
    assert "ip=169.254.0.5,script=/usr/lib/ganeti/vif-ganeti-metad'" in text


def test_processors() -> None:
    one = domain_config.pvm(instance(), [], PvmParams(cpu_mask="0"))
    assert "cpus = '0'" in one
    each = domain_config.pvm(instance(), [], PvmParams(cpu_mask="0:all"))
    assert "cpus = ['0', 'all']" in each
    with pytest.raises(errors.HypervisorError, match="has 3 masks"):
        domain_config.pvm(instance(), [], PvmParams(cpu_mask="0:0:0"))


@pytest.mark.parametrize("text", ["it's", "a\nkernel = '/evil'", "a\0b"])
def test_no_value_can_add_a_line(text: str) -> None:
    with pytest.raises(errors.HypervisorError, match="cannot be given to xl"):
        domain_config.pvm(instance(), [], PvmParams(kernel_args=text))
    with pytest.raises(errors.HypervisorError, match="cannot be given to xl"):
        domain_config.pvm(instance(), [disk(text)], PvmParams())


def test_no_value_can_add_an_option_to_a_card() -> None:
    evil = nic(nicparams={"mode": "bridged", "link": "br0,script=/evil", "vlan": ""})
    with pytest.raises(errors.HypervisorError, match="cannot be given to xl"):
        domain_config.pvm(instance(nics=(evil,)), [], PvmParams())


def test_read_only_disks_and_too_many() -> None:
    text = domain_config.pvm(instance(), [disk(mode=DiskMode.RO)], PvmParams(blockdev_prefix="xvd"))
    assert "vdev=xvda,access=ro" in text
    with pytest.raises(errors.HypervisorError, match="at most 26 disks"):
        domain_config.pvm(instance(), [disk()] * 27, PvmParams())


_KERNEL = {"kernel_path": "/boot/k"}
_LOADER = {"use_bootloader": True, "bootloader_path": "/usr/bin/pygrub"}
#: Parameters that do not go into the configuration, and which test sees their effect.
_ELSEWHERE = {
    "migration_mode": "test/unit/ops/test_op_migration.py",
    "migration_port": "test/contract/hypervisor/test_xen_moves.py",
    "vnc_password_file": "test_the_password_of_the_display_is_in_the_file",
}
_BOTH = {
    "cpu_cap": (50, {}, "cap = 50"),
    "cpu_mask": ("1", {}, "cpus = '1'"),
    "cpu_weight": (512, {}, "cpu_weight = 512"),
    "cpuid": ("host,tm=0", {}, "cpuid = 'host,tm=0'"),
    "reboot_behavior": ("exit", {}, "on_reboot = 'destroy'"),
    "soundhw": ("hda", {}, "soundhw = 'hda'"),
    "vif_script": ("/etc/vif", {}, "script=/etc/vif"),
}
#: parameter -> (value, other parameters, what the configuration then has)
PVM_EFFECTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    **_BOTH,
    "blockdev_prefix": ("xvd", {}, "vdev=xvda"),
    "bootloader_args": ("-q", _LOADER, "bootloader_args = '-q'"),
    "bootloader_path": ("/usr/bin/other", _LOADER, "bootloader = '/usr/bin/other'"),
    "guest_type": ("pvh", {}, "type = 'pvh'"),
    "initrd_path": ("/boot/i", _KERNEL, "ramdisk = '/boot/i'"),
    "kernel_args": ("single", _KERNEL, "extra = 'single'"),
    "kernel_path": ("/boot/k", {}, "kernel = '/boot/k'"),
    "root_path": ("/dev/sda", _KERNEL, "root = '/dev/sda'"),
    "use_bootloader": (True, {"bootloader_path": "/b"}, "bootloader = '/b'"),
}
HVM_EFFECTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    **_BOTH,
    "acpi": (False, {}, "acpi = 0"),
    "blockdev_prefix": ("sd", {}, "vdev=sda"),
    "boot_order": ("n", {}, "boot = 'n'"),
    "cdrom_image_path": ("/cd.iso", {}, "target=/cd.iso"),
    "device_model": ("/opt/qemu", {}, "device_model_override = '/opt/qemu'"),
    "disk_type": ("ioemu", {}, "vdev=hda"),
    "kernel_path": ("/opt/fw", {}, "firmware_override = '/opt/fw'"),
    "nic_type": ("e1000", {}, "model=e1000"),
    "pae": (False, {}, "pae = 0"),
    "pci_pass": ("0000:01:00.0", {}, "pci = ['0000:01:00.0']"),
    "use_localtime": (True, {}, "localtime = 1"),
    "vif_type": ("vif", {}, "type=vif"),
    "viridian": (True, {}, "viridian = 1"),
    "vnc_bind_address": ("127.0.0.1", {}, "vnclisten = '127.0.0.1'"),
}
ROWS = [
    (kind, name, row)
    for kind, rows in ((PvmParams, PVM_EFFECTS), (HvmParams, HVM_EFFECTS))
    for name, row in rows.items()
]


@pytest.mark.parametrize(
    ("kind", "name", "row"), ROWS, ids=[f"{k.__name__}-{n}" for k, n, _ in ROWS]
)
def test_parameter_has_its_effect(kind: type[Any], name: str, row: tuple[Any, Any, str]) -> None:
    value, others, effect = row

    def text(**chosen: Any) -> str:
        if kind is PvmParams:
            return domain_config.pvm(instance(), [disk()], PvmParams(**chosen))
        return hvm(HvmParams(**chosen))

    assert effect not in text(**others | {name: getattr(kind(), name)})
    assert effect in text(**{**others, name: value})


def test_every_parameter_has_an_effect() -> None:
    for kind, rows in ((PvmParams, PVM_EFFECTS), (HvmParams, HVM_EFFECTS)):
        names = {field.name for field in msgspec.structs.fields(kind)}
        assert names == rows.keys() | (_ELSEWHERE.keys() & names)


def test_the_password_of_the_display_is_in_the_file(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("open sesame\n")
    made = instance(hypervisor="xen-hvm", hvparams={"vnc_password_file": str(password)})
    driver = HYPERVISORS.get("xen-hvm")(Paths(tmp_path))
    assert "vncpasswd = 'open sesame'" in driver._text(made, [disk()])

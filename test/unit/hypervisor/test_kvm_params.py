"""The parameters: their table, what each of them changes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import kvm_cases
import msgspec
import pytest
from kvm_cases import command

from ganeti import errors
from ganeti.hypervisor.kvm import params, rules

#: Recorded: type, builtin value, allowed values of every parameter.
TABLE: dict[str, dict[str, Any]] = json.loads(kvm_cases.TABLE.read_text())

_TYPES = {"bool": bool, "int": int, "string": str, "maybe-string": str}
_KERNEL = {"kernel_path": "/k"}
_VNC = {"vnc_bind_address": "127.0.0.1"}
_SPICE = {"spice_bind": "127.0.0.1"}
_X509 = {**_VNC, "vnc_tls": True, "vnc_x509_path": "/x"}

#: parameter -> (value, other parameters, what the command line then has and had not)
EFFECTS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "accelerator": ("kvm", {}, "elsewhere: test_kvm_accel"),
    "acpi": (False, {}, "acpi=off"),
    "boot_order": (
        "network",
        {},
        "netdev=net-000040008000000000000001,mac=aa:00:00:00:00:01,addr=0xc,bootindex=1",
    ),
    "cdrom2_image_path": ("/b.iso", {}, "id=cdrom2"),
    "cdrom_disk_type": ("scsi-cd", {"cdrom_image_path": "/a"}, "scsi-cd,"),
    "cdrom_image_path": ("/a.iso", {}, "file=/a.iso"),
    "cpu_cores": (2, {}, "2,cores=2"),
    "cpu_mask": ("0", {}, "elsewhere: test_kvm_pinning"),
    "cpu_sockets": (2, {}, "2,sockets=2"),
    "cpu_threads": (2, {}, "2,threads=2"),
    "cpu_type": ("qemu64", {}, "-cpu qemu64"),
    "disk_aio": ("io_uring", {}, '"aio":"io_uring"'),
    "disk_cache": ("none", {}, '"direct":true'),
    "disk_discard": ("unmap", {}, '"discard":"unmap"'),
    "disk_type": ("scsi", {}, "scsi-hd"),
    "firmware": ("uefi-secure", {"machine_version": "q35"}, "smm=on"),
    "floppy_image_path": ("/f", {}, "-device floppy,"),
    "initrd_path": ("/i", _KERNEL, "-initrd /i"),
    "kernel_args": ("single", _KERNEL, "root=/dev/vda1 single"),
    "kernel_path": ("/k", {}, "-kernel /k"),
    "keymap": ("de", _VNC, "-k de"),
    "kvm_extra": ("-snapshot", {}, "-snapshot"),
    "kvm_flag": ("disabled", {}, "elsewhere: test_kvm_accel"),
    "kvm_path": ("/opt/qemu", {}, "elsewhere: test_kvm_binary"),
    "kvm_pci_reservations": (6, {}, "addr=0x6"),
    "machine_version": ("q35", {}, "-machine pc-q35-7.2"),
    "max_vcpus": (4, {}, "-smp 2,maxcpus=4"),
    "mem_path": ("/huge", {}, "-mem-path /huge -mem-prealloc"),
    "migration_bandwidth": (33, {}, "elsewhere: test_kvm_migration"),
    "migration_caps": ("xbzrle", {}, "elsewhere: test_kvm_migration"),
    "migration_downtime": (31, {}, "elsewhere: test_kvm_migration"),
    "migration_mode": ("non-live", {}, "elsewhere: test_op_parameter_effects"),
    "migration_port": (8103, {}, "elsewhere: test_kvm_moves"),
    "nic_type": ("e1000", {}, "-device e1000,"),
    "reboot_behavior": ("exit", {}, "-no-reboot"),
    "root_path": ("/dev/sda", _KERNEL, "root=/dev/sda"),
    "scsi_controller_type": ("megasas", {"disk_type": "scsi"}, "-device megasas,"),
    "security_domain": ("kvm1", {"security_model": "user"}, "elsewhere: test_kvm_uids"),
    "security_model": ("user", {"security_domain": "kvm1"}, "elsewhere: test_kvm_uids"),
    "serial_console": (False, {}, "drops: -serial"),
    "serial_speed": (9600, _KERNEL, "console=ttyS0,9600"),
    "soundhw": ("hda", {}, "model=hda"),
    "spice_bind": ("127.0.0.1", {}, "-spice addr=127.0.0.1"),
    "spice_image_compression": ("lz", _SPICE, "image-compression=lz"),
    "spice_ip_version": (6, {"spice_bind": "::1"}, "elsewhere: test_kvm_options"),
    "spice_jpeg_wan_compression": ("auto", _SPICE, "jpeg-wan-compression=auto"),
    "spice_password_file": ("/s", _SPICE, "drops: disable-ticketing"),
    "spice_playback_compression": (False, _SPICE, "playback-compression=off"),
    "spice_streaming_video": ("all", _SPICE, "streaming-video=all"),
    "spice_tls_ciphers": ("LOW", {**_SPICE, "spice_use_tls": True}, "tls-ciphers=LOW"),
    "spice_use_tls": (True, _SPICE, "tls-port=11000"),
    "spice_use_vdagent": (False, _SPICE, "drops: com.redhat.spice.0"),
    "spice_zlib_glz_wan_compression": ("never", _SPICE, "zlib-glz-wan-compression=never"),
    "usb_devices": ("keyboard", {}, "-usb -usbdevice keyboard"),
    "usb_mouse": ("tablet", {}, "-usb -usbdevice tablet"),
    "use_chroot": (True, {}, "-chroot "),
    "use_guest_agent": (True, {}, "org.qemu.guest_agent.0"),
    "use_localtime": (True, {}, "base=localtime"),
    "user_shutdown": (True, {}, "elsewhere: test_kvm_guests"),
    "vga": ("cirrus", {}, "-vga cirrus"),
    "vhost_net": (False, {}, "elsewhere: test_kvm_network"),
    "virtio_net_queues": (2, {}, "elsewhere: test_kvm_network"),
    "vnc_bind_address": ("127.0.0.1", {}, "-vnc 127.0.0.1:5100"),
    "vnc_password_file": ("/p", _VNC, "password=on"),
    "vnc_tls": (True, _VNC, "tls-creds=vnctls"),
    "vnc_x509_path": ("/x", {**_VNC, "vnc_tls": True}, "dir=/x"),
    "vnc_x509_verify": (True, _X509, "verify-peer=on"),
    "vnet_hdr": (False, {}, "elsewhere: test_kvm_network"),
}


def _command(chosen: dict[str, Any]) -> str:
    return " ".join(command({"params": chosen, "guest": {"port": 11000, "nics": [{}]}}))


def test_names_and_builtin_values_are_the_recorded_ones() -> None:
    builtin = msgspec.structs.asdict(params.KvmParams())
    assert set(builtin) - set(TABLE) == {"accelerator", "firmware", "max_vcpus"}
    assert {n: builtin[n] for n in TABLE} == {n: row["default"] for n, row in TABLE.items()}
    shared = {name for name, row in TABLE.items() if row.get("cluster_global")}
    assert shared == params.GLOBAL_PARAMS


@pytest.mark.parametrize("name", sorted(TABLE))
def test_allowed_values_are_the_recorded_ones(name: str) -> None:
    row = TABLE[name]
    hint = get_type_hints(params.KvmParams)[name]
    if "values" in row:
        words = set(get_args(hint))
        assert words - {""} == set(row["values"])
        assert ("" in words) == (row["default"] == "")
        for value in row["values"]:
            assert getattr(params.load({name: value}), name) == value
    wrong: Any = "no such thing" if row["type"] in ("bool", "int") else 5
    with pytest.raises(errors.HypervisorError, match=name):
        params.load({name: wrong})
    assert get_origin(hint) is not None or hint in _TYPES.values()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("boot_order", "tape"),
        ("cpu_cores", -1),
        ("kvm_path", "kvm"),
        ("kvm_pci_reservations", 33),
        ("migration_bandwidth", -1),
        ("migration_port", 0),
        ("migration_port", 65535),
        ("serial_speed", -1),
        ("spice_ip_version", 5),
        ("virtio_net_queues", 0),
        ("virtio_net_queues", 33),
        ("acpi", 1),
        ("acpi", None),
    ],
)
def test_values_out_of_range_are_refused(name: str, wrong: Any) -> None:
    with pytest.raises(errors.HypervisorError, match=name):
        params.load({name: wrong})


def test_unknown_name_is_refused_with_a_guess() -> None:
    with pytest.raises(errors.HypervisorError, match=r"disk_cach'.*did you mean disk_cache"):
        params.load({"disk_cach": "none"})


def test_only_the_root_path_may_be_missing() -> None:
    assert params.load({"root_path": None, "kernel_path": ""}).root_path is None
    assert rules.problems(params.load({"root_path": None, "kernel_path": ""})) == []


def test_every_parameter_is_in_the_list_of_effects() -> None:
    assert set(EFFECTS) == set(msgspec.structs.asdict(params.KvmParams()))


@pytest.mark.parametrize(
    ("name", "test"),
    [
        (name, effect.removeprefix("elsewhere: "))
        for name, (_value, _others, effect) in EFFECTS.items()
        if effect.startswith("elsewhere: ")
    ],
)
def test_an_effect_elsewhere_is_in_that_test(name: str, test: str) -> None:
    tests = Path(__file__).parents[2]
    [file] = tests.rglob(f"{test}.py")
    assert name in file.read_text(), f"{file} says nothing of {name}"


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_parameter_has_its_effect(name: str) -> None:
    value, others, effect = EFFECTS[name]
    base = {"kernel_path": "", **others}
    chosen = {**base, name: value}
    assert rules.problems(params.load(chosen)) == []
    before, after = _command(base), _command(chosen)
    if effect.startswith(("elsewhere:", "kept ")):
        assert before == after
    elif effect.startswith("drops: "):
        word = effect.removeprefix("drops: ")
        assert word in before
        assert word not in after
    else:
        assert effect in after
        assert effect not in before


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"boot_order": "cdrom"}, "cdrom_image_path must name"),
        ({"boot_order": "floppy"}, "floppy_image_path must name"),
        ({"kernel_path": "/k", "root_path": ""}, "root_path must name"),
        ({"serial_speed": 0}, "serial_speed"),
        ({"kvm_extra": "-x 'open"}, "kvm_extra cannot be split"),
        ({"kvm_flag": "enabled", "accelerator": "tcg"}, "kvm_flag is enabled"),
        ({"disk_aio": "native"}, "disk_cache must be none"),
        ({"disk_type": "mtd"}, "disk_type mtd is not possible"),
        ({"disk_type": "pflash"}, "pflash is not possible"),
        ({"cdrom_disk_type": "sd"}, "cdrom_disk_type sd is not possible"),
        ({"kernel_path": "vmlinuz"}, "kernel_path must be an absolute path, not 'vmlinuz'"),
        ({"cdrom_image_path": "a.iso"}, "absolute path or a URL"),
        ({"mem_path": "huge"}, "mem_path must be an absolute path"),
        ({"vnc_bind_address": "not an interface"}, "vnc_bind_address must be"),
        ({"vnc_tls": True}, "vnc_bind_address must say"),
        ({**_VNC, "vnc_x509_path": "/x"}, "vnc_tls must be on"),
        ({**_VNC, "vnc_x509_verify": True}, "vnc_x509_path must name"),
        ({**_VNC, **_SPICE}, "exclude each other"),
        ({"spice_use_tls": True}, "spice_use_tls is set, so spice_bind"),
        ({"spice_image_compression": "lz"}, "spice_image_compression is set"),
        ({"spice_bind": "a b"}, "spice_bind must be"),
        ({"spice_bind": "::1", "spice_ip_version": 4}, "not an address of IP version 4"),
        ({"security_model": "user"}, "security_domain must name"),
        ({"security_domain": "kvm1"}, "only used with security_model user"),
        ({"firmware": "uefi-secure"}, "must be a machine of type q35"),
        ({"cpu_mask": "3-1"}, "cpu_mask '3-1'"),
        ({"migration_caps": "x b"}, "'x b', which cannot be"),
    ],
)
def test_what_cannot_go_together_is_refused(chosen: dict[str, Any], text: str) -> None:
    found = rules.problems(params.load({"kernel_path": "", **chosen}))
    assert len(found) == 1
    assert text in found[0]


def test_all_problems_are_told_at_once() -> None:
    wrong = {"kernel_path": "k", "disk_aio": "native", "cpu_mask": "x", "vnc_tls": True}
    assert len(rules.problems(params.load(wrong))) == 4

"""The command line of QEMU: as recorded, without secrets, and refused where it cannot be."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import kvm_cases
import pytest
from kvm_cases import by_option, command

from ganeti import errors
from ganeti.hypervisor.kvm import devices, display, params

CASES = kvm_cases.cases()


def drives(count: int) -> list[dict[str, str]]:
    """Different disks."""
    return [{"uuid": f"d{number:02}"} for number in range(count)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_command_is_as_recorded(case: dict[str, Any]) -> None:
    if "argv" in case:
        assert by_option(command(case)) == case["argv"]
        return
    recorded = {key: case.get(key, []) for key in ("drops", "adds")}
    assert kvm_cases.difference(case) == recorded


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_stays_keeps_its_order(case: dict[str, Any]) -> None:
    plain = by_option(command({}))
    kept = [row for row in by_option(command(case)) if row in plain]
    assert kept == [row for row in plain if row in kept]


def test_every_device_has_a_name_of_its_own() -> None:
    words = command({"guest": {"drives": [{}, {}, {}], "nics": [{}, {}]}})
    rows = [value for option, value in pairwise(words) if option == "-device"]
    names = [part for row in rows for part in row.split(",") if part.startswith("id=")]
    assert len(names) == len(set(names)) == 6
    places = [part for row in rows for part in row.split(",") if part.startswith("addr=")]
    assert len(places) == len(set(places)) == 5


def test_names_of_devices_fit_qemu() -> None:
    name = devices.device_id("disk", "ffffffff-ffff-ffff-ffff-ffffffffffff")
    assert len(name) <= 31
    assert name[0].isalpha()


@pytest.mark.parametrize(
    ("order", "booted"),
    [("disk", "virtio-blk-pci"), ("cdrom", "ide-cd"), ("network", "virtio-net-pci")],
)
def test_only_what_shall_be_booted_is_marked(order: str, booted: str) -> None:
    chosen = {"boot_order": order, "cdrom_image_path": "/a.iso"}
    case = {"params": chosen, "guest": {"drives": [{}, {}], "nics": [{}, {}]}}
    marked = [word for word in command(case) if "bootindex" in word]
    assert len(marked) == 1
    assert marked[0].startswith(f"{booted},")


def test_nothing_is_marked_when_a_kernel_is_given() -> None:
    case = {"params": {"kernel_path": "/k"}, "guest": {"nics": [{}]}}
    assert "bootindex" not in " ".join(command(case))


def test_no_password_file_is_mentioned() -> None:
    """QEMU gets neither the password nor where it is; it hears it on its control socket."""
    for kind in ("vnc", "spice"):
        bind = {"vnc": "vnc_bind_address", "spice": "spice_bind"}[kind]
        chosen = {bind: "127.0.0.1", f"{kind}_password_file": "/etc/secret"}
        text = " ".join(command({"params": chosen, "guest": {"port": 11000}}))
        assert "secret" not in text
        assert "disable-ticketing" not in text
        assert display.password_protocol(params.load(chosen)) == kind


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ({"guest": {"drives": drives(21)}}, "more disks, images and NICs"),
        ({"params": {"kvm_pci_reservations": 32}}, "lower kvm_pci_reservations"),
        ({"params": {"kvm_pci_reservations": 30, "machine_version": "q35"}}, "set it to 12"),
        ({"params": {"disk_type": "ide"}, "guest": {"drives": drives(5)}}, "the 4 ide channels"),
        ({"params": {"disk_type": "ide"}, "guest": {"drives": [{"mode": "ro"}]}}, "read only"),
        ({"params": {"vnc_bind_address": "127.0.0.1"}}, "no port"),
        (
            {"params": {"vnc_bind_address": "127.0.0.1"}, "guest": {"port": 80}},
            "port 80, expected at least 5900",
        ),
        ({"params": {"spice_bind": "127.0.0.1"}}, "no port"),
    ],
)
def test_what_cannot_be_is_refused(case: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.HypervisorError, match=text):
        command(case)


def test_all_slots_of_a_machine_can_be_used() -> None:
    assert len(command({"guest": {"drives": drives(20)}})) > 80
    q35 = {"machine_version": "q35"}
    assert len(command({"params": q35, "guest": {"drives": drives(20)}})) > 80
    with pytest.raises(errors.HypervisorError, match="20 root ports"):
        command({"params": q35, "guest": {"drives": drives(21)}})


def test_renamed_options_by_version() -> None:
    chosen = {"security_model": "user", "security_domain": "u", "use_chroot": True}

    def options(*version: int) -> list[str]:
        case = {"params": chosen, "node": {"version": version}, "guest": {"user": "u"}}
        words = command(case)
        return [w for w in words if w in ("-runas", "-chroot", "-run-with")]

    assert options(7, 2, 0) == options(8, 0, 9) == ["-runas", "-chroot"]
    assert options(8, 1, 0) == ["-runas", "-run-with"]
    assert options(10, 0, 2) == ["-run-with"]

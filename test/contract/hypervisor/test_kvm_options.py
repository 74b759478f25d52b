"""What parameters make of a real guest: QEMU takes them, and they do what they say."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import boot_sectors
import msgspec
import pytest

from ganeti import errors
from ganeti.hypervisor.kvm.devices import USER_NETWORK
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.qmp import Qmp
from ganeti.rpc.objects import NodeNic

pytestmark = pytest.mark.qemu

NIC = NodeNic(
    uuid="6e9ea7f8-1c2d-4c3a-9b39-111111111111",
    mac="aa:00:00:11:22:33",
    nicparams={"mode": "ext", "link": USER_NETWORK},
)


def free_port() -> int:
    """A TCP port for a display that nobody has now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def accepted(kvm: Any, **chosen: Any) -> bool:
    """Whether QEMU starts with these and nothing is left of it afterwards."""
    instance = kvm.instance(nics=(NIC,), port=free_port(), **chosen)
    kvm.start(instance, booted=False)
    runs = kvm.driver.info(instance.name) is not None
    kvm.driver.stop(instance.name, force=True)
    kvm.driver.cleanup(instance.name)
    return runs and kvm.list_leftovers() == []


@pytest.mark.parametrize(
    "chosen",
    [
        *({"nic_type": name} for name in ("e1000", "i82551", "ne2k_isa", "ne2k_pci", "rtl8139")),
        *({"nic_type": name} for name in ("i82557b", "i82559er", "pcnet", "paravirtual")),
        {"boot_order": "network"},
        {"kvm_pci_reservations": 0},
        {"kvm_pci_reservations": 5},
        {"machine_version": "q35", "disk_type": "ide"},
        {"disk_aio": "io_uring"},
        {"disk_aio": "native", "disk_cache": "none"},
        {"disk_cache": "writethrough"},
        {"disk_discard": "unmap"},
        {"vga": "cirrus", "usb_mouse": "tablet", "usb_devices": "keyboard,mouse"},
        {"soundhw": "hda"},
        {"acpi": False, "use_localtime": True, "reboot_behavior": "exit"},
        {"use_guest_agent": True, "serial_console": False},
        {"cpu_type": "qemu64,+ssse3", "cpu_sockets": 1, "cpu_cores": 1, "cpu_threads": 1},
        {"mem_path": "/dev/shm"},
        {"kvm_extra": "-device 'virtio-rng-pci'"},
        {"kvm_flag": "disabled"},
        {"vnc_bind_address": "127.0.0.1", "vnc_tls": True, "keymap": "de"},
        {"vnc_bind_address": "lo"},
    ],
    ids=str,
)
def test_qemu_takes_it(kvm: Any, chosen: dict[str, Any]) -> None:
    assert accepted(kvm, **chosen)


@pytest.mark.parametrize("controller", ["lsi", "dc390", "megasas", "virtio-scsi-pci"])
def test_guest_boots_from_every_controller(kvm: Any, controller: str) -> None:
    instance = kvm.instance(disk_type="scsi", scsi_controller_type=controller)
    kvm.start(instance)
    assert boot_sectors.HELLO in kvm.serial_log(instance)


@pytest.mark.parametrize("kind", ["", "ide", "scsi", "scsi-cd"])
def test_guest_boots_from_the_cd(kvm: Any, tmp_path: Path, kind: str) -> None:
    image = boot_sectors.cdrom(tmp_path / "a.iso", "this is the CD")
    chosen = {"cdrom_image_path": str(image), "cdrom_disk_type": kind}
    instance = kvm.instance(boot_order="cdrom", **chosen)
    kvm.start(instance, booted=False)
    kvm.wait_hello(instance, hello="this is the CD")
    other = kvm.instance("from-disk", boot_order="disk", **chosen)
    kvm.start(other)
    assert "CD" not in kvm.serial_log(other)


def test_guest_boots_from_the_floppy(kvm: Any, tmp_path: Path) -> None:
    image = boot_sectors.floppy(tmp_path / "floppy", "this is the floppy")
    instance = kvm.instance(boot_order="floppy", floppy_image_path=str(image))
    kvm.start(instance, booted=False)
    kvm.wait_hello(instance, hello="this is the floppy")
    assert boot_sectors.HELLO not in kvm.serial_log(instance)


def test_devices_that_a_file_cannot_be_are_refused(kvm: Any) -> None:
    with pytest.raises(errors.HypervisorError, match="SCSI device"):
        kvm.start(kvm.instance(disk_type="scsi-block"))
    assert kvm.list_leftovers() == []


def has_spice(kvm: Any) -> bool:
    """Whether this QEMU was built or installed with SPICE."""
    try:
        accepted(kvm, spice_bind="127.0.0.1")
    except errors.HypervisorError as err:
        if "spice" in str(err).lower():
            return False
        raise
    return True


def test_spice_with_a_password(kvm: Any, tmp_path: Path) -> None:
    if not has_spice(kvm):
        pytest.skip("this QEMU has no SPICE: install qemu-system-modules-spice")
    secret = tmp_path / "spice-password"
    secret.write_text("sesame\n")
    port = free_port()
    instance = kvm.instance(
        port=port,
        spice_bind="lo",
        spice_ip_version=4,
        spice_password_file=str(secret),
        spice_image_compression="glz",
        spice_jpeg_wan_compression="auto",
        spice_zlib_glz_wan_compression="never",
        spice_streaming_video="filter",
        spice_playback_compression=False,
    )
    kvm.start(instance)
    pid = kvm.driver.store.pid(instance.name)
    assert "sesame" not in Path(f"/proc/{pid}/cmdline").read_text()
    assert "sesame" not in kvm.driver.store.runtime_file(instance.name).read_text()
    with Qmp.connect(kvm.driver.store.socket(instance.name, "qmp")) as qmp:
        facts = qmp.command("query-spice")
    assert (facts["host"], facts["port"], facts["auth"]) == ("127.0.0.1", port, "spice")
    socket.create_connection(("127.0.0.1", port), 5).close()


def test_guest_with_a_missing_password_never_runs(kvm: Any, tmp_path: Path) -> None:
    if not has_spice(kvm):
        pytest.skip("this QEMU has no SPICE: install qemu-system-modules-spice")
    secret = tmp_path / "spice-password"
    secret.write_text("\n")
    instance = kvm.instance(
        port=free_port(), spice_bind="127.0.0.1", spice_password_file=str(secret)
    )
    with pytest.raises(errors.HypervisorError, match="is empty"):
        kvm.start(instance)
    assert kvm.list_leftovers() == []
    assert kvm.driver.list_names() == []


def test_vnc_listens_where_it_is_told(kvm: Any) -> None:
    port = free_port()
    instance = kvm.instance(port=port, vnc_bind_address="127.0.0.1")
    kvm.start(instance, booted=False)
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.settimeout(5)
        assert sock.recv(4) == b"RFB "
    found = kvm.driver.console(instance, "node1", {**instance.hvparams, "serial_console": False})
    assert (found.kind, found.host, found.port) == ("vnc", "127.0.0.1", port)


def test_guest_is_kept_to_processors(kvm: Any) -> None:
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("this machine has one processor")
    one, two = usable[:2]
    whole = kvm.instance("whole", cpu_mask=str(one))
    kvm.start(whole)
    pid = kvm.driver.store.pid("whole")
    for thread in os.listdir(f"/proc/{pid}/task"):
        assert os.sched_getaffinity(int(thread)) == {one}
    each = msgspec.structs.replace(
        kvm.instance("each", cpu_mask=f"{two}:{one}:all"),
        beparams={"maxmem": 16, "minmem": 16, "vcpus": 3},
    )
    kvm.start(each)
    with Qmp.connect(kvm.driver.store.socket("each", "qmp")) as qmp:
        threads = [cpu["thread-id"] for cpu in qmp.command("query-cpus-fast")]
    assert [os.sched_getaffinity(thread) for thread in threads] == [{two}, {one}, set(usable)]


def test_model_of_a_processor_that_needs_hardware(kvm: Any) -> None:
    with pytest.raises(errors.HypervisorError, match="requires KVM"):
        kvm.start(kvm.instance(cpu_type="host"))
    assert kvm.list_leftovers() == []


def test_builtin_parameters_lack_only_the_kernel(kvm: Any) -> None:
    """A node without the builtin kernel says so, and what to do."""
    if os.path.exists(KvmParams().kernel_path):
        pytest.skip("this machine has the builtin kernel")
    with pytest.raises(errors.HypervisorError, match="set kernel_path to nothing") as caught:
        kvm.driver.check_params({})
    assert ";" not in str(caught.value).replace("; set kernel_path", "")

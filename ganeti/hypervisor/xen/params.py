"""Parameters of xen-pvm and xen-hvm: types, defaults, descriptions.

Names and defaults are an interface. ``guest_type`` is an addition of this implementation.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ganeti.model.marks import Mark

_Reboot = Annotated[Literal["reboot", "exit"], Meta(description="What a reboot by the guest does")]
_Mode = Literal["live", "non-live"]
_Port = Annotated[int, Meta(ge=1, le=65534, description="TCP port for incoming migrations")]
_CpuMask = Annotated[
    str,
    Meta(
        description="Processors of the node that run the guest: all, a list as 0-3,6, or a list"
        " for each virtual processor, separated by colons"
    ),
]
_CpuCap = Annotated[
    int, Meta(ge=0, description="Most processor time in percent of one processor, 0: no limit")
]
_Weight = "Share of processor time beside other guests"
_CpuId = Annotated[str, Meta(description="Changes of the CPUID that the guest sees, as for xl")]
_Sound = Annotated[str, Meta(description="Model of a sound card")]
_VifScript = Annotated[str, Meta(description="Script that sets up NICs, empty: that of xl.conf")]

#: Parameters of the cluster that no instance can change.
GLOBAL_PARAMS = frozenset({"migration_mode", "migration_port"})


class PvmParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """xen-pvm: guests that know of Xen."""

    blockdev_prefix: Annotated[str, Meta(description="First letters of disk devices")] = "sd"
    bootloader_args: Annotated[
        str, Meta(description="Arguments of the boot loader"), Mark.SENSITIVE
    ] = ""
    bootloader_path: Annotated[
        str, Meta(description="Boot loader that finds the kernel, for use_bootloader")
    ] = ""
    cpu_cap: _CpuCap = 0
    cpu_mask: _CpuMask = "all"
    cpu_weight: Annotated[int, Meta(ge=1, le=65535, description=_Weight)] = 256
    cpuid: _CpuId = ""
    guest_type: Annotated[
        Literal["pv", "pvh"],
        Meta(
            description="Kind of guest: pv runs without help of the processor, pvh with it"
            " (Xen 4.10 or newer)"
        ),
    ] = "pv"
    initrd_path: Annotated[str, Meta(description="Initial ram disk for kernel_path")] = ""
    kernel_args: Annotated[str, Meta(description="Command line of the kernel"), Mark.SENSITIVE] = (
        "ro"
    )
    kernel_path: Annotated[str, Meta(pattern="^/", description="Kernel on the node to boot")] = (
        "/boot/vmlinuz-3-xenU"
    )
    migration_mode: Annotated[_Mode, Meta(description="How guests are moved by default")] = "live"
    migration_port: _Port = 8002
    reboot_behavior: Annotated[_Reboot, Mark.SAFE] = "reboot"
    root_path: Annotated[
        str | None, Meta(description="Root device on the command line of the kernel")
    ] = "/dev/xvda1"
    soundhw: _Sound = ""
    use_bootloader: Annotated[
        bool, Meta(description="Take the kernel from the guest's disk by bootloader_path")
    ] = False
    vif_script: _VifScript = ""


class HvmParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """xen-hvm: guests that need not know of Xen."""

    acpi: Annotated[
        bool, Meta(description="Whether the guest has ACPI; it obeys a shutdown by it"), Mark.SAFE
    ] = True
    blockdev_prefix: Annotated[str, Meta(description="First letters of disk devices")] = "hd"
    boot_order: Annotated[
        str,
        Meta(pattern=r"^[acdn]+\Z", description="Order: a floppy, c disk, d CD, n network"),
    ] = "cd"
    cdrom_image_path: Annotated[str, Meta(description="CD image"), Mark.SENSITIVE] = ""
    cpu_cap: _CpuCap = 0
    cpu_mask: _CpuMask = "all"
    cpu_weight: Annotated[int, Meta(ge=1, le=65534, description=_Weight)] = 256
    cpuid: _CpuId = ""
    device_model: Annotated[
        str, Meta(pattern="^/", description="QEMU for the guest; the default means Xen's own")
    ] = "/usr/lib/xen/bin/qemu-dm"
    disk_type: Annotated[
        Literal["ioemu", "paravirtual"], Meta(description="How disks are attached"), Mark.SAFE
    ] = "paravirtual"
    kernel_path: Annotated[
        str, Meta(pattern="^/", description="Firmware; the default means Xen's own")
    ] = "/usr/lib/xen/boot/hvmloader"
    migration_mode: Annotated[_Mode, Meta(description="How guests are moved by default")] = (
        "non-live"
    )
    migration_port: _Port = 8002
    nic_type: Annotated[
        Literal["e1000", "ne2k_isa", "ne2k_pci", "paravirtual", "rtl8139"],
        Meta(description="Model of the NICs"),
        Mark.SAFE,
    ] = "rtl8139"
    pae: Annotated[bool, Meta(description="Let 32-bit guests use more than 4 GiB"), Mark.SAFE] = (
        True
    )
    pci_pass: Annotated[
        str, Meta(description="PCI devices given to the guest, separated by semicolons")
    ] = ""
    reboot_behavior: Annotated[_Reboot, Mark.SAFE] = "reboot"
    soundhw: _Sound = ""
    use_localtime: Annotated[
        bool, Meta(description="Guest clock in local time, not UTC"), Mark.SAFE
    ] = False
    vif_script: _VifScript = ""
    vif_type: Annotated[
        Literal["ioemu", "vif"],
        Meta(description="Whether NICs are emulated (ioemu) as well"),
        Mark.SAFE,
    ] = "ioemu"
    viridian: Annotated[bool, Meta(description="Show the guest Hyper-V's interface"), Mark.SAFE] = (
        False
    )
    vnc_bind_address: Annotated[str, Meta(description="IPv4 address for VNC")] = "0.0.0.0"
    vnc_password_file: Annotated[
        str, Meta(pattern="^/", description="File with the VNC password")
    ] = "/etc/ganeti/vnc-cluster-password"


XenParams = PvmParams | HvmParams

"""Parameters of the kvm hypervisor: types, defaults, descriptions.

Names and defaults are an interface. ``accelerator`` and ``firmware`` are additions of this
implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ganeti.hypervisor import typed_params
from ganeti.model.marks import Mark

DEFAULT_KVM_PATH = "/usr/bin/kvm"

DiskType = Literal[
    "ide",
    "mtd",
    "paravirtual",
    "pflash",
    "scsi",
    "scsi-block",
    "scsi-cd",
    "scsi-generic",
    "scsi-hd",
    "sd",
]
OptionalDiskType = Literal[
    "",
    "ide",
    "mtd",
    "paravirtual",
    "pflash",
    "scsi",
    "scsi-block",
    "scsi-cd",
    "scsi-generic",
    "scsi-hd",
    "sd",
]
NicType = Literal[
    "e1000",
    "i82551",
    "i82557b",
    "i82559er",
    "ne2k_isa",
    "ne2k_pci",
    "paravirtual",
    "pcnet",
    "rtl8139",
]
_Wan = Literal["", "always", "auto", "never"]
_Count = Annotated[int, Meta(ge=0)]


class KvmParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All parameters with their builtin values; paths are those of the node.

    An empty text means "not set" unless a description says otherwise. Those whose names begin with
    ``migration`` are for moving guests; they change nothing about a start.
    """

    accelerator: Annotated[
        Literal["auto", "kvm", "tcg"],
        Meta(description="Run the guest by the processor (kvm) or in software (tcg); auto tries"),
    ] = "auto"
    acpi: Annotated[
        bool, Meta(description="Whether the guest has ACPI; it obeys a shutdown by it"), Mark.SAFE
    ] = True
    boot_order: Annotated[
        Literal["cdrom", "disk", "floppy", "network"],
        Meta(description="What to boot from first"),
        Mark.SAFE,
    ] = "disk"
    cdrom2_image_path: Annotated[
        str, Meta(description="Second CD image, path or URL"), Mark.SENSITIVE
    ] = ""
    cdrom_disk_type: Annotated[
        OptionalDiskType, Meta(description="How CD images are attached, empty: ide")
    ] = ""
    cdrom_image_path: Annotated[str, Meta(description="CD image, path or URL"), Mark.SENSITIVE] = ""
    cpu_cores: Annotated[
        _Count, Meta(description="Cores of a socket, 0: QEMU decides"), Mark.SAFE
    ] = 0
    cpu_mask: Annotated[
        str,
        Meta(
            description="Processors of the node that run the guest: all, a list as 0-3,6, or a"
            " list for each virtual processor, separated by colons"
        ),
    ] = "all"
    cpu_sockets: Annotated[_Count, Meta(description="Sockets, 0: QEMU decides"), Mark.SAFE] = 0
    cpu_threads: Annotated[
        _Count, Meta(description="Threads of a core, 0: QEMU decides"), Mark.SAFE
    ] = 0
    cpu_type: Annotated[str, Meta(description="Model and flags for QEMU's option -cpu")] = ""
    disk_aio: Annotated[
        Literal["io_uring", "native", "threads"], Meta(description="How QEMU does disk requests")
    ] = "threads"
    disk_cache: Annotated[
        Literal["default", "none", "writeback", "writethrough"],
        Meta(description="Cache of the node for disks; shared disks always have none"),
    ] = "default"
    disk_discard: Annotated[
        Literal["ignore", "unmap"],
        Meta(description="Whether blocks freed by the guest are freed"),
        Mark.SAFE,
    ] = "ignore"
    disk_type: Annotated[DiskType, Meta(description="How disks are attached")] = "paravirtual"
    firmware: Annotated[
        Literal["bios", "uefi", "uefi-secure"],
        Meta(
            description="What the guest boots by; uefi-secure is UEFI with secure boot, for"
            " machines of type q35"
        ),
        Mark.SAFE,
    ] = "bios"
    floppy_image_path: Annotated[str, Meta(description="Floppy image")] = ""
    initrd_path: Annotated[str, Meta(description="Initial ram disk for kernel_path")] = ""
    kernel_args: Annotated[
        str, Meta(description="Command line for kernel_path"), Mark.SENSITIVE
    ] = "ro"
    kernel_path: Annotated[
        str, Meta(description="Kernel on the node to boot, empty: boot by boot_order")
    ] = "/boot/vmlinuz-3-kvmU"
    keymap: Annotated[str, Meta(description="Keyboard layout of the VNC display")] = ""
    kvm_extra: Annotated[
        str,
        Meta(description="More QEMU arguments, quoted as in a shell, taken as they are"),
        Mark.SENSITIVE,
    ] = ""
    kvm_flag: Annotated[
        Literal["", "disabled", "enabled"], Meta(description="Older spelling of accelerator")
    ] = ""
    kvm_path: Annotated[
        str,
        Meta(
            pattern="^/",
            description="QEMU; with the default, qemu-system-x86_64 is taken when it is missing",
        ),
    ] = DEFAULT_KVM_PATH
    kvm_pci_reservations: Annotated[
        int,
        Meta(ge=0, le=32, description="First PCI slots, left to QEMU; 0: it places all devices"),
    ] = 12
    machine_version: Annotated[
        str, Meta(description="Machine type, empty: QEMU's default in its current version")
    ] = ""
    max_vcpus: Annotated[
        _Count,
        Meta(
            description="Processors that the running guest can be given, 0: no more than it was"
            " started with"
        ),
    ] = 0
    mem_path: Annotated[str, Meta(description="Directory on hugetlbfs for guest memory")] = ""
    migration_bandwidth: Annotated[_Count, Meta(description="MiB a second for migration")] = 32
    migration_caps: Annotated[
        str, Meta(description="Migration capabilities to set, separated by colons")
    ] = ""
    migration_downtime: Annotated[
        _Count, Meta(description="Milliseconds a guest may be paused in a live migration")
    ] = 30
    migration_mode: Annotated[
        Literal["live", "non-live"], Meta(description="How guests are moved by default")
    ] = "live"
    migration_port: Annotated[
        int, Meta(ge=1, le=65534, description="TCP port for incoming migrations")
    ] = 8102
    nic_type: Annotated[NicType, Meta(description="Model of the NICs"), Mark.SAFE] = "paravirtual"
    reboot_behavior: Annotated[
        Literal["reboot", "exit"], Meta(description="What a reboot by the guest does"), Mark.SAFE
    ] = "reboot"
    root_path: Annotated[
        str | None, Meta(description="Root device on the command line of kernel_path")
    ] = "/dev/vda1"
    scsi_controller_type: Annotated[
        Literal["dc390", "lsi", "megasas", "virtio-scsi-pci"],
        Meta(description="Controller for disks of a scsi type"),
    ] = "lsi"
    security_domain: Annotated[
        str, Meta(description="User that runs QEMU with security_model user")
    ] = ""
    security_model: Annotated[
        Literal["none", "pool", "user"], Meta(description="Who runs QEMU: none means root")
    ] = "none"
    serial_console: Annotated[
        bool, Meta(description="Whether the guest has a serial console"), Mark.SAFE
    ] = True
    serial_speed: Annotated[int, Meta(ge=0, description="Speed on the kernel command line")] = 38400
    soundhw: Annotated[str, Meta(description="Model of a sound card, as hda or ac97")] = ""
    spice_bind: Annotated[str, Meta(description="Address or interface for SPICE")] = ""
    spice_image_compression: Annotated[
        Literal["", "auto_glz", "auto_lz", "glz", "lz", "off", "quic"],
        Meta(description="Lossless image compression of SPICE"),
    ] = ""
    spice_ip_version: Annotated[
        Literal[0, 4, 6], Meta(description="IP version of SPICE, 0: any")
    ] = 0
    spice_jpeg_wan_compression: Annotated[
        _Wan, Meta(description="Lossy image compression of SPICE on slow links")
    ] = ""
    spice_password_file: Annotated[str, Meta(description="File with the SPICE password")] = ""
    spice_playback_compression: Annotated[bool, Meta(description="Compress audio of SPICE")] = True
    spice_streaming_video: Annotated[
        Literal["", "all", "filter", "off"], Meta(description="Video detection of SPICE")
    ] = ""
    spice_tls_ciphers: Annotated[str, Meta(description="Ciphers of SPICE over TLS")] = (
        "HIGH:-DES:-3DES:-EXPORT:-DH"
    )
    spice_use_tls: Annotated[bool, Meta(description="Use TLS for SPICE")] = False
    spice_use_vdagent: Annotated[
        bool, Meta(description="Whether the guest has SPICE's agent port")
    ] = True
    spice_zlib_glz_wan_compression: Annotated[
        _Wan, Meta(description="Lossless compression of SPICE on slow links")
    ] = ""
    usb_devices: Annotated[
        str, Meta(description="USB devices of QEMU, as tablet or keyboard, separated by commas")
    ] = ""
    usb_mouse: Annotated[
        Literal["", "mouse", "tablet"], Meta(description="Pointer of the display"), Mark.SAFE
    ] = ""
    use_chroot: Annotated[
        bool, Meta(description="Lock QEMU into an empty directory once it has started")
    ] = False
    use_guest_agent: Annotated[
        bool, Meta(description="Whether the guest has an agent port"), Mark.SAFE
    ] = False
    use_localtime: Annotated[
        bool, Meta(description="Guest clock in local time, not UTC"), Mark.SAFE
    ] = False
    user_shutdown: Annotated[
        bool,
        Meta(description="Whether a guest may shut itself down; otherwise that is an error"),
        Mark.SAFE,
    ] = False
    vga: Annotated[str, Meta(description="Graphics card, empty: std with a display")] = ""
    vhost_net: Annotated[
        bool, Meta(description="Let the kernel move packets of paravirtual NICs, if it can")
    ] = True
    virtio_net_queues: Annotated[
        int, Meta(ge=1, le=32, description="Queues of a paravirtual NIC"), Mark.SAFE
    ] = 1
    vnc_bind_address: Annotated[
        str, Meta(description="Address or interface for VNC, or a directory for Unix sockets")
    ] = ""
    vnc_password_file: Annotated[str, Meta(description="File with the VNC password")] = ""
    vnc_tls: Annotated[bool, Meta(description="Use TLS for VNC")] = False
    vnc_x509_path: Annotated[
        str, Meta(description="Directory with ca-cert.pem, server-cert.pem and server-key.pem")
    ] = ""
    vnc_x509_verify: Annotated[bool, Meta(description="VNC clients need a certificate")] = False
    vnet_hdr: Annotated[bool, Meta(description="Offload checksums of paravirtual NICs")] = True


#: Parameters of the cluster that no instance can change.
GLOBAL_PARAMS = frozenset({"migration_bandwidth", "migration_mode", "migration_port"})

#: Those of a helper guest: it boots its first disk by BIOS, and has no other media, and no device
#: that ``kvm_extra`` adds. The display stays as it is.
HELPER_PARAMS: dict[str, object] = {
    "acpi": True,
    "boot_order": "disk",
    "cdrom2_image_path": "",
    "cdrom_image_path": "",
    "disk_type": "paravirtual",
    "firmware": "bios",
    "floppy_image_path": "",
    "initrd_path": "",
    "kernel_path": "",
    "kvm_extra": "",
    "nic_type": "paravirtual",
    "reboot_behavior": "exit",
    "serial_console": True,
    "user_shutdown": False,
}

#: Those of a guest that is started from a copy of its disks: it has no media and no display, and no
#: device that ``kvm_extra`` adds.
COPY_PARAMS: dict[str, object] = {
    "boot_order": "disk",
    "cdrom2_image_path": "",
    "cdrom_image_path": "",
    "cpu_mask": "all",
    "floppy_image_path": "",
    "kvm_extra": "",
    "max_vcpus": 0,
    "mem_path": "",
    "reboot_behavior": "reboot",
    "serial_console": True,
    "spice_bind": "",
    "spice_use_tls": False,
    "usb_devices": "",
    "user_shutdown": False,
    "vnc_bind_address": "",
}

#: (name, may be a URL) of images and files that must exist on the node when they are set.
NODE_FILES = (
    ("kernel_path", False),
    ("initrd_path", False),
    ("cdrom_image_path", True),
    ("cdrom2_image_path", True),
    ("floppy_image_path", False),
    ("vnc_password_file", False),
    ("spice_password_file", False),
)
NODE_DIRECTORIES = ("mem_path", "vnc_x509_path")


def load(values: Mapping[str, object]) -> KvmParams:
    """Typed parameters; missing ones get the builtin value.

    Raises:
        HypervisorError: unknown name, or a value of the wrong type.
    """
    return typed_params.load(KvmParams, values, "kvm")

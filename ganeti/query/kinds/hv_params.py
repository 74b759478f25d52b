"""Parameters of all hypervisors, for the fields ``hv/<name>`` of instances.

Plain data, so that listing fields loads no hypervisor driver. Text parameters have the kind OTHER
because some of them may be null.
"""

from __future__ import annotations

from collections.abc import Mapping

from ganeti.filters.answer import FieldKind

BOOL, NUMBER, OTHER = FieldKind.BOOL, FieldKind.NUMBER, FieldKind.OTHER

#: Parameters that are set for the whole cluster, which instances therefore do not show.
GLOBALS = frozenset({"migration_bandwidth", "migration_mode", "migration_port"})

#: parameter -> kind, title, description
TABLE: Mapping[str, tuple[FieldKind, str, str]] = {
    "acpi": (BOOL, "ACPI", "Whether the guest sees ACPI"),
    "blockdev_prefix": (
        OTHER,
        "hv/blockdev_prefix",
        "First letters of the disk names in the guest",
    ),
    "boot_order": (OTHER, "Boot_order", "Devices the guest boots from, in order"),
    "bootloader_args": (OTHER, "hv/bootloader_args", "Arguments of the boot loader"),
    "bootloader_path": (
        OTHER,
        "hv/bootloader_path",
        "Boot loader that reads the kernel from the disk of the guest",
    ),
    "cdrom2_image_path": (OTHER, "hv/cdrom2_image_path", "Image in the second CD drive"),
    "cdrom_disk_type": (OTHER, "hv/cdrom_disk_type", "Bus of the CD drives"),
    "cdrom_image_path": (OTHER, "CDROM_image_path", "Image in the first CD drive"),
    "cpu_cap": (NUMBER, "hv/cpu_cap", "Upper limit of processor time in percent, 0 for none"),
    "cpu_cores": (NUMBER, "hv/cpu_cores", "Number of cores in a socket"),
    "cpu_mask": (OTHER, "hv/cpu_mask", "Processors of the node that the guest may use"),
    "cpu_sockets": (NUMBER, "hv/cpu_sockets", "Number of processor sockets"),
    "cpu_threads": (NUMBER, "hv/cpu_threads", "Number of threads in a core"),
    "cpu_type": (OTHER, "cpu_type", "Processor model that the guest sees"),
    "cpu_weight": (NUMBER, "hv/cpu_weight", "Share of processor time compared with other guests"),
    "cpuid": (OTHER, "hv/cpuid", "Changes to the processor features that the guest sees"),
    "device_model": (OTHER, "hv/device_model", "Program that emulates the devices"),
    "devices": (OTHER, "hv/devices", "Devices that the container may use"),
    "disk_aio": (OTHER, "hv/disk_aio", "How disks are read and written asynchronously"),
    "disk_cache": (OTHER, "hv/disk_cache", "How writes to disks are cached"),
    "disk_discard": (
        OTHER,
        "hv/disk_discard",
        "Whether discarded blocks are given back to the storage",
    ),
    "disk_type": (OTHER, "Disk_type", "Bus of the disks"),
    "drop_capabilities": (
        OTHER,
        "hv/drop_capabilities",
        "Capabilities that the container does not get",
    ),
    "extra_cgroups": (OTHER, "hv/extra_cgroups", "Additional control groups of the container"),
    "extra_config": (OTHER, "hv/extra_config", "Additional lines of the container configuration"),
    "floppy_image_path": (OTHER, "hv/floppy_image_path", "Image in the floppy drive"),
    "init_script": (OTHER, "hv/init_script", "Program that is started in the container"),
    "initrd_path": (OTHER, "Initrd_path", "Initial RAM disk for the kernel on the node"),
    "kernel_args": (OTHER, "hv/kernel_args", "Arguments of the kernel"),
    "kernel_path": (
        OTHER,
        "Kernel_path",
        "Kernel on the node that the guest boots, empty to boot from disk",
    ),
    "keymap": (OTHER, "hv/keymap", "Keyboard layout of the VNC console"),
    "kvm_extra": (OTHER, "hv/kvm_extra", "Additional arguments for QEMU"),
    "kvm_flag": (OTHER, "hv/kvm_flag", "Whether hardware virtualization is enforced or forbidden"),
    "kvm_path": (OTHER, "hv/kvm_path", "QEMU program"),
    "kvm_pci_reservations": (
        NUMBER,
        "hv/kvm_pci_reservations",
        "Number of PCI slots that QEMU may use for itself",
    ),
    "machine_version": (OTHER, "hv/machine_version", "Machine type that QEMU emulates"),
    "mem_path": (OTHER, "hv/mem_path", "Mount point of huge pages"),
    "migration_caps": (OTHER, "hv/migration_caps", "Migration abilities that are switched on"),
    "migration_downtime": (
        NUMBER,
        "hv/migration_downtime",
        "Longest pause at the end of a live migration in milliseconds",
    ),
    "nic_type": (OTHER, "NIC_type", "Model of the network cards"),
    "num_ttys": (NUMBER, "hv/num_ttys", "Number of terminals of the container"),
    "pae": (BOOL, "PAE", "Whether the guest sees PAE"),
    "pci_pass": (OTHER, "pci_pass", "PCI devices of the node given to the guest"),
    "reboot_behavior": (
        OTHER,
        "hv/reboot_behavior",
        "What happens when the guest reboots by itself",
    ),
    "root_path": (OTHER, "hv/root_path", "Device that the kernel mounts as root"),
    "scsi_controller_type": (OTHER, "hv/scsi_controller_type", "Model of the SCSI controller"),
    "security_domain": (
        OTHER,
        "hv/security_domain",
        "User that QEMU runs as in the user security model",
    ),
    "security_model": (OTHER, "hv/security_model", "How the user that QEMU runs as is chosen"),
    "serial_console": (BOOL, "hv/serial_console", "Whether the guest has a serial console"),
    "serial_speed": (NUMBER, "hv/serial_speed", "Speed of the serial console in baud"),
    "soundhw": (OTHER, "hv/soundhw", "Model of the sound card"),
    "spice_bind": (OTHER, "hv/spice_bind", "Address or interface that SPICE listens on"),
    "spice_image_compression": (
        OTHER,
        "hv/spice_image_compression",
        "How SPICE compresses images without loss",
    ),
    "spice_ip_version": (NUMBER, "hv/spice_ip_version", "Version of IP that SPICE uses, 0 for any"),
    "spice_jpeg_wan_compression": (
        OTHER,
        "hv/spice_jpeg_wan_compression",
        "When SPICE uses JPEG over slow links",
    ),
    "spice_password_file": (OTHER, "hv/spice_password_file", "File with the password for SPICE"),
    "spice_playback_compression": (
        BOOL,
        "hv/spice_playback_compression",
        "Whether SPICE compresses audio",
    ),
    "spice_streaming_video": (
        OTHER,
        "hv/spice_streaming_video",
        "Which parts of the screen SPICE takes for video",
    ),
    "spice_tls_ciphers": (OTHER, "hv/spice_tls_ciphers", "Ciphers that SPICE may use"),
    "spice_use_tls": (BOOL, "hv/spice_use_tls", "Whether SPICE uses TLS"),
    "spice_use_vdagent": (
        BOOL,
        "hv/spice_use_vdagent",
        "Whether SPICE talks to an agent in the guest",
    ),
    "spice_zlib_glz_wan_compression": (
        OTHER,
        "hv/spice_zlib_glz_wan_compression",
        "When SPICE uses zlib over slow links",
    ),
    "startup_timeout": (NUMBER, "hv/startup_timeout", "Seconds the container gets to start"),
    "usb_devices": (OTHER, "hv/usb_devices", "Additional USB devices"),
    "usb_mouse": (OTHER, "hv/usb_mouse", "Kind of the USB mouse"),
    "use_bootloader": (BOOL, "hv/use_bootloader", "Whether the boot loader is used"),
    "use_chroot": (BOOL, "hv/use_chroot", "Whether QEMU runs in an empty directory"),
    "use_guest_agent": (
        BOOL,
        "hv/use_guest_agent",
        "Whether there is a channel for an agent in the guest",
    ),
    "use_localtime": (BOOL, "hv/use_localtime", "Whether the clock of the guest shows local time"),
    "user_shutdown": (BOOL, "hv/user_shutdown", "Whether the guest may be stopped from inside"),
    "vga": (OTHER, "hv/vga", "Model of the graphics card"),
    "vhost_net": (
        BOOL,
        "hv/vhost_net",
        "Whether the kernel of the node moves the packets of the network cards",
    ),
    "vif_script": (OTHER, "hv/vif_script", "Program that configures the network interfaces"),
    "vif_type": (OTHER, "hv/vif_type", "Kind of the network interfaces"),
    "viridian": (BOOL, "hv/viridian", "Whether the guest sees the interfaces of Hyper-V"),
    "virtio_net_queues": (NUMBER, "hv/virtio_net_queues", "Number of queues of a network card"),
    "vnc_bind_address": (OTHER, "VNC_bind_address", "Address that VNC listens on"),
    "vnc_password_file": (OTHER, "hv/vnc_password_file", "File with the password for VNC"),
    "vnc_tls": (BOOL, "hv/vnc_tls", "Whether VNC uses TLS"),
    "vnc_x509_path": (OTHER, "hv/vnc_x509_path", "Directory with the certificates for VNC"),
    "vnc_x509_verify": (BOOL, "hv/vnc_x509_verify", "Whether VNC clients need a certificate"),
    "vnet_hdr": (
        BOOL,
        "hv/vnet_hdr",
        "Whether packets carry their offload header between host and guest",
    ),
}

"""QEMU arguments for disks, images and network cards; pure.

Identifiers are made of uuids, not of positions, and PCI slots are explicit, so that a device can be
found, removed and added while the guest runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import jsonio
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.model.names import DiskMode, DiskTemplate

#: Templates whose data other nodes may read at the same time: the node must not cache it.
_SHARED = frozenset(
    {
        DiskTemplate.SHAREDFILE,
        DiskTemplate.BLOCKDEV,
        DiskTemplate.RBD,
        DiskTemplate.EXT,
        DiskTemplate.GLUSTER,
    }
)
_NIC_MODELS = {"paravirtual": "virtio-net-pci"}
_DISK_MODELS = {"paravirtual": "virtio-blk-pci", "ide": "ide-hd", "scsi": "scsi-hd"}
_CDROM_MODELS = {"": "ide-cd", "ide": "ide-cd", "scsi": "scsi-cd", "paravirtual": "virtio-blk-pci"}
#: Cards that are not on the PCI bus.
_ISA_NICS = frozenset({"ne2k_isa"})
_ID_CHARACTERS = re.compile(r"[^A-Za-z0-9]")

#: Value of ``link`` with mode ``ext`` for a card on QEMU's own network (address translation): it
#: needs no bridge, no tap and no privilege. An addition of this implementation.
USER_NETWORK = "qemu-user"


class Drive(msgspec.Struct, frozen=True, kw_only=True):
    """A disk for QEMU."""

    uuid: str
    template: DiskTemplate
    mode: DiskMode = DiskMode.RW
    #: file or device, empty with ``uri``
    path: str = ""
    #: whether ``path`` is a block device
    block: bool = False
    #: address that QEMU opens by itself
    uri: str | None = None


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """A network card for QEMU; ``fds`` are open taps, a queue each, none: QEMU's own network."""

    uuid: str
    mac: str
    fds: tuple[int, ...] = ()
    vhost_fds: tuple[int, ...] = ()


class Buses:
    """Gives away places on the buses of a PC machine; PCI slots behind those left to QEMU."""

    def __init__(self, first_slot: int, *, q35: bool) -> None:
        self._first = first_slot
        self._next = first_slot
        self._q35 = q35
        # The last slot of a q35 machine is its own bridge.
        self._last = 30 if q35 else 31
        self._ide = 0

    def pci(self) -> tuple[str, ...]:
        """``addr=0xd``, for the option -device; nothing when no slot is reserved: QEMU chooses.

        Raises:
            HypervisorError: no slot is left.
        """
        if not self._first:
            return ()
        if self._next > self._last:
            raise errors.HypervisorError(
                f"the instance has more disks and network cards than the {self._last + 1} PCI"
                f" slots allow, of which {self._first} are reserved; lower kvm_pci_reservations"
            )
        self._next += 1
        return (f"addr={self._next - 1:#x}",)

    def ide(self) -> str:
        """``bus=ide.1,unit=0``: q35 has six channels of one disk, older machines two of two.

        Raises:
            HypervisorError: no place is left.
        """
        limit = 6 if self._q35 else 4
        if self._ide >= limit:
            raise errors.HypervisorError(
                f"the instance has more than {limit} ide disks and CD images;"
                " use disk_type paravirtual"
            )
        place = self._ide
        self._ide += 1
        return f"bus=ide.{place}" if self._q35 else f"bus=ide.{place // 2},unit={place % 2}"


def escape(text: str) -> str:
    """A value for QEMU's ``key=value,...`` options, where commas are doubled."""
    return text.replace(",", ",,")


def device_id(kind: str, uuid: str) -> str:
    """Identifier of a device: QEMU takes 31 characters for block nodes, a letter first."""
    return f"{kind}-{_ID_CHARACTERS.sub('', uuid)[-24:]}"


def blockdev(drive: Drive, params: KvmParams) -> dict[str, Any]:
    """Arguments of ``blockdev-add`` for a local disk, the same at start and when hot-plugged."""
    return {
        "driver": "raw",
        "node-name": device_id("disk", drive.uuid),
        "read-only": drive.mode == DiskMode.RO,
        "discard": params.disk_discard,
        "cache": {"direct": _direct(drive, params), "no-flush": False},
        "file": {
            "driver": "host_device" if drive.block else "file",
            "filename": drive.path,
            "aio": params.disk_aio,
        },
    }


def disk_arguments(
    drives: Sequence[Drive], params: KvmParams, buses: Buses, *, boot: bool
) -> Iterator[str]:
    """All disks; with ``boot`` the first is what the firmware starts."""
    if drives and _on_scsi(params.disk_type):
        yield from ("-device", _scsi_controller(params, buses))
    for index, drive in enumerate(drives):
        name = device_id("disk", drive.uuid)
        if drive.uri is None:
            yield from ("-blockdev", jsonio.dumps(blockdev(drive, params)))
        else:
            yield from ("-drive", _uri_drive(drive, drive.uri, params))
        model = _DISK_MODELS.get(params.disk_type, params.disk_type)
        parts = [model, f"id=hd-{name.removeprefix('disk-')}", f"drive={name}"]
        if model == "virtio-blk-pci":
            parts.extend(buses.pci())
        if model == "ide-hd":
            parts.append(buses.ide())
            if drive.mode == DiskMode.RO:
                raise errors.HypervisorError(
                    f"disk {index} is read only, which an ide disk cannot be;"
                    " use disk_type paravirtual"
                )
        if model in ("virtio-blk-pci", "ide-hd", "scsi-hd"):
            parts.append(f"serial={drive.uuid[:20]}")
            if params.disk_cache == "writethrough":
                parts.append("write-cache=off")
        if _on_scsi(params.disk_type):
            parts.append("bus=scsi.0")
        if boot and index == 0:
            parts.append("bootindex=1")
        yield from ("-device", ",".join(parts))


def _direct(drive: Drive, params: KvmParams) -> bool:
    """Whether the node's cache is passed by; always for disks that several nodes reach."""
    return params.disk_cache == "none" or drive.template in _SHARED


def _uri_drive(drive: Drive, uri: str, params: KvmParams) -> str:
    """The older option, as QEMU parses an address of any kind only there."""
    parts = [
        f"file={escape(uri)}",
        "format=raw",
        "if=none",
        f"id={device_id('disk', drive.uuid)}",
        f"cache={'none' if _direct(drive, params) else 'writeback'}",
        f"discard={params.disk_discard}",
    ]
    if drive.mode == DiskMode.RO:
        parts.append("readonly=on")
    return ",".join(parts)


def _scsi_controller(params: KvmParams, buses: Buses) -> str:
    return ",".join((params.scsi_controller_type, "id=scsi", *buses.pci()))


def _on_scsi(disk_type: str) -> bool:
    return disk_type.startswith("scsi")


def image_arguments(params: KvmParams, buses: Buses, *, has_disks: bool) -> Iterator[str]:
    """CD and floppy images; they are read only."""
    images = [params.cdrom_image_path, params.cdrom2_image_path]
    model = _CDROM_MODELS.get(params.cdrom_disk_type, params.cdrom_disk_type)
    scsi = _on_scsi(params.cdrom_disk_type)
    if scsi and any(images) and not (has_disks and _on_scsi(params.disk_type)):
        yield from ("-device", _scsi_controller(params, buses))
    for index, image in enumerate(images, start=1):
        if not image:
            continue
        yield from (
            "-drive",
            f"file={escape(image)},format=raw,if=none,id=cdrom{index},media=cdrom,readonly=on",
        )
        parts = [model, f"id=cd{index}", f"drive=cdrom{index}"]
        if model == "virtio-blk-pci":
            parts.extend(buses.pci())
        if model == "ide-cd":
            parts.append(buses.ide())
        if scsi:
            parts.append("bus=scsi.0")
        if params.boot_order == "cdrom" and index == 1:
            parts.append("bootindex=1")
        yield from ("-device", ",".join(parts))
    if params.floppy_image_path:
        yield from (
            "-drive",
            f"file={escape(params.floppy_image_path)},format=raw,if=none,id=floppy,readonly=on",
        )
        yield from ("-device", "floppy,drive=floppy")
        if params.boot_order == "floppy":
            yield from ("-global", "isa-fdc.bootindexA=1")


def nic_arguments(nics: Sequence[Nic], params: KvmParams, buses: Buses) -> Iterator[str]:
    """All network cards; only a guest that boots from the network gets the code for that."""
    network_boot = params.boot_order == "network" and not params.kernel_path
    for index, nic in enumerate(nics):
        net = device_id("net", nic.uuid)
        yield from ("-netdev", _netdev(net, nic))
        model = _NIC_MODELS.get(params.nic_type, params.nic_type)
        parts = [model, f"id=nic-{net.removeprefix('net-')}", f"netdev={net}", f"mac={nic.mac}"]
        if params.nic_type not in _ISA_NICS:
            parts.extend(buses.pci())
            if not network_boot:
                parts.append("romfile=")
        if len(nic.fds) > 1:
            # Each queue has a vector for both directions, and two are for the card itself (QEMU).
            parts += ["mq=on", f"vectors={2 * len(nic.fds) + 2}"]
        if network_boot and index == 0:
            parts.append("bootindex=1")
        yield from ("-device", ",".join(parts))


def _netdev(name: str, nic: Nic) -> str:
    if not nic.fds:
        return f"user,id={name}"
    plural = "s" if len(nic.fds) > 1 else ""
    text = f"tap,id={name},fd{plural}={':'.join(map(str, nic.fds))}"
    if nic.vhost_fds:
        text += f",vhost=on,vhostfd{plural}={':'.join(map(str, nic.vhost_fds))}"
    return text

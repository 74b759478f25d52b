"""QEMU arguments for disks, images and NICs; pure.

Identifiers are made of uuids, not of positions, and places are explicit, so that a device can be
found, removed and added while the guest runs.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterator, Sequence

import msgspec

from ganeti import errors
from ganeti.base import jsonio
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.places import Places
from ganeti.model.enums import DiskMode, DiskTemplate, NicMode
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import NodeNic

_NIC_MODELS = {"paravirtual": "virtio-net-pci"}
_DISK_MODELS = {"paravirtual": "virtio-blk-pci", "ide": "ide-hd", "scsi": "scsi-hd"}
_CDROM_MODELS = {"": "ide-cd", "ide": "ide-cd", "scsi": "scsi-cd", "paravirtual": "virtio-blk-pci"}
#: Cards that are not on the PCI bus.
_ISA_NICS = frozenset({"ne2k_isa"})
_ID_CHARACTERS = re.compile(r"[^A-Za-z0-9]")

#: Value of ``link`` with mode ``ext`` for a card on QEMU's own network (address translation): it
#: needs no bridge, no tap and no privilege. An addition of this implementation.
USER_NETWORK = "qemu-user"
#: The same, but nothing that the guest sends leaves QEMU: the guest of a copy must reach nobody.
ISOLATED_NETWORK = "qemu-isolated"


#: Properties of a device as texts, ``driver`` among them.
Device = dict[str, str]
#: A virtual processor with its place, as ``device_add`` takes it.
Processor = dict[str, str | int]


def is_private(nic: NodeNic) -> bool:
    """Whether a card is on QEMU's own network."""
    parameters = nic.nicparams
    links = (USER_NETWORK, ISOLATED_NETWORK)
    return parameters.get("mode") == NicMode.EXT and parameters.get("link") in links


def describe_own_network(nic: NodeNic) -> Device:
    """Options of QEMU's own network for a private card.

    An isolated one looks like the network that the guest is configured for, so that it takes its
    address there, fixed or by DHCP.
    """
    if nic.nicparams.get("link") != ISOLATED_NETWORK:
        return {}
    known = nic.netinfo or {}
    try:
        address = ipaddress.IPv4Address(nic.ip or "")
        network = ipaddress.IPv4Network(known.get("network") or f"{address}/24", strict=False)
    except ValueError:
        return {"restrict": "on"}
    used = [str(address), *([known["gateway"]] if known.get("gateway") else [])]
    free = (str(each) for each in network.hosts() if str(each) not in used)
    others = [*used[1:], *itertools.islice(free, 2)][:2]
    if address not in network or len(others) < 2:
        return {"restrict": "on"}
    gateway, dns = others
    return {
        "restrict": "on",
        "net": str(network),
        "host": gateway,
        "dns": dns,
        "dhcpstart": str(address),
    }


class Drive(msgspec.Struct, frozen=True, kw_only=True):
    """A disk for QEMU."""

    uuid: DiskUuid
    #: for older versions, which read it in the records of running guests
    template: DiskTemplate
    mode: DiskMode = DiskMode.RW
    #: file or device, empty with ``uri``
    path: str = ""
    #: whether ``path`` is a block device
    block: bool = False
    #: address that QEMU opens by itself
    uri: str | None = None
    #: other nodes may read the data at the same time, so this node must not cache it; records of
    #: older versions do not say, and to bypass the cache is always right
    shared: bool = True
    #: most reads and writes of the guest in a second, and MiB; 0: no limit
    max_iops: int = 0
    max_bandwidth: int = 0

    @property
    def limited(self) -> bool:
        return bool(self.max_iops or self.max_bandwidth)


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """A NIC for QEMU; ``fds`` are open taps, a queue each, none: QEMU's own network."""

    uuid: str
    mac: str
    fds: tuple[int, ...] = ()
    vhost_fds: tuple[int, ...] = ()
    #: options of QEMU's own network
    own: Device = {}


def escape(text: str) -> str:
    """A value for QEMU's ``key=value,...`` options, where commas are doubled."""
    return text.replace(",", ",,")


def device_id(kind: str, uuid: str) -> str:
    """Identifier of a device: QEMU takes 31 characters for block nodes, a letter first."""
    return f"{kind}-{_ID_CHARACTERS.sub('', uuid)[-24:]}"


def blockdev(drive: Drive, params: KvmParams) -> JsonObject:
    """Arguments of ``blockdev-add`` for a local disk, the same at start and when hot-plugged."""
    return {
        "driver": "raw",
        "node-name": device_id("disk", drive.uuid),
        "read-only": drive.mode == DiskMode.RO,
        "discard": params.disk_discard,
        "cache": {"direct": _is_direct(drive, params), "no-flush": False},
        "file": {
            "driver": "host_device" if drive.block else "file",
            "filename": drive.path,
            "aio": params.disk_aio,
        },
    }


def options(device: Device) -> str:
    """A device as the value of ``-device``."""
    return ",".join([device["driver"], *(f"{k}={v}" for k, v in device.items() if k != "driver")])


def disk_id(uuid: DiskUuid) -> str:
    """Identifier of the device that a disk is to the guest."""
    return f"hd-{device_id('disk', uuid).removeprefix('disk-')}"


def throttle(drive: Drive, params: KvmParams) -> dict[str, str | int]:
    """Arguments of ``block_set_io_throttle``; 0 stands for no limit."""
    device = disk_id(drive.uuid)
    if _DISK_MODELS.get(params.disk_type) == "virtio-blk-pci":
        # The PCI device is only a proxy: the disk belongs to the device behind it.
        device = f"/machine/peripheral/{device}/virtio-backend"
    apart = dict.fromkeys(("iops_rd", "iops_wr", "bps_rd", "bps_wr"), 0)
    limits = {"iops": drive.max_iops, "bps": drive.max_bandwidth << 20}
    return {"id": device, **limits, **apart}


def nic_id(uuid: str) -> str:
    """Identifier of the device that a NIC is to the guest."""
    return f"nic-{device_id('net', uuid).removeprefix('net-')}"


def disk_device(drive: Drive, params: KvmParams, places: Places) -> Device:
    """A disk, the same at start and when it is added later.

    Raises:
        HypervisorError: no place is left, or an ide disk shall be read only.
    """
    model = _DISK_MODELS.get(params.disk_type, params.disk_type)
    name = disk_id(drive.uuid)
    device = {"driver": model, "id": name, "drive": device_id("disk", drive.uuid)}
    if model == "virtio-blk-pci":
        device |= _parse_place(places.express(name))
    elif model == "ide-hd":
        if drive.mode == DiskMode.RO:
            raise errors.HypervisorError(
                f"disk {drive.uuid} is read only, which an ide disk cannot be;"
                " use disk_type paravirtual"
            )
        device |= _parse_place(places.ide(name))
    if model in ("virtio-blk-pci", "ide-hd", "scsi-hd"):
        device["serial"] = drive.uuid[:20]
        if params.disk_cache == "writethrough":
            device["write-cache"] = "off"
    if is_on_scsi(params.disk_type):
        device |= _parse_place(places.scsi(name))
    return device


def disk_arguments(
    drives: Sequence[Drive], params: KvmParams, places: Places, *, boot: bool
) -> Iterator[str]:
    """All disks; with ``boot`` the first is what the firmware starts."""
    if is_on_scsi(params.disk_type) and (drives or places.hot):
        yield from ("-device", _scsi_controller(params, places))
    for index, drive in enumerate(drives):
        if drive.uri is None:
            yield from ("-blockdev", jsonio.dumps(blockdev(drive, params)))
        else:
            yield from ("-drive", uri_drive(drive, drive.uri, params))
        device = disk_device(drive, params, places)
        if boot and index == 0:
            device["bootindex"] = "1"
        yield from ("-device", options(device))


def _parse_place(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split(",") if part)


def _is_direct(drive: Drive, params: KvmParams) -> bool:
    """Whether the node's cache is passed by; always for disks that several nodes reach."""
    return params.disk_cache == "none" or drive.shared


def uri_drive(drive: Drive, uri: str, params: KvmParams) -> str:
    """The older option, as QEMU parses an address of any kind only there."""
    parts = [
        f"file={escape(uri)}",
        "format=raw",
        "if=none",
        f"id={device_id('disk', drive.uuid)}",
        f"cache={'none' if _is_direct(drive, params) else 'writeback'}",
        f"discard={params.disk_discard}",
    ]
    if drive.mode == DiskMode.RO:
        parts.append("readonly=on")
    return ",".join(parts)


def _scsi_controller(params: KvmParams, places: Places) -> str:
    return options(
        {"driver": params.scsi_controller_type, "id": "scsi", **_parse_place(places.slot("scsi"))}
    )


def is_on_scsi(disk_type: str) -> bool:
    """Whether a type of disk needs the SCSI controller."""
    return disk_type.startswith("scsi")


def image_arguments(params: KvmParams, places: Places) -> Iterator[str]:
    """CD and floppy images; they are read only."""
    images = [params.cdrom_image_path, params.cdrom2_image_path]
    scsi = is_on_scsi(params.cdrom_disk_type)
    if scsi and any(images) and "scsi" not in places.occupied:
        yield from ("-device", _scsi_controller(params, places))
    for index, image in enumerate(images, start=1):
        if not image:
            continue
        yield from (
            "-drive",
            f"file={escape(image)},format=raw,if=none,id=cdrom{index},media=cdrom,readonly=on",
        )
        device = _image_device(index, params.cdrom_disk_type, places)
        if params.boot_order == "cdrom" and index == 1:
            device["bootindex"] = "1"
        yield from ("-device", options(device))
    if params.floppy_image_path:
        yield from (
            "-drive",
            f"file={escape(params.floppy_image_path)},format=raw,if=none,id=floppy,readonly=on",
        )
        yield from ("-device", "floppy,drive=floppy")
        if params.boot_order == "floppy":
            yield from ("-global", "isa-fdc.bootindexA=1")


def seed_arguments(path: str, params: KvmParams, places: Places) -> Iterator[str]:
    """The disk for cloud-init, read only; none without a path.

    It is on the bus of the other CDs if the parameters name one, else on that of the disks: a guest
    has its drivers when it mounts its root. Those of an IDE drive may come after cloud-init.
    """
    if not path:
        return
    kind: str = params.cdrom_disk_type or params.disk_type
    if kind not in _CDROM_MODELS and not is_on_scsi(kind):
        kind = ""
    if is_on_scsi(kind) and "scsi" not in places.occupied:
        yield from ("-device", _scsi_controller(params, places))
    yield from (
        "-drive",
        f"file={escape(path)},format=raw,if=none,id=cdromseed,media=cdrom,readonly=on",
    )
    yield from ("-device", options(_image_device("seed", kind, places)))


def _image_device(index: int | str, kind: str, places: Places) -> Device:
    model = _CDROM_MODELS.get(kind, kind)
    name = f"cd{index}"
    device = {"driver": model, "id": name, "drive": f"cdrom{index}"}
    if model == "virtio-blk-pci":
        device |= _parse_place(places.express(name))
    elif model == "ide-cd":
        device |= _parse_place(places.ide(name))
    elif is_on_scsi(kind):
        device |= _parse_place(places.scsi(name))
    return device


def nic_device(nic: Nic, params: KvmParams, places: Places) -> Device:
    """A NIC, the same at start and when it is added later; HypervisorError: no place."""
    name = nic_id(nic.uuid)
    device = {
        "driver": _NIC_MODELS.get(params.nic_type, params.nic_type),
        "id": name,
        "netdev": device_id("net", nic.uuid),
        "mac": nic.mac,
    }
    if params.nic_type not in _ISA_NICS:
        paravirtual = params.nic_type == "paravirtual"
        device |= _parse_place(places.express(name) if paravirtual else places.slot(name))
        if not _network_boot(params):
            # Only a guest that boots from the network gets the code for that.
            device["romfile"] = ""
    if len(nic.fds) > 1:
        # Each queue has a vector for both directions, and two are for the card itself (QEMU).
        device |= {"mq": "on", "vectors": str(2 * len(nic.fds) + 2)}
    return device


def nic_arguments(nics: Sequence[Nic], params: KvmParams, places: Places) -> Iterator[str]:
    """All NICs."""
    for index, nic in enumerate(nics):
        yield from ("-netdev", options(netdev(nic)))
        device = nic_device(nic, params, places)
        if _network_boot(params) and index == 0:
            device["bootindex"] = "1"
        yield from ("-device", options(device))


def _network_boot(params: KvmParams) -> bool:
    return params.boot_order == "network" and not params.kernel_path


def netdev(nic: Nic, fds: Sequence[str] = (), vhost_fds: Sequence[str] = ()) -> Device:
    """The node's side of a card; ``fds`` are names of descriptors, else their numbers count."""
    name = device_id("net", nic.uuid)
    if not nic.fds:
        return {"driver": "user", "id": name, **nic.own}
    plural = "s" if len(nic.fds) > 1 else ""
    device = {"driver": "tap", "id": name, f"fd{plural}": ":".join(fds or map(str, nic.fds))}
    if nic.vhost_fds:
        device["vhost"] = "on"
        device[f"vhostfd{plural}"] = ":".join(vhost_fds or map(str, nic.vhost_fds))
    return device

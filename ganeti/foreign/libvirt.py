"""The domain XML of libvirt (https://libvirt.org/formatdomain.html). Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

from ganeti.foreign import guest as g
from ganeti.foreign.guest import ForeignDisk, ForeignGuest, ForeignNic, refuse
from ganeti.foreign.xml_tree import Element

#: Bytes of the units of memory.
_UNITS = {
    "b": 1,
    "bytes": 1,
    "kb": 1000,
    "k": 1 << 10,
    "kib": 1 << 10,
    "mb": 10**6,
    "m": 1 << 20,
    "mib": 1 << 20,
    "gb": 10**9,
    "g": 1 << 30,
    "gib": 1 << 30,
    "tb": 10**12,
    "t": 1 << 40,
    "tib": 1 << 40,
}
#: Devices that every guest has, or that follow from parameters of the cluster.
_USUAL = {"disk", "interface", "emulator", "controller", "input", "graphics", "video", "console"}
_USUAL |= {"serial", "memballoon", "rng", "channel", "audio", "panic"}
_LAST_IN_ORDER = 1 << 16


def is_libvirt(root: Element) -> bool:
    return root.name in ("domain", "domainsnapshot")


def read(what: str, root: Element) -> ForeignGuest:
    """The guest of a domain; OpPrereqError."""
    if root.name != "domain":
        raise refuse(what, "it describes a snapshot; take the XML of virsh dumpxml DOMAIN")
    left: list[str] = []
    memory = _read_memory(what, root, "memory")
    current = _read_memory(what, root, "currentMemory")
    vcpu = root.read("vcpu", "current") or root.read("vcpu")
    disks = _read_disks(what, root, left)
    nics = tuple(_read_nics(root, left))
    devices = root.find("devices")
    for device in devices.children if devices else []:
        if device.name not in _USUAL:
            left.append(_describe_device(device))
    kind = root.attributes.get("type", "")
    if kind not in ("kvm", "qemu"):
        left.append(f"domain of type '{kind[:40]}': the guest may need other drivers")
    for name in ("kernel", "initrd", "cmdline"):
        if root.read(f"os/{name}"):
            left.append(f"<{name}> of <os>: the guest boots from its first disk")
    if root.read("cpu", "mode") or root.read("cpu/model"):
        left.append("<cpu>: the guest gets the processor of the cluster (cpu_type)")
    return ForeignGuest(
        name=root.read("name") or None,
        memory=memory,
        least_memory=current if current and memory and current < memory else None,
        vcpus=g.read_number(what, "<vcpu>", vcpu, g.MOST_VCPUS) if vcpu else None,
        disks=disks,
        nics=nics,
        firmware=_find_firmware(root, left),
        machine=root.read("os/type", "machine"),
        scsi_controller=_find_scsi(root),
        left_out=tuple(left),
    )


def _read_memory(what: str, root: Element, name: str) -> int | None:
    """MiB, rounded up."""
    found = root.find(name)
    if found is None:
        return None
    unit = found.attributes.get("unit", "KiB").lower()
    if unit not in _UNITS:
        raise refuse(what, f"<{name}> has the unknown unit '{unit[:20]}'")
    number = g.read_number(what, f"<{name}>", found.text, 1 << 60) * _UNITS[unit]
    size = -(-number // g.MIB)
    if size > g.MOST_MEMORY:
        raise refuse(what, f"<{name}> is {size} MiB; {g.MOST_MEMORY} are possible")
    return size


def _read_disks(what: str, root: Element, left: list[str]) -> tuple[ForeignDisk, ...]:
    """Disks, in the order in which the guest tries to boot from them, then as in the XML."""
    found: list[tuple[int, ForeignDisk]] = []
    for disk in root.find_all("devices/disk"):
        label = disk.read("target", "dev") or f"disk {len(found)}"
        device = disk.attributes.get("device", "disk")
        if device != "disk":
            left.append(f"{device} {label}" + _name_source(disk))
            continue
        order = disk.read("boot", "order")
        place = int(order) if order.isdigit() and len(order) < 6 else _LAST_IN_ORDER
        found.append((place, _read_disk(what, disk, label, left)))
    return tuple(disk for _place, disk in sorted(found, key=lambda item: item[0]))


def _read_disk(what: str, disk: Element, label: str, left: list[str]) -> ForeignDisk:
    kind = disk.attributes.get("type", "file")
    if disk.find("encryption") or disk.find("source/encryption"):
        raise refuse(what, f"disk {label} is encrypted; decrypt it first")
    if disk.find("backingStore/source") is not None:
        raise refuse(
            what,
            f"disk {label} needs a backing file; merge both: qemu-img convert -O qcow2 OLD NEW,"
            " and remove <backingStore>",
        )
    path = {
        "file": disk.read("source", "file"),
        "block": disk.read("source", "dev"),
        "volume": disk.read("source", "volume"),
    }.get(kind)
    if not path:
        raise refuse(
            what,
            f"disk {label} of type '{kind[:40]}' has no file; copy its content into one"
            " (qemu-img convert) and name that as <source file=...>",
        )
    if disk.find("readonly") is not None:
        left.append(f"disk {label} was read-only; the instance may write to it")
    if disk.find("shareable") is not None:
        left.append(f"disk {label} was shared with other guests; the instance gets a copy")
    format = disk.read("driver", "type")
    if format not in ("", "raw", "qcow2", "vmdk"):
        raise refuse(
            what,
            f"disk {label} has the format '{format[:20]}'; convert it first: qemu-img convert -O"
            " qcow2 OLD NEW",
        )
    name = g.check_file_name(what, label, PurePosixPath(path).name)
    return ForeignDisk(label, name, disk.read("target", "bus"), format or None)


def _name_source(disk: Element) -> str:
    path = disk.read("source", "file") or disk.read("source", "dev")
    return f" with {path}" if path else ""


def _read_nics(root: Element, left: list[str]) -> list[ForeignNic]:
    result = []
    for number, nic in enumerate(root.find_all("devices/interface")):
        kind = nic.attributes.get("type", "")
        source = nic.find("source")
        names = source.attributes if source else {}
        found = next((names[key] for key in ("network", "bridge", "dev") if names.get(key)), "")
        if kind not in ("network", "bridge", "direct", "user"):
            left.append(f"NIC {number} was of type '{kind[:40]}'; it is connected to a bridge")
        if nic.find("vlan") is not None:
            left.append(f"VLAN of NIC {number}; set it with gnt-instance modify --net")
        if nic.find("filterref") is not None:
            left.append(f"packet filter of NIC {number}")
        if nic.find("bandwidth") is not None:
            left.append(f"bandwidth limit of NIC {number}")
        result.append(
            ForeignNic(nic.read("mac", "address") or None, found, nic.read("model", "type"))
        )
    return result


def _find_firmware(root: Element, left: list[str]) -> str:
    loader, features = root.find("os/loader"), list(root.find_all("os/firmware/feature"))
    pflash = loader is not None and loader.attributes.get("type") == "pflash"
    path = loader.text.lower() if loader is not None else ""
    efi = root.read("os", "firmware") == "efi" or pflash or "ovmf" in path or "edk2" in path
    if not efi:
        return "bios"
    left.append("variables of UEFI: the guest boots what lies at \\EFI\\BOOT, or its first entry")
    secure = loader is not None and loader.attributes.get("secure") == "yes"
    keys = any(
        each.attributes.get("name") == "secure-boot" and each.attributes.get("enabled") == "yes"
        for each in features
    )
    return "uefi-secure" if secure or keys else "uefi"


def _find_scsi(root: Element) -> str:
    for controller in root.find_all("devices/controller"):
        if controller.attributes.get("type") == "scsi":
            return controller.attributes.get("model", "")
    return ""


def _describe_device(device: Element) -> str:
    model = device.attributes.get("model") or device.attributes.get("type") or ""
    words = {"tpm": "TPM", "hostdev": "device of the host", "filesystem": "directory of the host"}
    text = words.get(device.name, device.name)
    return f"{text} ({model})" if model else text

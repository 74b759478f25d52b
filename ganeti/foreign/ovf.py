"""The Open Virtualization Format (DMTF DSP0243): descriptor and manifest. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ganeti.foreign import guest as g
from ganeti.foreign.guest import ForeignDisk, ForeignGuest, ForeignNic, refuse
from ganeti.foreign.xml_tree import Element

#: Types of resources (CIM_ResourceAllocationSettingData.ResourceType).
_VCPUS, _MEMORY, _IDE, _SCSI, _NIC, _DISK, _SATA = "3", "4", "5", "6", "10", "17", "20"
_CONTROLLERS = {_IDE: "ide", _SCSI: "scsi", _SATA: "sata"}
_OTHERS = {"14": "floppy drive", "15": "CD drive", "16": "DVD drive", "23": "USB controller"}
_OTHERS |= {"24": "graphics card", "35": "sound card", "33": "TPM"}
#: Devices that every guest has.
_USUAL = {"24", "23"}
_UNIT = re.compile(r"byte\s*\*\s*(2|10)\s*\^\s*(\d{1,2})", re.IGNORECASE)
_WORDS = {"bytes": 1, "byte": 1, "kilobytes": 1 << 10, "megabytes": 1 << 20, "gigabytes": 1 << 30}
_MANIFEST = re.compile(r"(SHA1|SHA256|SHA384|SHA512)\s*\((.+)\)\s*=\s*([0-9a-fA-F]+)")


@dataclass(frozen=True)
class Checksum:
    """What a manifest says of a file."""

    algorithm: str
    value: str


def is_ovf(root: Element) -> bool:
    return root.name == "Envelope"


def read(what: str, root: Element) -> ForeignGuest:
    """The guest of a descriptor; OpPrereqError."""
    systems = list(root.find_all("VirtualSystem"))
    if len(systems) != 1 or root.find("VirtualSystemCollection") is not None:
        raise refuse(
            what, "it describes not exactly one guest; export each guest by itself and import those"
        )
    system = systems[0]
    section = system.find("VirtualHardwareSection")
    if section is None:
        raise refuse(what, "it has no VirtualHardwareSection, so it does not describe a guest")
    left: list[str] = []
    items = [
        item
        for item in section.children
        if item.name in ("Item", "StorageItem", "EthernetPortItem")
    ]
    controllers = {
        item.read("InstanceID"): _CONTROLLERS[item.read("ResourceType")]
        for item in items
        if item.read("ResourceType") in _CONTROLLERS
    }
    scsi = [item.read("ResourceSubType") for item in items if item.read("ResourceType") == _SCSI]
    known = {_VCPUS, _MEMORY, _NIC, _DISK, *_CONTROLLERS, *_USUAL}
    for item in items:
        kind = item.read("ResourceType")
        if kind not in known:
            name = item.read("ElementName") or item.read("Caption") or f"resource of type {kind}"
            left.append(f"{_OTHERS.get(kind, 'device')} ({name[:60]})")
    files = _read_files(what, root)
    return ForeignGuest(
        name=system.read("Name") or system.attributes.get("id") or None,
        memory=_read_memory(what, items),
        vcpus=_read_vcpus(what, items),
        disks=tuple(
            _read_disk(what, root, item, files, controllers)
            for item in items
            if item.read("ResourceType") == _DISK
        ),
        nics=tuple(
            ForeignNic(
                _read_mac(item.read("Address")),
                item.read("Connection"),
                item.read("ResourceSubType"),
            )
            for item in items
            if item.read("ResourceType") == _NIC
        ),
        firmware=_find_firmware(system, section, left),
        scsi_controller=scsi[0] if scsi else "",
        left_out=tuple(left),
    )


def read_manifest(what: str, data: bytes) -> dict[str, Checksum]:
    """Checksums by names of files; OpPrereqError for a line of another form."""
    result = {}
    for line in data.decode("utf-8", "replace").splitlines():
        if not line.strip():
            continue
        found = _MANIFEST.fullmatch(line.strip())
        if found is None:
            raise refuse(what, f"the manifest has the line '{line[:60]}'; expected a checksum")
        algorithm, name, value = found.groups()
        result[name] = Checksum(algorithm.lower(), value.lower())
    return result


def _read_vcpus(what: str, items: list[Element]) -> int | None:
    for item in items:
        if item.read("ResourceType") == _VCPUS:
            return g.read_number(what, "number of CPUs", item.read("VirtualQuantity"), g.MOST_VCPUS)
    return None


def _read_memory(what: str, items: list[Element]) -> int | None:
    for item in items:
        if item.read("ResourceType") == _MEMORY:
            unit = _read_unit(what, item.read("AllocationUnits") or "byte * 2^20")
            number = g.read_number(what, "memory", item.read("VirtualQuantity"), 1 << 60)
            size = -(-number * unit // g.MIB)
            if size > g.MOST_MEMORY:
                raise refuse(what, f"memory is {size} MiB; {g.MOST_MEMORY} are possible")
            return size
    return None


def _read_unit(what: str, text: str) -> int:
    found = _UNIT.fullmatch(text.strip())
    if found:
        return int(int(found[1]) ** int(found[2]))
    if text.strip().lower() in _WORDS:
        return _WORDS[text.strip().lower()]
    raise refuse(what, f"'{text[:40]}' is not a unit, as in 'byte * 2^20'")


def _read_files(what: str, root: Element) -> dict[str, str]:
    """Names of files by their ids."""
    result = {}
    for file in root.find_all("References/File"):
        id = file.attributes.get("id", "")
        if file.attributes.get("chunkSize"):
            raise refuse(
                what, f"file {id} is split into pieces (chunkSize); export the guest without that"
            )
        result[id] = file.attributes.get("href", "")
    return result


def _read_disk(
    what: str,
    root: Element,
    item: Element,
    files: dict[str, str],
    controllers: dict[str, str],
) -> ForeignDisk:
    resource = item.read("HostResource")
    id = resource.rpartition("/")[2]
    found = next(
        (
            disk
            for disk in root.find_all("DiskSection/Disk")
            if disk.attributes.get("diskId") == id and "/disk/" in resource
        ),
        None,
    )
    label = id or item.read("ElementName") or "without a name"
    if found is None:
        raise refuse(what, f"disk {label} is '{resource[:80]}', which is not in the DiskSection")
    if found.attributes.get("parentRef"):
        raise refuse(what, f"disk {label} needs a parent disk; export the guest without snapshots")
    reference = found.attributes.get("fileRef", "")
    if not files.get(reference):
        raise refuse(
            what, f"disk {label} has no file: the References have no file '{reference[:60]}'"
        )
    unit = _read_unit(what, found.attributes.get("capacityAllocationUnits") or "byte")
    capacity = g.read_number(
        what, f"capacity of disk {label}", found.attributes.get("capacity"), 1 << 60
    )
    return ForeignDisk(
        label,
        g.check_file_name(what, label, files[reference]),
        controllers.get(item.read("Parent"), ""),
        None,
        capacity * unit,
    )


def _read_mac(text: str) -> str | None:
    """A MAC address, also without colons as VirtualBox writes it."""
    digits = re.sub("[:-]", "", text.lower())
    if not re.fullmatch("[0-9a-f]{12}", digits):
        return None
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2))


def _find_firmware(system: Element, section: Element, left: list[str]) -> str:
    found, secure = "bios", False
    for config in section.find_all("Config"):
        key, value = config.attributes.get("key", ""), config.attributes.get("value", "").lower()
        if key == "firmware" and value == "efi":
            found = "uefi"
        elif key == "bootOptions.efiSecureBootEnabled" and value == "true":
            secure = True
    if system.read("Machine/Hardware/Firmware", "type").upper().startswith("EFI"):
        found = "uefi"
    if found == "uefi":
        left.append("variables of UEFI: the guest boots what lies at \\EFI\\BOOT")
    return "uefi-secure" if secure and found == "uefi" else found

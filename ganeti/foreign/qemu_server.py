"""The configuration of a guest of Proxmox VE, ``qemu-server.conf`` in its backups. Pure."""

from __future__ import annotations

import re

from ganeti.foreign import guest as g
from ganeti.foreign.guest import ForeignDisk, ForeignGuest, ForeignNic

_DISK = re.compile(r"(virtio|scsi|sata|ide)(\d{1,2})")
_NIC = re.compile(r"net(\d{1,2})")
_OTHERS = re.compile(
    r"(hostpci|usb|serial|parallel|audio|virtiofs|rng|unused)\d+|tpmstate0|watchdog"
)
_MAC = re.compile(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")


def read_values(text: str) -> dict[str, str]:
    """Keys and values of the current state; sections of snapshots come after it."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("["):
            break
        key, colon, value = line.partition(":")
        if colon and not line.startswith("#"):
            values[key.strip()] = value.strip()
    return values


def read(what: str, text: str, sizes: dict[str, int]) -> ForeignGuest:
    """The guest; ``sizes`` are the bytes of the disks that the backup has, by ``drive-scsi0``.

    Raises:
        OpPrereqError: a number is invalid, or a disk is missing.
    """
    values = read_values(text)
    left: list[str] = []
    memory = _read(what, values, "memory", g.MOST_MEMORY)
    balloon = values.get("balloon", "0")
    least = None
    if balloon != "0":
        least = g.read_number(what, "balloon", balloon, g.MOST_MEMORY)
    cores, sockets = (_read(what, values, key, g.MOST_VCPUS) for key in ("cores", "sockets"))
    bios = "uefi" if values.get("bios") == "ovmf" else "bios"
    if bios == "uefi":
        left.append("variables of UEFI (efidisk0): the guest boots what lies at \\EFI\\BOOT")
        if "pre-enrolled-keys=1" in values.get("efidisk0", ""):
            bios = "uefi-secure"
    for key, value in values.items():
        if _OTHERS.fullmatch(key):
            words = {"tpmstate0": "TPM with its state"}
            left.append(f"{words.get(key, key)} ({value[:60]})")
    if "args" in values:
        left.append(f"arguments of QEMU ({values['args'][:60]})")
    if values.get("cpu"):
        left.append("cpu: the guest gets the processor of the cluster (cpu_type)")
    return ForeignGuest(
        name=values.get("name") or None,
        memory=memory,
        least_memory=least if least and memory and least < memory else None,
        vcpus=min((cores or 1) * (sockets or 1), g.MOST_VCPUS) if cores or sockets else None,
        disks=_read_disks(what, values, sizes, left),
        nics=_read_nics(values, left),
        firmware=bios,
        machine=values.get("machine", ""),
        scsi_controller=values.get("scsihw", "lsi"),
        left_out=tuple(left),
    )


def _read(what: str, values: dict[str, str], key: str, most: int) -> int | None:
    return g.read_number(what, key, values[key], most) if key in values else None


def _read_disks(
    what: str, values: dict[str, str], sizes: dict[str, int], left: list[str]
) -> tuple[ForeignDisk, ...]:
    """Disks, in the order in which the guest tries to boot from them, then by their names."""
    order = re.findall(r"[a-z]+\d+", values.get("boot", "")) or [values.get("bootdisk", "")]
    found = []
    for key, value in values.items():
        match = _DISK.fullmatch(key)
        if match is None:
            continue
        if "media=cdrom" in value:
            left.append(f"CD drive {key} ({value[:60]})")
            continue
        device = f"drive-{key}"
        if device not in sizes:
            if re.search(r"\bbackup=(0|no|off|false)\b", value):
                left.append(f"disk {key}: it was excluded from the backup (backup=0)")
                continue
            raise g.refuse(what, f"disk {key} of the guest is missing in the backup")
        place = order.index(key) if key in order else len(order)
        bus = ("virtio", "scsi", "sata", "ide").index(match[1])
        disk = ForeignDisk(key, device, match[1], "raw", sizes[device])
        found.append(((place, bus, int(match[2])), disk))
    return tuple(disk for _place, disk in sorted(found, key=lambda item: item[0]))


def _read_nics(values: dict[str, str], left: list[str]) -> tuple[ForeignNic, ...]:
    found = []
    for key, value in values.items():
        match = _NIC.fullmatch(key)
        if match is None:
            continue
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        model = next(iter(parts), "")
        mac = parts.get(model, "") or parts.get("macaddr", "")
        if "tag" in parts or "trunks" in parts:
            left.append(f"VLAN of NIC {match[1]}; set it with gnt-instance modify --net")
        if parts.get("firewall") == "1":
            left.append(f"firewall of NIC {match[1]}")
        nic = ForeignNic(
            mac.lower() if _MAC.fullmatch(mac) else None, parts.get("bridge", ""), model
        )
        found.append((int(match[1]), nic))
    return tuple(nic for _number, nic in sorted(found, key=lambda item: item[0]))

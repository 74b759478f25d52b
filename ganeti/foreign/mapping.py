"""From a guest of another product to the parameters of the instance that is made of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.foreign.guest import MIB, ForeignGuest

#: Values of ``disk_type`` of kvm by the bus of a disk.
_DISK_TYPES = {"virtio": "paravirtual", "scsi": "scsi-hd", "ide": "ide", "sata": "ide"}
#: Values of ``nic_type`` of kvm by the model of a NIC, in small letters.
_NIC_TYPES = {
    "virtio": "paravirtual",
    "virtio-net": "paravirtual",
    "virtionet": "paravirtual",
    "virtio-transitional": "paravirtual",
    "virtio-non-transitional": "paravirtual",
    "e1000": "e1000",
    "e1000e": "e1000",
    "rtl8139": "rtl8139",
    "ne2k_pci": "ne2k_pci",
    "pcnet": "pcnet",
    "pcnet32": "pcnet",
    "i82551": "i82551",
    "i82557b": "i82557b",
    "i82559er": "i82559er",
}
#: Controllers of SCSI that are those of QEMU's lsi.
_LSI = ("", "auto", "lsi", "lsi53c810", "lsi53c895a")


@dataclass(frozen=True)
class Mapped:
    """Parameters of the instance, and what is not as it was: one sentence each."""

    hvparams: JsonObject
    beparams: JsonObject
    nics: list[JsonObject]
    left_out: tuple[str, ...]


def map_guest(
    guest: ForeignGuest,
    *,
    hypervisor: str,
    networks: Mapping[str, JsonObject],
    keep_macs: bool,
) -> Mapped:
    """Map all but the disks; ``networks`` are keys of NICs by the source that these had.

    Raises:
        OpPrereqError: a source in ``networks`` is none of the guest's.
    """
    left = list(guest.left_out)
    hvparams = _map_devices(guest, left)
    if hypervisor != "kvm":
        named = ", ".join(f"{key}={value}" for key, value in hvparams.items() if value)
        if named:
            left.append(f"{named}: hypervisor {hypervisor} does not have these parameters of kvm")
        hvparams = {}
    return Mapped(
        hvparams, _map_backend(guest), _map_nics(guest, networks, keep_macs=keep_macs), tuple(left)
    )


def read_network(text: str) -> tuple[str, JsonObject]:
    """Source and keys of a NIC, from ``SOURCE=link:br0`` or ``SOURCE=network:NAME``."""
    source, _equals, target = text.rpartition("=")
    key, _colon, value = target.partition(":")
    if not source or key not in ("link", "network") or not value:
        raise errors.make_invalid_error(
            f"--map-network: '{text[:80]}' is not of the form SOURCE=link:br0 or"
            " SOURCE=network:NAME"
        )
    return source, {key: value}


def map_sizes(
    guest: ForeignGuest, sizes: Sequence[int], given: Sequence[JsonObject]
) -> list[JsonObject]:
    """Parameters of the disks: ``sizes`` are the bytes of their content, ``given`` options.

    Raises:
        OpPrereqError: a disk is smaller than its content, or there is no such disk.
    """
    if len(given) > len(guest.disks):
        raise errors.make_invalid_error(
            f"--disk {len(given) - 1}: the guest has only {len(guest.disks)} disks; add others"
            " later with gnt-instance modify"
        )
    result = []
    for index, (disk, size) in enumerate(zip(guest.disks, sizes, strict=True)):
        if disk.size is not None and size > disk.size:
            raise errors.make_invalid_error(
                f"disk {disk.label} has {size} bytes in {disk.file}, but {disk.size} by its"
                " description; one of them is wrong"
            )
        mebibytes = -(-max(size, disk.size or 0) // MIB)
        keys = {"size": mebibytes, **(given[index] if index < len(given) else {})}
        if keys["size"] < mebibytes:
            raise errors.make_invalid_error(
                f"--disk {index}: {keys['size']} MiB are too few; its content takes {mebibytes} MiB"
            )
        if "adopt" in keys:
            raise errors.make_invalid_error(f"--disk {index}: an imported disk cannot be adopted")
        result.append(keys)
    return result


def _map_devices(guest: ForeignGuest, left: list[str]) -> JsonObject:
    # The guest boots from its disk, whatever kernel the cluster has for others.
    result: JsonObject = {"kernel_path": ""}
    buses = list(dict.fromkeys(disk.bus.lower() for disk in guest.disks if disk.bus))
    if buses:
        result.update(_map_bus(guest, buses[0], left))
    if len(buses) > 1:
        left.append(f"bus of disks on {', '.join(buses[1:])}: all disks are on that of disk 0")
    models = list(dict.fromkeys(nic.model.lower() for nic in guest.nics if nic.model))
    if models and models[0] in _NIC_TYPES:
        result["nic_type"] = _NIC_TYPES[models[0]]
    elif models:
        left.append(f"NIC model {models[0][:40]}: the NICs are of the cluster's nic_type")
    if len(models) > 1:
        left.append(f"NIC model {', '.join(models[1:])[:80]}: all NICs are as NIC 0")
    if guest.firmware:
        result["firmware"] = guest.firmware
    q35 = "q35" in guest.machine
    if q35 or guest.firmware == "uefi-secure":
        result["machine_version"] = "q35"
    if guest.machine and guest.machine not in ("q35", "pc"):
        kind = result.get("machine_version", "the default of QEMU")
        left.append(f"machine type {guest.machine[:60]}: it becomes {kind}")
    return result


def _map_bus(guest: ForeignGuest, bus: str, left: list[str]) -> JsonObject:
    if bus not in _DISK_TYPES:
        left.append(f"bus {bus[:40]} of the disks: they are of the cluster's disk_type")
        return {}
    result: JsonObject = {"disk_type": _DISK_TYPES[bus]}
    if bus == "sata":
        left.append("bus sata of the disks: it becomes ide")
    if bus == "scsi":
        model = guest.scsi_controller.lower()
        kind = "lsi"
        if model.startswith("virtio"):
            kind = "virtio-scsi-pci"
        elif model in ("megasas", "lsisas1078"):
            kind = "megasas"
        elif model not in _LSI:
            left.append(
                f"SCSI controller {model[:40]}: it becomes lsi; a guest with drivers for virtio"
                " is faster with -H kvm:disk_type=paravirtual"
            )
        result["scsi_controller_type"] = kind
    return result


def _map_backend(guest: ForeignGuest) -> JsonObject:
    result: JsonObject = {}
    if guest.memory:
        result["maxmem"] = guest.memory
        result["minmem"] = guest.least_memory or guest.memory
    if guest.vcpus:
        result["vcpus"] = guest.vcpus
    return result


def _map_nics(
    guest: ForeignGuest, networks: Mapping[str, JsonObject], *, keep_macs: bool
) -> list[JsonObject]:
    known = {nic.source for nic in guest.nics}
    for source in networks:
        if source not in known:
            names = ", ".join(sorted(name for name in known if name)) or "none"
            raise errors.make_invalid_error(
                f"--map-network: no NIC of the guest was connected to '{source}'; choose"
                f" from: {names}"
            )
    return [
        {**({"mac": nic.mac} if keep_macs and nic.mac else {}), **networks.get(nic.source, {})}
        for nic in guest.nics
    ]

"""The configuration file of a domain, after xl.cfg(5) and xl-disk-configuration(5); pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ganeti import constants, errors
from ganeti.hypervisor.interface import AttachedDisk
from ganeti.hypervisor.kvm import pinning
from ganeti.hypervisor.xen.params import HvmParams, PvmParams
from ganeti.model.enums import DiskMode, NicMode
from ganeti.rpc.objects import NodeInstance, NodeNic

#: TCP port of VNC display 0.
VNC_BASE_PORT = 5900
#: Text that xl reads as it is between single quotes: no quote, no line end.
_PLAIN = re.compile(r"[^'\n\0]*")
#: Text between the commas of a disk or NIC.
_ITEM = re.compile(r"[^',\n\0]*")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Attaches the NIC by which a guest talks to its node, whatever attaches others.
_COMMUNICATION_SCRIPT = "/usr/lib/ganeti/vif-ganeti-metad"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Hvm:
    """The needs of a fully virtualised guest from the node."""

    params: HvmParams
    #: None: no password is set up, so there is no display
    vnc_password: str | None


def pvm(instance: NodeInstance, disks: Sequence[AttachedDisk], params: PvmParams) -> str:
    """Configuration of a PV or PVH guest.

    Raises:
        HypervisorError: a value that xl cannot be given, a cpu_mask that does not fit.
    """
    lines = [f"type = {quote(params.guest_type)}", *_common(instance, params)]
    if params.use_bootloader:
        lines.append(f"bootloader = {quote(params.bootloader_path)}")
        if params.bootloader_args:
            lines.append(f"bootloader_args = {quote(params.bootloader_args)}")
    else:
        lines.append(f"kernel = {quote(params.kernel_path)}")
        if params.initrd_path:
            lines.append(f"ramdisk = {quote(params.initrd_path)}")
    if params.root_path:
        lines.append(f"root = {quote(params.root_path)}")
    if params.kernel_args:
        lines.append(f"extra = {quote(params.kernel_args)}")
    lines.append(_disks(disks, params.blockdev_prefix))
    lines.append(_list("vif", (_vif(nic, params.vif_script) for nic in instance.nics)))
    return "\n".join(lines) + "\n"


def hvm(instance: NodeInstance, disks: Sequence[AttachedDisk], guest: Hvm) -> str:
    """Configuration of an HVM guest; holds its VNC password. Errors as in :func:`pvm`."""
    params = guest.params
    builtin = HvmParams()
    lines = ['type = "hvm"', *_common(instance, params)]
    if params.kernel_path != builtin.kernel_path:
        lines.append(f"firmware_override = {quote(params.kernel_path)}")
    if params.device_model != builtin.device_model:
        lines.append(f"device_model_override = {quote(params.device_model)}")
    lines += [
        f"acpi = {int(params.acpi)}",
        f"pae = {int(params.pae)}",
        f"viridian = {int(params.viridian)}",
        f"localtime = {int(params.use_localtime)}",
        f"boot = {quote(params.boot_order)}",
        "serial = 'pty'",
        "usb = 1",
        "usbdevice = 'tablet'",
        *_display(instance, guest),
    ]
    if params.pci_pass:
        lines.append(_list("pci", params.pci_pass.split(";")))
    lines.append(_disks(disks, _hvm_prefix(params), params.cdrom_image_path))
    model = "" if params.nic_type == "paravirtual" else params.nic_type
    kind = "vif" if not model else params.vif_type
    lines.append(_list("vif", (_vif(nic, params.vif_script, kind, model) for nic in instance.nics)))
    return "\n".join(lines) + "\n"


def _common(instance: NodeInstance, params: PvmParams | HvmParams) -> Iterator[str]:
    memory = instance.backend("maxmem")
    vcpus = instance.backend("vcpus")
    yield f"name = {quote(instance.name)}"
    if _UUID.fullmatch(instance.uuid):
        yield f"uuid = {quote(instance.uuid)}"
    yield f"memory = {memory}"
    yield f"maxmem = {memory}"
    yield f"vcpus = {vcpus}"
    masks = pinning.plan(params.cpu_mask, vcpus)
    if masks != (None,):
        words = ["all" if mask is None else ",".join(map(str, sorted(mask))) for mask in masks]
        yield f"cpus = {quote(words[0])}" if len(words) == 1 else _list("cpus", words)
    if params.cpu_cap:
        yield f"cap = {params.cpu_cap}"
    yield f"cpu_weight = {params.cpu_weight}"
    if params.cpuid:
        yield f"cpuid = {quote(params.cpuid)}"
    if params.soundhw:
        yield f"soundhw = {quote(params.soundhw)}"
    # A guest that ended by itself stays until somebody has seen that, see the driver.
    yield "on_poweroff = 'preserve'"
    yield f"on_reboot = {quote('restart' if params.reboot_behavior == 'reboot' else 'destroy')}"
    yield "on_crash = 'restart'"


def _display(instance: NodeInstance, guest: Hvm) -> Iterator[str]:
    if guest.vnc_password is None or not instance.network_port:
        yield "vnc = 0"
        return
    yield "vnc = 1"
    yield f"vnclisten = {quote(guest.params.vnc_bind_address)}"
    yield f"vncdisplay = {instance.network_port - VNC_BASE_PORT}"
    yield "vncunused = 0"
    yield f"vncpasswd = {quote(guest.vnc_password)}"


def _hvm_prefix(params: HvmParams) -> str:
    """An emulated disk must be called hd or sd; the emulator shows others to drivers only."""
    if params.disk_type == "paravirtual" and params.blockdev_prefix == "hd":
        return "xvd"
    return params.blockdev_prefix


def device_name(prefix: str, index: int) -> str:
    """Name of a disk in the guest: ``xvda``, ``xvdb``, ..."""
    if index >= len(_LETTERS):
        raise errors.HypervisorError(f"a Xen guest has at most {len(_LETTERS)} disks")
    return f"{prefix}{_LETTERS[index]}"


def disk(attached: AttachedDisk, name: str) -> str:
    """A disk as xl-disk-configuration(5) wants it, for a file and for ``xl block-attach``."""
    access = "ro" if attached.disk.mode is DiskMode.RO else "rw"
    # The target comes last: it may have commas and equal signs in it.
    return f"format=raw,vdev={_item(name)},access={access},target={_plain(attached.path)}"


def _disks(disks: Sequence[AttachedDisk], prefix: str, cdrom: str = "") -> str:
    items = [disk(item, device_name(prefix, index)) for index, item in enumerate(disks)]
    if cdrom:
        items.append(f"format=raw,vdev=hdc,access=ro,devtype=cdrom,target={_plain(cdrom)}")
    return _list("disk", items)


def _vif(nic: NodeNic, script: str, kind: str = "", model: str = "") -> str:
    """A NIC as xl-network-configuration(5) wants it."""
    mode, link = nic.nicparams.get("mode"), str(nic.nicparams.get("link") or "")
    words = [f"mac={nic.mac}"]
    if nic.ip:
        words.append(f"ip={nic.ip}")
    if mode in (NicMode.BRIDGED, NicMode.OPENVSWITCH):
        words.append(f"bridge={link}{nic.nicparams.get('vlan') or ''}")
    if (nic.name or "").startswith(constants.COMMUNICATION_NIC):
        script = _COMMUNICATION_SCRIPT
    if not script:
        script = (
            {NicMode.ROUTED: "vif-route", NicMode.OPENVSWITCH: "vif-openvswitch"}.get(
                NicMode(str(mode)), ""
            )
            if mode
            else ""
        )
    if script:
        words.append(f"script={script}")
    if kind:
        words.append(f"type={kind}")
    if model:
        words.append(f"model={model}")
    return ",".join(_item(word) for word in words)


def _list(key: str, items: Sequence[str] | Iterator[str]) -> str:
    return f"{key} = [{', '.join(quote(item) for item in items)}]"


def quote(text: str) -> str:
    """A text in the file; xl knows no escapes inside single quotes."""
    return f"'{_plain(text)}'"


def _plain(text: str) -> str:
    if not _PLAIN.fullmatch(text):
        raise errors.HypervisorError(
            f"{text[:60]!r} cannot be given to xl: it has a quote or a line end in it"
        )
    return text


def _item(text: str) -> str:
    if not _ITEM.fullmatch(text):
        raise errors.HypervisorError(
            f"{text[:60]!r} cannot be given to xl: it has a comma, a quote or a line end in it"
        )
    return text

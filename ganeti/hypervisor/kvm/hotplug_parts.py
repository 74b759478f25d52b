"""The parts of a change of devices in a running guest."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ganeti import errors
from ganeti.base import retry
from ganeti.hypervisor.kvm import argv, devices
from ganeti.hypervisor.kvm.devices import Device, Drive
from ganeti.hypervisor.kvm.params import KvmParams
from ganeti.hypervisor.kvm.places import Places
from ganeti.hypervisor.kvm.rules import is_url
from ganeti.hypervisor.kvm.runtime import Runtime, Store
from ganeti.rpc.objects import NodeInstance, NodeNic

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp


_CLOSE_TIMEOUT = 3.0

DELETED = ("DEVICE_DELETED", "DEVICE_UNPLUG_GUEST_ERROR")


@dataclass
class Change:
    """A guest with an open connection, while something of it is changed."""

    store: Store
    runtime: Runtime
    qmp: Qmp

    @property
    def params(self) -> KvmParams:
        return self.runtime.params

    def places(self) -> Places:
        return argv.places(self.params, self.runtime.machine, self.runtime.places)

    def has(self, device: str) -> bool:
        """Whether the guest has a device of this name."""
        found = self.qmp.command("qom-list", {"path": "/machine/peripheral"})
        return any(entry["name"] == device for entry in found)

    def save(self, **changes: object) -> None:
        self.runtime = msgspec.structs.replace(self.runtime, **changes)
        self.store.save(self.runtime)

    def nics(self, nics: Sequence[NodeNic]) -> NodeInstance:
        """The instance with other cards."""
        return msgspec.structs.replace(self.runtime.instance, nics=tuple(nics))


def add_drive(drives: Sequence[Drive], drive: Drive) -> tuple[Drive, ...]:
    return (*(known for known in drives if known.uuid != drive.uuid), drive)


def remove_device(places: dict[str, str], device: str) -> dict[str, str]:
    return {key: place for key, place in places.items() if key != device}


def size_of(drive: Drive) -> int | None:
    """Bytes of a disk that the node sees, None for one that only QEMU opens."""
    if drive.uri is not None:
        return None
    fd = os.open(drive.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(fd, 0, os.SEEK_END)
    finally:
        os.close(fd)


def lend(qmp: Qmp, path: str, *, write: bool) -> str:
    """Open a file for a QEMU that cannot; its name there."""
    fd = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC)
    try:
        return qmp.add_descriptor(fd)
    finally:
        os.close(fd)


def make_netdev(qmp: Qmp, nic: devices.Nic) -> dict[str, object]:
    """Arguments of ``netdev_add`` for a tap, whose descriptors QEMU gets under names."""
    names: dict[str, list[str]] = {"fd": [], "vhostfd": []}
    for kind, fds in (("fd", nic.fds), ("vhostfd", nic.vhost_fds)):
        for number, fd in enumerate(fds):
            name = f"{kind}{number}-{devices.device_id('', nic.uuid)}"
            qmp.send_descriptor(fd, name)
            names[kind].append(name)
    device: Device = devices.netdev(nic, names["fd"], names["vhostfd"])
    arguments: dict[str, object] = {k: v for k, v in device.items() if k != "driver"}
    if arguments.get("vhost") == "on":
        arguments["vhost"] = True
    return {"type": device["driver"], **arguments}


def close_disk(qmp: Qmp, node: str) -> None:
    """Close the node's side of a disk if it is open.

    QEMU takes a device from the guest a moment before it closes the disk, and that event may
    have passed.

    Raises:
        HypervisorError: it is still in use.
    """
    if _is_open(qmp, node):
        retry.retry_until(lambda: _delete(qmp, node), timeout=_CLOSE_TIMEOUT, largest=0.1)
        if _is_open(qmp, node):
            qmp.command("blockdev-del", {"node-name": node})
    elif any(entry.get("device") == node for entry in qmp.command("query-block")):
        human_command(qmp, f"drive_del {node}")


def _is_open(qmp: Qmp, node: str) -> bool:
    nodes = qmp.command("query-named-block-nodes", {"flat": True})
    return any(entry.get("node-name") == node for entry in nodes)


def _delete(qmp: Qmp, node: str) -> bool | None:
    try:
        qmp.command("blockdev-del", {"node-name": node})
    except errors.HypervisorError as err:
        if "in use" in str(err):
            return None
        raise
    return True


def close_net(qmp: Qmp, name: object) -> None:
    """Close the node's side of a card if it is open."""
    with contextlib.suppress(errors.HypervisorError):
        qmp.command("netdev_del", {"id": name})


def human_command(qmp: Qmp, line: str) -> str:
    """A command that QEMU only has for humans."""
    return str(qmp.command("human-monitor-command", {"command-line": line}))


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def insert(change: Change, number: int, image: str) -> None:
    """Change the image in a drive; an empty text leaves it empty."""
    drive = f"cd{number}"
    if not image:
        change.qmp.command("eject", {"id": drive, "force": True})
        return
    filename = image
    if change.runtime.restricted and not is_url(image):
        filename = lend(change.qmp, image, write=False)
    change.qmp.command(
        "blockdev-change-medium",
        {
            "id": drive,
            "filename": filename,
            "format": "raw",
            "read-only-mode": "read-only",
            "force": True,
        },
    )

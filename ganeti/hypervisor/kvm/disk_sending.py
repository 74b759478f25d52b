"""Disks of a running guest that are sent to the node it migrates to.

QEMU of the target, which waits for the guest, serves its disks by NBD. QEMU of the source copies
each disk there (:mod:`ganeti.hypervisor.kvm.disk_copies`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ganeti import errors
from ganeti.hypervisor.kvm import devices, disk_copies
from ganeti.hypervisor.kvm.devices import Drive
from ganeti.hypervisor.kvm.frozen import Disks, stop_serving
from ganeti.hypervisor.kvm.hotplug_parts import lend
from ganeti.hypervisor.kvm.migration_parts import try_ports
from ganeti.hypervisor.kvm.runtime import Runtime
from ganeti.model.enums import DiskMode
from ganeti.model.ids import DiskUuid

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

#: The key as an object of QEMU, at the end that sends.
TLS_OBJECT = "sending"
#: How names of nodes begin: of connections to the target, and of disks opened once more there.
_LINK, _WRITE = "link", "write"


# the target


def serve(qmp: Qmp, runtime: Runtime, uuids: Sequence[DiskUuid], address: str, tls: str) -> str:
    """Serve disks at a free port of the address, to who has the key; returns ``address:port``.

    Raises:
        HypervisorError: no port is free, or QEMU refuses.
    """
    close(qmp)
    disks = Disks(qmp, runtime)

    def listen(port: int) -> None:
        where = {"type": "inet", "data": {"host": address, "port": str(port)}}
        qmp.command("nbd-server-start", {"addr": where, "tls-creds": tls, "max-connections": 0})

    where = try_ports(listen, address, runtime.params.migration_port)
    drives = {drive.uuid: drive for drive in runtime.drives}
    for uuid in uuids:
        node = disks.node(uuid)
        if disks.nodes[uuid]["ro"]:
            node = _open_for_writing(qmp, runtime, drives[uuid])
        export = {
            "type": "nbd",
            "id": devices.device_id(_LINK, uuid),
            "node-name": node,
            "name": uuid,
            "writable": True,
        }
        qmp.command("block-export-add", export)
    return where


def _open_for_writing(qmp: Qmp, runtime: Runtime, drive: Drive) -> str:
    """Open once more a disk that the guest only reads; name of the node."""
    node = devices.device_id(_WRITE, drive.uuid)
    writable = msgspec.structs.replace(drive, mode=DiskMode.RW)
    arguments = {**devices.blockdev(writable, runtime.params), "node-name": node}
    if runtime.restricted:
        arguments["file"]["filename"] = lend(qmp, drive.path, write=True)
    qmp.command("blockdev-add", arguments)
    return node


def close(qmp: Qmp) -> None:
    """Serve no longer; from here on only the guest writes to its disks."""
    stop_serving(qmp)
    disk_copies.close_nodes(qmp, _WRITE)


# the source


def begin(
    qmp: Qmp, runtime: Runtime, uuids: Sequence[DiskUuid], where: str, bandwidth: int
) -> None:
    """Begin to copy the disks; ``bandwidth`` in MiB/s for all of them together, 0: no limit.

    Raises:
        HypervisorError: the target does not serve them, or has less room.
    """
    disks = Disks(qmp, runtime)
    host, _, port = where.rpartition(":")
    for uuid in uuids:
        name = devices.device_id(_LINK, uuid)
        link = {
            "driver": "nbd",
            "node-name": name,
            "server": {"type": "inet", "host": host.strip("[]"), "port": port},
            "export": uuid,
            "tls-creds": TLS_OBJECT,
            "discard": "unmap",
        }
        qmp.command("blockdev-add", link)
        disk_copies.begin(
            qmp,
            disks,
            uuid,
            name,
            speed=(bandwidth << 20) // len(uuids),
            mode="background",
        )


def finish(qmp: Qmp, runtime: Runtime) -> None:
    """Let the target have the last blocks of a guest that is paused; then send no longer.

    Raises:
        HypervisorError: the target does not have all of a disk.
    """
    disk_copies.finish(qmp, runtime)
    disk_copies.forget(qmp)
    disk_copies.close_nodes(qmp, _LINK)


def cancel(qmp: Qmp) -> None:
    """Send no longer, and let go of the target; idempotent.

    Raises:
        HypervisorError: a copy does not end.
    """
    for name in disk_copies.list_nodes(qmp, _LINK):
        with contextlib.suppress(errors.HypervisorError):
            # A target that does not answer would hold the copy up.
            qmp.command("yank", {"instances": [{"type": "block-node", "node-name": name}]})
    disk_copies.cancel(qmp)
    disk_copies.close_nodes(qmp, _LINK)

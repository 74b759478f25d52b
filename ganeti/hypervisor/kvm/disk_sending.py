"""Disks of a running guest that are sent to the node it migrates to.

QEMU of the target, which waits for the guest, serves its disks by NBD. QEMU of the source copies
each disk there by a job (``blockdev-mirror``), uses its own disk meanwhile, and copies again what
the guest writes. Everything is known to QEMU alone, by names that come from the uuids of the disks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import msgspec

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.kvm import devices
from ganeti.hypervisor.kvm.devices import Drive
from ganeti.hypervisor.kvm.frozen import Disks
from ganeti.hypervisor.kvm.hotplug_parts import close_disk, lend
from ganeti.hypervisor.kvm.migration_parts import try_ports
from ganeti.hypervisor.kvm.runtime import Runtime
from ganeti.model.enums import DiskMode
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import DiskProgress

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Events, Qmp

#: The key as an object of QEMU, at the end that sends.
TLS_OBJECT = "sending"
#: Seconds for the last blocks while the guest is paused, and for a job to end when told to.
_FINISH_TIMEOUT, _CANCEL_TIMEOUT = 20.0, 20.0
#: Bytes that are sent again when one of them changes; smaller holes are filled.
_GRANULARITY = 16 * 1024
_PREFIX, _LINK = "sent", "link"
_ENDED = "concluded"
#: The second while QEMU pauses the guest.
_READY = ("ready", "standby")


def _name(uuid: str) -> str:
    """Name of the job that copies a disk, and of the node that it copies to."""
    return devices.device_id(_PREFIX, uuid)


def _link(name: str) -> str:
    """Name of the node of the connection to the disk of the target."""
    return name.replace(_PREFIX, _LINK, 1)


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
            "id": _name(uuid),
            "node-name": node,
            "name": uuid,
            "writable": True,
        }
        qmp.command("block-export-add", export)
    return where


def _open_for_writing(qmp: Qmp, runtime: Runtime, drive: Drive) -> str:
    """Open once more a disk that the guest only reads; name of the node."""
    node = _name(drive.uuid)
    writable = msgspec.structs.replace(drive, mode=DiskMode.RW)
    arguments = {**devices.blockdev(writable, runtime.params), "node-name": node}
    if runtime.restricted:
        arguments["file"]["filename"] = lend(qmp, drive.path, write=True)
    qmp.command("blockdev-add", arguments)
    return node


def close(qmp: Qmp) -> None:
    """Serve no longer; from here on only the guest writes to its disks."""
    if qmp.command("query-block-exports"):
        qmp.command("nbd-server-stop")
        _forget_nodes(qmp)


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
        name, size = _name(uuid), disks.size(uuid)
        link = {
            "driver": "nbd",
            "node-name": _link(name),
            "server": {"type": "inet", "host": host.strip("[]"), "port": port},
            "export": uuid,
            "tls-creds": TLS_OBJECT,
            "discard": "unmap",
        }
        qmp.command("blockdev-add", link)
        room = _find_node(qmp, _link(name))["image"]["virtual-size"]
        if room < size:
            raise errors.HypervisorError(
                f"disk {uuid} has {size} bytes, but only {room} on the target"
            )
        part = {
            "driver": "raw",
            "node-name": name,
            "file": _link(name),
            # QEMU copies only to a target of the same size.
            "size": size,
            # zeros of the source are holes of the target
            "discard": "unmap",
            "detect-zeroes": "unmap",
        }
        qmp.command("blockdev-add", part)
        job = {
            "job-id": name,
            "device": disks.node(uuid),
            "target": name,
            "sync": "full",
            "granularity": _GRANULARITY,
            "speed": (bandwidth << 20) // len(uuids),
            # how it ended stays known until it was asked
            "auto-dismiss": False,
        }
        qmp.command("blockdev-mirror", job)


def _find_node(qmp: Qmp, name: str) -> JsonObject:
    nodes = qmp.command("query-named-block-nodes", {"flat": True})
    return next(node for node in nodes if node["node-name"] == name)


def _list_jobs(qmp: Qmp) -> list[JsonObject]:
    jobs = qmp.command("query-jobs")
    return [job for job in jobs if job["id"].startswith(f"{_PREFIX}-")]


def wait(qmp: Qmp, runtime: Runtime, seconds: float) -> list[DiskProgress]:
    """How far the disks are; waits so long until all are ready, or one has failed."""
    end = Deadline(seconds)
    with qmp.events("JOB_STATUS_CHANGE") as events:
        while True:
            found = _read_progress(qmp, runtime)
            settled = all(disk.ready for disk in found) or any(disk.error for disk in found)
            left = end.left
            if settled or left <= 0:
                return found
            events.wait_next(left)


def _read_progress(qmp: Qmp, runtime: Runtime) -> list[DiskProgress]:
    jobs = {job["id"]: job for job in _list_jobs(qmp)}
    return [_make_progress(uuid, jobs.get(_name(uuid))) for uuid in runtime.sent_disks]


def _make_progress(uuid: DiskUuid, job: JsonObject | None) -> DiskProgress:
    """What QEMU says of the job of a disk, or None. Pure."""
    if job is None:
        return DiskProgress(uuid=uuid, done=0, left=0, error="QEMU does not send it any more")
    done, status = job["current-progress"], job["status"]
    return DiskProgress(
        uuid=uuid,
        done=done,
        left=job["total-progress"] - done,
        ready=status in _READY,
        error=job.get("error", "QEMU has stopped to send it") if status == _ENDED else None,
    )


def find_failure(qmp: Qmp, runtime: Runtime) -> str | None:
    """Why a disk will not arrive, None when all do."""
    for disk in _read_progress(qmp, runtime):
        if disk.error is not None:
            return f"disk {disk.uuid} was not sent: {disk.error}"
    return None


def finish(qmp: Qmp, runtime: Runtime) -> None:
    """Let the target have the last blocks of a guest that is paused, flushed; then end the jobs.

    Raises:
        HypervisorError: the target does not have all of a disk.
    """
    for disk in _read_progress(qmp, runtime):
        if not disk.ready:
            _refuse(disk.uuid, disk.error or f"{disk.left} bytes are left")
    with qmp.events("JOB_STATUS_CHANGE") as events:
        for name in map(_name, runtime.sent_disks):
            # The guest waits now.
            qmp.command("block-job-set-speed", {"device": name, "speed": 0})
            # A job that is ready does not end by this before both sides are the same.
            qmp.command("block-job-cancel", {"device": name})
        _wait_ended(qmp, events, _FINISH_TIMEOUT)
    jobs = {job["id"]: job for job in _list_jobs(qmp)}
    for uuid in runtime.sent_disks:
        if (why := jobs[_name(uuid)].get("error")) is not None:
            _refuse(uuid, why)
    _forget(qmp)


def _refuse(uuid: str, why: str) -> NoReturn:
    raise errors.HypervisorError(f"disk {uuid} was not sent: {why}")


def _wait_ended(qmp: Qmp, events: Events, seconds: float) -> None:
    """Wait for the end of all jobs; HypervisorError when it takes longer."""
    end = Deadline(seconds)
    while any(job["status"] != _ENDED for job in _list_jobs(qmp)):
        if end.left <= 0:
            raise errors.HypervisorError(f"QEMU does not end the copies of disks in {seconds:g} s")
        events.wait_next(min(end.left, 1.0))


def cancel(qmp: Qmp) -> None:
    """Send no longer, and let go of the target; idempotent.

    Raises:
        HypervisorError: a job does not end.
    """
    with qmp.events("JOB_STATUS_CHANGE") as events:
        for job in _list_jobs(qmp):
            if job["status"] == _ENDED:
                continue
            with contextlib.suppress(errors.HypervisorError):
                # A target that does not answer would hold the job up.
                qmp.command(
                    "yank", {"instances": [{"type": "block-node", "node-name": _link(job["id"])}]}
                )
            with contextlib.suppress(errors.HypervisorError):
                # It may have ended meanwhile.
                qmp.command("job-cancel", {"id": job["id"]})
        _wait_ended(qmp, events, _CANCEL_TIMEOUT)
    _forget(qmp)


def _forget(qmp: Qmp) -> None:
    """Remove what jobs that have ended left."""
    for job in _list_jobs(qmp):
        qmp.command("job-dismiss", {"id": job["id"]})
    _forget_nodes(qmp)


def _forget_nodes(qmp: Qmp) -> None:
    names = [n["node-name"] for n in qmp.command("query-named-block-nodes", {"flat": True})]
    for begin in (f"{_PREFIX}-", f"{_LINK}-"):  # what stands on the other first
        for name in names:
            if name.startswith(begin):
                close_disk(qmp, name)

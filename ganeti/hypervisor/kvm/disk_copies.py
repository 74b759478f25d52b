"""Disks of a running guest that QEMU copies while the guest writes to them.

A job of QEMU (``blockdev-mirror``) copies each disk and what the guest writes meanwhile; the guest
uses its own disk until the end. Everything is known to QEMU alone, by names that come from the
uuids of the disks, but for the list of these (``Runtime.copied_disks``).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal, NoReturn

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.kvm import devices
from ganeti.hypervisor.kvm.frozen import PAST_QEMU, Disks
from ganeti.hypervisor.kvm.hotplug_parts import close_disk
from ganeti.hypervisor.kvm.runtime import Runtime
from ganeti.model.ids import DiskUuid
from ganeti.rpc.objects import DiskProgress

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Events, Qmp

#: Seconds for the last blocks while the guest is paused, and for a job to end when told to.
_FINISH_TIMEOUT, _CANCEL_TIMEOUT = 20.0, 20.0
#: Bytes that are copied again when one of them changes; smaller holes are filled.
_GRANULARITY = 16 * 1024
#: How names begin: of jobs, and of the nodes that they write to.
_COPY = "sent"
_ENDED = "concluded"
#: The second while QEMU pauses the guest.
_READY = ("ready", "standby")

#: When the guest hears that it has written: when its own disk has it, or when both have.
Mode = Literal["background", "write-blocking"]


def copy_name(uuid: str) -> str:
    """Name of the job that copies a disk, and of the node that it copies to."""
    return devices.device_id(_COPY, uuid)


def check(runtime: Runtime) -> None:
    """Refuse (HypervisorError) a guest that writes to its disks without QEMU."""
    if runtime.params.disk_type in PAST_QEMU:
        raise errors.HypervisorError(
            f"with disk_type={runtime.params.disk_type} a guest writes past QEMU, so its disks"
            f" cannot be copied while {runtime.instance.name} runs; stop it first"
        )


def begin(qmp: Qmp, disks: Disks, uuid: DiskUuid, target: str, *, speed: int, mode: Mode) -> None:
    """Begin to copy a disk to a node of QEMU; ``speed`` in bytes/s, 0: no limit.

    Raises:
        HypervisorError: there is less room.
    """
    name, size = copy_name(uuid), disks.size(uuid)
    room = _find_node(qmp, target)["image"]["virtual-size"]
    if room < size:
        raise errors.HypervisorError(f"disk {uuid} has {size} bytes, but only {room} on the target")
    part = {
        "driver": "raw",
        "node-name": name,
        "file": target,
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
        "copy-mode": mode,
        "granularity": _GRANULARITY,
        "speed": speed,
        # how it ended stays known until it was asked
        "auto-dismiss": False,
    }
    qmp.command("blockdev-mirror", job)


def _find_node(qmp: Qmp, name: str) -> JsonObject:
    nodes = qmp.command("query-named-block-nodes", {"flat": True})
    return next(node for node in nodes if node["node-name"] == name)


def _list_jobs(qmp: Qmp) -> list[JsonObject]:
    jobs = qmp.command("query-jobs")
    return [job for job in jobs if job["id"].startswith(f"{_COPY}-")]


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
    return [_make_progress(uuid, jobs.get(copy_name(uuid))) for uuid in runtime.copied_disks]


def _make_progress(uuid: DiskUuid, job: JsonObject | None) -> DiskProgress:
    """Make the progress of a disk from what QEMU says of its job; None: it has none. Pure."""
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
    """Copy the last blocks of a guest that is paused, flushed; then end the jobs.

    Raises:
        HypervisorError: the target does not have all of a disk.
    """
    for disk in _read_progress(qmp, runtime):
        if not disk.ready:
            _refuse(disk.uuid, disk.error or f"{disk.left} bytes are left")
    with qmp.events("JOB_STATUS_CHANGE") as events:
        for name in map(copy_name, runtime.copied_disks):
            # The guest waits now.
            qmp.command("block-job-set-speed", {"device": name, "speed": 0})
            # A job that is ready does not end by this before both sides are the same.
            qmp.command("block-job-cancel", {"device": name})
        _wait_ended(qmp, events, _FINISH_TIMEOUT)
    jobs = {job["id"]: job for job in _list_jobs(qmp)}
    for uuid in runtime.copied_disks:
        if (why := jobs[copy_name(uuid)].get("error")) is not None:
            _refuse(uuid, why)


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
    """End all copies as they are; idempotent.

    Raises:
        HypervisorError: a job does not end.
    """
    with qmp.events("JOB_STATUS_CHANGE") as events:
        for job in _list_jobs(qmp):
            if job["status"] == _ENDED:
                continue
            with contextlib.suppress(errors.HypervisorError):
                # It may have ended meanwhile.
                qmp.command("job-cancel", {"id": job["id"]})
        _wait_ended(qmp, events, _CANCEL_TIMEOUT)
    forget(qmp)


def forget(qmp: Qmp) -> None:
    """Remove what jobs that have ended left."""
    for job in _list_jobs(qmp):
        qmp.command("job-dismiss", {"id": job["id"]})
    close_nodes(qmp, _COPY)


def close_nodes(qmp: Qmp, begin: str) -> None:
    """Close the nodes whose names begin so."""
    for name in list_nodes(qmp, begin):
        close_disk(qmp, name)


def list_nodes(qmp: Qmp, begin: str) -> list[str]:
    nodes = qmp.command("query-named-block-nodes", {"flat": True})
    return [node["node-name"] for node in nodes if node["node-name"].startswith(f"{begin}-")]

"""Disks of a running guest whose place other disks of its node take.

QEMU copies each disk to its successor (:mod:`ganeti.hypervisor.kvm.disk_copies`). Once a copy is
complete, a write of the guest ends when both have it, so either is as good as the other. Then the
guest is paused while QEMU opens the successor below the node of the disk, which keeps its name and
its bitmaps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ganeti import errors
from ganeti.hypervisor.kvm import devices, disk_copies, hold
from ganeti.hypervisor.kvm.devices import Drive
from ganeti.hypervisor.kvm.disk_copies import copy_name
from ganeti.hypervisor.kvm.frozen import Disks, read_files
from ganeti.hypervisor.kvm.hotplug_parts import close_disk, lend
from ganeti.hypervisor.kvm.runtime import Runtime, Store
from ganeti.model.ids import DiskUuid

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

#: Begins of the names of what disks are opened by; a disk has one of them since it was converted.
_OPENED = ("first", "second")


class Conversion:
    """Conversions of disks of running guests; runtime files (``successors``) and QEMU know them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, name: str, drives: Sequence[Drive], bandwidth: int) -> None:
        """Begin to copy disks to their successors, which have the same uuids.

        Raises:
            HypervisorError: the guest does not run, or its disks cannot be copied; nothing is.
        """
        found = self._store.find(name)
        if found is None or not self._store.runs(found):
            raise errors.HypervisorError(f"instance {name} does not run on this node")
        runtime = found.runtime
        _check(runtime, drives)
        with self._store.control(name) as qmp:
            self._cancel(qmp, runtime)
            disks = Disks(qmp, runtime)
            runtime = self._note(runtime, successors=tuple(drives))
            speed = (bandwidth << 20) // len(drives)
            try:
                for drive in drives:
                    opened = _open(qmp, runtime, drive)
                    disk_copies.begin(
                        qmp, disks, drive.uuid, opened, speed=speed, mode="write-blocking"
                    )
            except errors.HypervisorError:
                self._cancel(qmp, runtime)
                raise

    def settle(self, name: str, paths: Mapping[DiskUuid, str]) -> None:
        """End all copies, so that the guest goes on with the disks that have these paths.

        No error when there are no copies, or no guest any more.

        Raises:
            HypervisorError: it cannot, because a copy is not complete.
        """
        found = self._store.find(name)
        if found is None or not self._store.runs(found) or not found.runtime.successors:
            return
        runtime = found.runtime
        wanted = all(paths.get(drive.uuid) == drive.path for drive in runtime.successors)
        with self._store.control(name) as qmp:
            switched = _is_switched(qmp, runtime)
            if wanted:
                if not switched:
                    _switch(qmp, runtime)
                self._end(qmp, runtime)
            elif switched:
                raise errors.HypervisorError(f"instance {name} uses its new disks already")
            else:
                self._cancel(qmp, runtime)

    def list_open(self) -> list[str]:
        """Names of guests whose disks are copied and not settled."""
        guests = ((name, self._store.find(name)) for name in self._store.names())
        return [
            name
            for name, found in guests
            if found and found.runtime.successors and self._store.runs(found)
        ]

    def _cancel(self, qmp: Qmp, runtime: Runtime) -> None:
        disk_copies.cancel(qmp)
        _close_unused(qmp, runtime)
        self._note(runtime, successors=())

    def _end(self, qmp: Qmp, runtime: Runtime) -> None:
        """Note what the guest uses now, and let QEMU forget the rest."""
        new = {drive.uuid: drive for drive in runtime.successors}
        drives = tuple(new.get(drive.uuid, drive) for drive in runtime.drives)
        runtime = self._note(runtime, drives=drives)
        disk_copies.forget(qmp)
        _close_unused(qmp, runtime)
        self._note(runtime, successors=())

    def _note(self, runtime: Runtime, **changes: object) -> Runtime:
        noted = msgspec.structs.replace(runtime, **changes)
        self._store.save(noted)
        return noted


def _check(runtime: Runtime, drives: Sequence[Drive]) -> None:
    """Refuse (HypervisorError) disks that QEMU does not open as a file or device of the node."""
    name = runtime.instance.name
    disk_copies.check(runtime)
    if runtime.move != "none":
        raise errors.HypervisorError(f"instance {name} is being moved to another node")
    if runtime.software:
        raise errors.HypervisorError(
            f"instance {name} was started by {runtime.software}, which gave its disks other names;"
            f" restart it first: gnt-instance reboot -t hard {name}"
        )
    uuids = {drive.uuid for drive in drives}
    for drive in (*drives, *(drive for drive in runtime.drives if drive.uuid in uuids)):
        if drive.uri is not None:
            raise errors.HypervisorError(
                f"disk {drive.uuid} of {name} is opened by its address (access=userspace), so it"
                " cannot be converted while the guest runs; stop it first"
            )


def _open(qmp: Qmp, runtime: Runtime, drive: Drive) -> str:
    """Open a successor for writing; name of the node."""
    current = read_files(qmp).get(_node(drive))
    name = next(each for each in _list_names(drive) if each != current)
    whole = devices.blockdev(drive, runtime.params)
    arguments = {**whole["file"], "node-name": name, "cache": whole["cache"], "discard": "unmap"}
    if runtime.restricted:
        arguments["filename"] = lend(qmp, drive.path, write=True)
    qmp.command("blockdev-add", arguments)
    return name


def _node(drive: Drive) -> str:
    return devices.device_id("disk", drive.uuid)


def _list_names(drive: Drive) -> list[str]:
    return [devices.device_id(begin, drive.uuid) for begin in _OPENED]


def _is_switched(qmp: Qmp, runtime: Runtime) -> bool:
    """Whether the guest writes to the successors. QEMU opens all of them at once."""
    if set(runtime.successors) <= set(runtime.drives):
        return True
    below = read_files(qmp)
    drive = runtime.successors[0]
    copy = below.get(copy_name(drive.uuid))
    return copy is not None and copy == below.get(_node(drive))


def _switch(qmp: Qmp, runtime: Runtime) -> None:
    below = read_files(qmp)
    with _stand_still(qmp):
        disk_copies.finish(qmp, runtime)
        options = [
            {
                **devices.blockdev(drive, runtime.params),
                "file": below[copy_name(drive.uuid)],
            }
            for drive in runtime.successors
        ]
        qmp.command("blockdev-reopen", {"options": options})


@contextlib.contextmanager
def _stand_still(qmp: Qmp) -> Iterator[None]:
    paused = hold.pause(qmp)
    try:
        yield
    finally:
        if paused:
            qmp.command("cont")


def _close_unused(qmp: Qmp, runtime: Runtime) -> None:
    """Close what no disk lies on any more."""
    below = read_files(qmp)
    for drive in runtime.drives:
        for name in _list_names(drive):
            if name != below.get(_node(drive)):
                close_disk(qmp, name)

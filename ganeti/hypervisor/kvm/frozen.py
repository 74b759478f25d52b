"""All disks of a running guest as they are at one moment, while the guest goes on.

Before the guest overwrites something, QEMU copies what was there into a temporary qcow2 file on a
disk of the node (*fleecing*), so whoever reads the moment never slows the guest. The moment is read
by NBD. A bitmap of each disk notes what is written from then on; the copy of an older one tells
what was written before. Their order in QEMU's documents: docs/interop/bitmaps.rst, and
``blockdev-backup`` in the QMP reference.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ganeti import errors
from ganeti.base import files, process
from ganeti.base.clock import Deadline
from ganeti.hypervisor.interface import FrozenDisk
from ganeti.hypervisor.kvm import devices
from ganeti.hypervisor.kvm.hotplug_parts import close_disk, lend
from ganeti.hypervisor.kvm.runtime import Runtime
from ganeti.net import nbd

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

log = logging.getLogger(__name__)

#: Bytes that one bit of a bitmap stands for.
GRANULARITY = 64 * 1024
#: Begins of names: jobs and nodes of a moment, and the copies of bitmaps that are exported.
_MOMENT, _COPY = "frozen-", "until-"
_SOCKET = "nbd.sock"
#: Seconds for a job to end.
_END = 60.0


class Disks:
    """The disks of a running guest and their bitmaps, as QEMU sees them."""

    def __init__(self, qmp: Qmp, runtime: Runtime) -> None:
        self.uuids = [str(drive.uuid) for drive in runtime.drives]
        self._qmp = qmp
        named = {
            each["node-name"]: each
            for each in qmp.command("query-named-block-nodes", {"flat": True})
        }
        by_device = {
            each.get("device"): (each.get("inserted") or {}).get("node-name")
            for each in qmp.command("query-block")
        }
        #: uuid -> what QEMU says of its node
        self.nodes: dict[str, Mapping[str, Any]] = {}
        for uuid in self.uuids:
            name = devices.device_id("disk", uuid)
            found = named.get(name) or named.get(str(by_device.get(name)))
            if found is None:
                raise errors.HypervisorError(f"QEMU does not have disk {uuid} any more")
            self.nodes[uuid] = found

    def node(self, uuid: str) -> str:
        return str(self.nodes[uuid]["node-name"])

    def size(self, uuid: str) -> int:
        """Bytes that the guest sees."""
        return int(self.nodes[uuid]["image"]["virtual-size"])

    def bitmaps(self, uuid: str) -> list[Mapping[str, Any]]:
        return list(self.nodes[uuid].get("dirty-bitmaps", ()))

    def has_bitmap(self, name: str) -> bool:
        """Whether each disk has a bitmap of that name which has noted all writes since it began."""
        return bool(self.uuids) and all(
            any(
                each["name"] == name and each["recording"] and not each.get("inconsistent")
                for each in self.bitmaps(uuid)
            )
            for uuid in self.uuids
        )

    def drop_bitmaps(self, begin: str, *, keep: Sequence[str]) -> None:
        """Remove the bitmaps whose names begin so, but for some."""
        for uuid in self.uuids:
            for bitmap in self.bitmaps(uuid):
                name = bitmap["name"]
                if name.startswith(begin) and name not in keep:
                    arguments = {"node": self.node(uuid), "name": name}
                    self._qmp.command("block-dirty-bitmap-remove", arguments)


def begin(
    qmp: Qmp, runtime: Runtime, work: Path, prefix: str, since: str | None, until: str
) -> list[FrozenDisk]:
    """Freeze the moment; ``since`` is the bitmap of the last one, ``until`` the one that begins.

    ``prefix`` is how names of bitmaps of this kind begin; all but these two are removed. Nothing is
    left when it fails.

    Raises:
        HypervisorError: QEMU refused.
    """
    end(qmp, runtime, work)
    disks = Disks(qmp, runtime)
    disks.drop_bitmaps(prefix, keep=[name for name in (since,) if name])
    known = since is not None and disks.has_bitmap(since)
    if since is not None and not known:
        disks.drop_bitmaps(prefix, keep=())
    try:
        for uuid in disks.uuids:
            _add_target(qmp, runtime, disks, uuid, work)
        actions = [
            action
            for uuid in disks.uuids
            for action in _actions(disks.node(uuid), uuid, since if known else None, until)
        ]
        qmp.command("transaction", {"actions": actions})
        _serve(qmp, disks, work, since if known else None)
    except BaseException:  # an interrupt too: the guest keeps nothing of it
        with contextlib.suppress(errors.HypervisorError):
            end(qmp, runtime, work, drop=until)
        raise
    copy = f"{_COPY}{since}" if known else None
    return [FrozenDisk(uuid, disks.size(uuid), work / _SOCKET, uuid, copy) for uuid in disks.uuids]


def _target(uuid: str) -> str:
    return f"{_MOMENT}{devices.device_id('', uuid)[-22:]}"


def _add_target(qmp: Qmp, runtime: Runtime, disks: Disks, uuid: str, work: Path) -> None:
    path = work / f"{uuid}.qcow2"
    size = str(disks.size(uuid))
    try:
        process.run_checked(
            ["qemu-img", "create", "-q", "-f", "qcow2", str(path), size], timeout=60
        )
        os.chmod(path, 0o600)
    except errors.CommandError as err:
        raise errors.HypervisorError(f"cannot make {path}: {errors.text(err)}") from err
    restricted = bool(runtime.user) or runtime.params.use_chroot
    filename = lend(qmp, str(path), write=True) if restricted else str(path)
    qmp.command(
        "blockdev-add",
        {
            "driver": "qcow2",
            "node-name": _target(uuid),
            "file": {"driver": "file", "filename": filename},
            "backing": disks.node(uuid),
        },
    )


def _actions(node: str, uuid: str, since: str | None, until: str) -> list[dict[str, Any]]:
    """What happens to one disk in the moment. Pure."""
    found: list[tuple[str, dict[str, Any]]] = [
        (
            "blockdev-backup",
            {"device": node, "target": _target(uuid), "sync": "none", "job-id": _target(uuid)},
        ),
        ("block-dirty-bitmap-add", {"node": node, "name": until, "granularity": GRANULARITY}),
    ]
    if since is not None:
        copy = f"{_COPY}{since}"
        found += [
            (
                "block-dirty-bitmap-add",
                {"node": node, "name": copy, "granularity": GRANULARITY, "disabled": True},
            ),
            ("block-dirty-bitmap-merge", {"node": node, "target": copy, "bitmaps": [since]}),
        ]
    return [{"type": kind, "data": data} for kind, data in found]


def _serve(qmp: Qmp, disks: Disks, work: Path, since: str | None) -> None:
    listener = nbd.listen(work / _SOCKET)
    try:
        qmp.send_descriptor(listener.fileno(), _SOCKET)
    finally:
        listener.close()
    qmp.command("nbd-server-start", {"addr": {"type": "fd", "data": {"str": _SOCKET}}})
    bitmaps = {} if since is None else {"bitmaps": [f"{_COPY}{since}"]}
    for uuid in disks.uuids:
        qmp.command(
            "block-export-add",
            {
                "type": "nbd",
                "id": _target(uuid),
                "node-name": _target(uuid),
                "name": uuid,
                "writable": False,
                **bitmaps,
            },
        )


def end(qmp: Qmp, runtime: Runtime, work: Path, *, drop: str | None = None) -> None:
    """End a moment, if there is one, and remove its files; of bitmaps ``drop`` goes, too.

    Raises:
        HypervisorError: QEMU refused.
    """
    if any(each["id"].startswith(_MOMENT) for each in qmp.command("query-block-exports")):
        qmp.command("nbd-server-stop")
    with qmp.events("JOB_STATUS_CHANGE") as events:
        for job in qmp.command("query-jobs"):
            if job["id"].startswith(_MOMENT):
                _cancel(qmp, job["id"], events)
    for node in qmp.command("query-named-block-nodes", {"flat": True}):
        if node["node-name"].startswith(_MOMENT):
            close_disk(qmp, node["node-name"])
    disks = Disks(qmp, runtime)
    disks.drop_bitmaps(_COPY, keep=())
    if drop is not None:
        disks.drop_bitmaps(drop, keep=())
    remove_files(work)


def remove_files(work: Path) -> None:
    """Remove the files of a moment; the guest that had them has ended, or has let go of them."""
    files.remove(work / _SOCKET)
    for path in work.glob("*.qcow2"):
        files.remove(path)


def _cancel(qmp: Qmp, job: str, events: Any) -> None:
    """Cancel a job and wait until it is gone."""
    with contextlib.suppress(errors.HypervisorError):
        qmp.command("job-cancel", {"id": job})
    left = Deadline(_END)
    while any(each["id"] == job for each in qmp.command("query-jobs")):
        if left.left <= 0:
            raise errors.HypervisorError(f"job {job} of QEMU does not end within {_END:g} s")
        events.wait_next(min(left.left, 1.0))


def forget_bitmaps(qmp: Qmp, runtime: Runtime, prefix: str, *, keep: str) -> None:
    """Remove all bitmaps of this kind but one, which the next backup begins at."""
    Disks(qmp, runtime).drop_bitmaps(prefix, keep=[keep])

"""All disks of a running guest as they are at one moment, while the guest continues.

Before the guest overwrites something, QEMU copies what was there into a temporary qcow2 file on a
disk of the node (*fleecing*), so reading the frozen state never slows the guest. When that file
cannot take it, the moment is broken and cannot be read any more; the guest notices nothing. The
moment is read by NBD. A bitmap of each disk notes what is written from then on; the copy of an
older one tells what was written before. In QEMU's documents: docs/interop/bitmaps.rst, and
``copy-before-write`` and ``snapshot-access`` in the QMP reference (since 7.1).

No transaction of QEMU can put such filters before all disks at once, so the guest is paused for
some milliseconds.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ganeti import errors
from ganeti.base import files, process
from ganeti.hypervisor.interface import FrozenDisk, Moment
from ganeti.hypervisor.kvm import devices, hold
from ganeti.hypervisor.kvm.hotplug_parts import close_disk, lend
from ganeti.hypervisor.kvm.runtime import Guest, Runtime, Store
from ganeti.model.enums import Consistency
from ganeti.model.ids import DiskUuid
from ganeti.net import nbd

if TYPE_CHECKING:
    from ganeti.hypervisor.kvm.qmp import Qmp

#: Bytes that one bit of a bitmap stands for.
GRANULARITY = 64 * 1024
#: Begins of names: nodes and exports of a moment, and the copies of bitmaps that are exported.
_MOMENT, _COPY = "frozen-", "until-"
#: Nodes of one disk: what is read, the filter below the guest's device, and what it copies into.
_SHOWN, _FILTER, _KEPT = "frozen-s", "frozen-f", "frozen-k"
_SOCKET = "nbd.sock"
_NO_SERVER = "NBD server not running"
#: With these a guest talks to the device of the node itself.
PAST_QEMU = ("scsi-block", "scsi-generic")
#: File in the working directory while the guest is paused: a daemon that is killed lets it go.
_HELD = "held"


class Disks:
    """The disks of a running guest and their bitmaps, as QEMU sees them."""

    def __init__(self, qmp: Qmp, runtime: Runtime) -> None:
        self.uuids = [DiskUuid(drive.uuid) for drive in runtime.drives]
        self._qmp = qmp
        named = {
            each["node-name"]: each
            for each in qmp.command("query-named-block-nodes", {"flat": True})
        }
        blocks = qmp.command("query-block")
        by_device = {
            each.get("device"): (each.get("inserted") or {}).get("node-name") for each in blocks
        }
        #: uuid -> what QEMU says of its node
        self.nodes: dict[DiskUuid, Mapping[str, Any]] = {}
        #: name of a node -> path of the device that has it
        self.devices = dict(_find_devices(blocks))
        for uuid in self.uuids:
            name = devices.device_id("disk", uuid)
            found = named.get(name) or named.get(str(by_device.get(name)))
            if found is None:
                raise errors.HypervisorError(f"QEMU does not have disk {uuid} any more")
            self.nodes[uuid] = found

    def node(self, uuid: DiskUuid) -> str:
        return str(self.nodes[uuid]["node-name"])

    def device(self, uuid: DiskUuid) -> str:
        """Path of the guest's device; HypervisorError when the guest does not have it."""
        found = self.devices.get(self.node(uuid))
        if found is None:
            raise errors.HypervisorError(f"no device of the guest has disk {uuid}")
        return found

    def size(self, uuid: DiskUuid) -> int:
        """Bytes that the guest sees."""
        return int(self.nodes[uuid]["image"]["virtual-size"])

    def bitmaps(self, uuid: DiskUuid) -> list[Mapping[str, Any]]:
        """Those with a name; filters and jobs of QEMU have others."""
        found = self.nodes[uuid].get("dirty-bitmaps", ())
        return [each for each in found if each.get("name")]

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


def _find_devices(blocks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Names of nodes and the paths of the devices above them, by ``query-block``. Pure."""
    for each in blocks:
        device, node = each.get("qdev"), (each.get("inserted") or {}).get("node-name")
        if device and node:
            yield node, device if device.startswith("/") else f"/machine/peripheral/{device}"


def begin(
    store: Store, guest: Guest, work: Path, prefix: str, since: str | None, until: str
) -> Moment:
    """Freeze the moment; ``since`` is the bitmap of the last one, ``until`` the one that begins.

    ``prefix`` is how names of bitmaps of this kind begin; all but these two are removed. Nothing is
    left when it fails. Blocks as long as the agent of the guest takes, 20 s at most.

    Raises:
        HypervisorError: QEMU refused.
    """
    runtime = guest.runtime
    if runtime.params.disk_type in PAST_QEMU:
        raise errors.HypervisorError(
            f"with disk_type={runtime.params.disk_type} a guest writes past QEMU, so its disks"
            " cannot be frozen; stop it first"
        )
    with store.control(runtime.instance.name) as qmp:
        end(qmp, runtime, work)
        disks = Disks(qmp, runtime)
        known = since if since is not None and disks.has_bitmap(since) else None
        disks.drop_bitmaps(prefix, keep=() if known is None else (known,))
        try:
            for uuid in disks.uuids:
                _add_target(qmp, runtime, disks, uuid, work)
            with _stand_still(qmp, store, guest, work) as consistency:
                _put_filters(qmp, disks, known, until)
            _serve(qmp, disks, work, known)
        except BaseException:  # an interrupt too: the guest keeps nothing of it
            with contextlib.suppress(errors.HypervisorError):
                end(qmp, runtime, work, drop=until)
            raise
    copy = f"{_COPY}{known}" if known is not None else None
    shown = [FrozenDisk(uuid, disks.size(uuid), work / _SOCKET, uuid, copy) for uuid in disks.uuids]
    return Moment(shown, consistency)


def _name(begin: str, uuid: DiskUuid) -> str:
    """Name of a node; QEMU takes 31 characters."""
    return f"{begin}{devices.device_id('', uuid)[-21:]}"


def _add_target(qmp: Qmp, runtime: Runtime, disks: Disks, uuid: DiskUuid, work: Path) -> None:
    path = work / f"{uuid}.qcow2"
    size = str(disks.size(uuid))
    try:
        process.run_checked(
            ["qemu-img", "create", "-q", "-f", "qcow2", str(path), size], timeout=60
        )
        os.chmod(path, 0o600)
    except errors.CommandError as err:
        raise errors.HypervisorError(f"cannot make {path}: {errors.text(err)}") from err
    filename = lend(qmp, str(path), write=True) if runtime.restricted else str(path)
    qmp.command(
        "blockdev-add",
        {
            "driver": "qcow2",
            "node-name": _name(_KEPT, uuid),
            "file": {"driver": "file", "filename": filename},
        },
    )
    qmp.command(
        "blockdev-add",
        {
            "driver": "copy-before-write",
            "node-name": _name(_FILTER, uuid),
            "read-only": bool(disks.nodes[uuid].get("ro")),
            "file": disks.node(uuid),
            "target": _name(_KEPT, uuid),
            "on-cbw-error": "break-snapshot",
        },
    )


@contextlib.contextmanager
def _stand_still(qmp: Qmp, store: Store, guest: Guest, work: Path) -> Iterator[Consistency]:
    """The guest is paused in the context, with its file systems frozen if it has an agent."""
    (work / _HELD).touch()
    consistency = hold.freeze(store, guest)
    try:
        paused = hold.pause(qmp)
        try:
            yield consistency
        finally:
            if paused:
                qmp.command("cont")
    finally:
        if consistency is Consistency.FROZEN:
            hold.thaw(store, guest)
        files.remove(work / _HELD)


def release(store: Store, guest: Guest, work: Path) -> None:
    """Continue a guest that is paused since a daemon was killed; HypervisorError."""
    if (work / _HELD).exists():
        hold.release(store, guest)
        files.remove(work / _HELD)


def _put_filters(qmp: Qmp, disks: Disks, since: str | None, until: str) -> None:
    """Insert the filters and make the bitmaps of all disks at once, while the guest is paused."""
    for uuid in disks.uuids:
        _set_node(qmp, disks.device(uuid), _name(_FILTER, uuid))
    actions = [
        {"type": kind, "data": data}
        for uuid in disks.uuids
        for kind, data in _list_actions(disks.node(uuid), since, until)
    ]
    qmp.command("transaction", {"actions": actions})


def _set_node(qmp: Qmp, device: str, node: str) -> None:
    qmp.command("qom-set", {"path": device, "property": "drive", "value": node})


def _list_actions(
    node: str, since: str | None, until: str
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the actions of the transaction on the bitmaps of one disk. Pure."""
    add = {"node": node, "granularity": GRANULARITY}
    yield "block-dirty-bitmap-add", {**add, "name": until}
    if since is not None:
        copy = f"{_COPY}{since}"
        yield "block-dirty-bitmap-add", {**add, "name": copy, "disabled": True}
        yield "block-dirty-bitmap-merge", {"node": node, "target": copy, "bitmaps": [since]}


def _serve(qmp: Qmp, disks: Disks, work: Path, since: str | None) -> None:
    listener = nbd.listen(work / _SOCKET)
    try:
        qmp.send_descriptor(listener.fileno(), _SOCKET)
    finally:
        listener.close()
    qmp.command("nbd-server-start", {"addr": {"type": "fd", "data": {"str": _SOCKET}}})
    for uuid in disks.uuids:
        qmp.command(
            "blockdev-add",
            {
                "driver": "snapshot-access",
                "node-name": _name(_SHOWN, uuid),
                "file": _name(_FILTER, uuid),
            },
        )
        copy = {"node": disks.node(uuid), "name": f"{_COPY}{since}"}
        qmp.command(
            "block-export-add",
            {
                "type": "nbd",
                "id": _name(_SHOWN, uuid),
                "node-name": _name(_SHOWN, uuid),
                "name": uuid,
                "writable": False,
                **({} if since is None else {"bitmaps": [copy]}),
            },
        )


def stop_serving(qmp: Qmp) -> None:
    """Stop the NBD server with all its exports. Idempotent.

    A daemon that was killed may have left a server without exports, which no command of QEMU shows.

    Raises:
        HypervisorError: QEMU refused.
    """
    try:
        qmp.command("nbd-server-stop")
    except errors.HypervisorError as err:
        if _NO_SERVER not in str(err):
            raise


def end(qmp: Qmp, runtime: Runtime, work: Path, *, drop: str | None = None) -> None:
    """End a moment, if there is one, and remove its files; of bitmaps ``drop`` goes, too.

    Raises:
        HypervisorError: QEMU refused.
    """
    exports = qmp.command("query-block-exports")
    if not exports or any(each["id"].startswith(_MOMENT) for each in exports):
        stop_serving(qmp)
    _close(qmp, _SHOWN)
    below = read_files(qmp)
    for node, device in _find_devices(qmp.command("query-block")):
        if node.startswith(_FILTER):
            _set_node(qmp, device, below[node])
    _close(qmp, _FILTER)
    _close(qmp, _KEPT)
    disks = Disks(qmp, runtime)
    disks.drop_bitmaps(_COPY, keep=())
    if drop is not None:
        disks.drop_bitmaps(drop, keep=())
    remove_files(work)


def _close(qmp: Qmp, begin: str) -> None:
    for node in qmp.command("query-named-block-nodes", {"flat": True}):
        if node["node-name"].startswith(begin):
            close_disk(qmp, node["node-name"])


def read_files(qmp: Qmp) -> dict[str, str]:
    """Nodes of QEMU, and what each has below it as its file; only this command tells it."""
    graph = qmp.command("x-debug-query-block-graph")
    names = {each["id"]: str(each["name"]) for each in graph["nodes"]}
    return {
        names[edge["parent"]]: names[edge["child"]]
        for edge in graph["edges"]
        if edge["name"] == "file" and edge["parent"] in names and edge["child"] in names
    }


def remove_files(work: Path) -> None:
    """Remove the files of a moment; the guest that had them has ended, or has let go of them."""
    files.remove(work / _SOCKET)
    for path in work.glob("*.qcow2"):
        files.remove(path)


def forget_bitmaps(qmp: Qmp, runtime: Runtime, prefix: str, *, keep: str) -> None:
    """Remove all bitmaps of this kind but one, which the next backup begins at."""
    Disks(qmp, runtime).drop_bitmaps(prefix, keep=[keep])

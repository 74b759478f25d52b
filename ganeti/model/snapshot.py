"""Snapshots of an instance: the content of its disks at one moment, kept beside the disks."""

from __future__ import annotations

from typing import Annotated

from ganeti.base.typed import doc
from ganeti.model.base import ConfigObject
from ganeti.model.enums import Consistency
from ganeti.model.ids import DiskUuid, NodeUuid, SnapshotUuid


class FrozenDisk(ConfigObject, frozen=True, kw_only=True):
    """A copy of one disk, in the storage of that disk and with its template."""

    disk: Annotated[DiskUuid, doc("UUID of the disk")]
    volume: Annotated[
        str, doc("Name of the copy: of a volume in the disk's group, of a file in its directory")
    ]
    size: Annotated[int, doc("Size of the disk in MiB when the copy was made")]
    nodes: Annotated[
        tuple[NodeUuid, ...],
        doc("UUIDs of the nodes that have the copy; empty when all can reach it"),
    ] = ()


class Snapshot(ConfigObject, frozen=True, kw_only=True):
    """All disks of an instance at the same moment."""

    uuid: Annotated[SnapshotUuid, doc("UUID of the snapshot")]
    name: Annotated[str, doc("Name that no other snapshot of the instance has")]
    created: Annotated[float, doc("When it was made, in seconds since 1970")]
    consistency: Annotated[
        Consistency,
        doc("What the copies hold: clean (stopped), frozen (by the guest agent), crash"),
    ] = Consistency.CLEAN
    description: Annotated[str, doc("What it was made for")] = ""
    disks: Annotated[
        tuple[FrozenDisk, ...], doc("Copies of the disks, in the order of the instance")
    ] = ()
    creating: Annotated[int | None, doc("Job that makes it, or was interrupted while it did")] = (
        None
    )
    reverting: Annotated[
        int | None, doc("Job that copies it back, or was interrupted while it did")
    ] = None

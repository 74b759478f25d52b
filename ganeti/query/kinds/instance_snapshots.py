"""Snapshots of instances."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.filters.answer import FieldKind
from ganeti.model.instance import Instance
from ganeti.model.snapshot import Snapshot
from ganeti.query.field import Kind


def add_fields(kind: Kind[Instance]) -> None:
    """Give a kind the fields of snapshots."""
    kind.value("snapshot.count", "Snapshots", FieldKind.NUMBER, "Number of snapshots")(
        lambda instance: len(instance.snapshots)
    )
    kind.value("snapshot.names", "Snapshot_names", FieldKind.OTHER, "Name of each snapshot")(
        lambda instance: [each.name for each in instance.snapshots]
    )
    kind.value("snapshots", "SnapshotDetails", FieldKind.OTHER, "Snapshots, the oldest first")(
        lambda instance: [_describe(each) for each in instance.snapshots]
    )


def _describe(snapshot: Snapshot) -> JsonObject:
    """``size`` is that of all disks in MiB; a copy takes what has changed since."""
    state = "ready"
    if snapshot.creating is not None:
        state = "incomplete"
    elif snapshot.reverting is not None:
        state = "reverting"
    return {
        "name": snapshot.name,
        "uuid": snapshot.uuid,
        "created": snapshot.created,
        "description": snapshot.description,
        "consistency": str(snapshot.consistency),
        "disks": [frozen.disk for frozen in snapshot.disks],
        "size": sum(frozen.size for frozen in snapshot.disks),
        "state": state,
    }

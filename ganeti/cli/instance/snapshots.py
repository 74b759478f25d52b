"""gnt-instance snapshot: create, list, revert to and remove snapshots."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.cli import jobs, records, selection
from ganeti.cli import options as o
from ganeti.cli.command import Call, take_many, take_one
from ganeti.cli.programs import INSTANCE

_INSTANCE = take_one("instance", "instance_name")
_SNAPSHOT = take_one("snapshot", "snapshot_name")
#: Key of a record, and the title of its column.
_COLUMNS = {
    "instance": "Instance",
    "name": "Snapshot",
    "created": "Created",
    "size": "Size",
    "consistency": "Consistency",
    "state": "State",
    "description": "Description",
}

INSTANCE.submits(
    "snapshot create",
    "OP_SNAPSHOT_CREATE",
    _INSTANCE,
    _SNAPSHOT,
    new=True,
)
INSTANCE.submits("snapshot revert", "OP_SNAPSHOT_REVERT", _INSTANCE, _SNAPSHOT)


@INSTANCE.command("snapshot list", take_many("instance"), options=(*o.TABLE_OPTIONS, o.FORMAT))
def snapshot_list(call: Call) -> None:
    """List the snapshots of some instances, or of all.

    Sizes are those of all disks together in MiB; a snapshot needs space only for later changes.
    """
    found = [
        {"instance": name, **snapshot}
        for name, snapshots in _read(call, call.args)
        for snapshot in snapshots
    ]
    records.show(call, tuple(_COLUMNS), tuple(_COLUMNS.values()), found, right=("size",))


@INSTANCE.command(
    "snapshot remove",
    _INSTANCE,
    take_many("snapshot", 1),
    op="OP_SNAPSHOT_REMOVE",
    without=("snapshot_name",),
    options=o.JOB_OPTIONS,
)
def snapshot_remove(call: Call) -> None:
    """Remove snapshots of an instance; its disks stay as they are."""
    instance, *names = call.args
    jobs.run_ops(
        call,
        [jobs.build_own(call, instance_name=instance, snapshot_name=name) for name in names],
    )


def _read(call: Call, names: list[str]) -> list[tuple[str, list[JsonObject]]]:
    """Name and snapshots of instances; OpPrereqError for one that does not exist."""
    wanted = selection.find_instances(call.client, names) if names else []
    return [tuple(row) for row in call.client.query_instances(wanted, ["name", "snapshots"])]

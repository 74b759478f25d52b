"""Disks, with and without an instance. Rows are disk objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.query.field import UNAVAIL, Context, Kind
from ganeti.query.kinds import stamps
from ganeti.storage.registry import traits_of

TEXT, NUMBER, UNIT, OTHER = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.UNIT, FieldKind.OTHER
BOOL = FieldKind.BOOL


class DiskKind(Kind[Disk]):
    name = "disk"
    name_field = "uuid"
    index_fields = frozenset({"name", "uuid"})

    def rows(self, ctx: Context) -> Sequence[Disk]:
        return ctx.tables.disks

    def lookup(self, ctx: Context, names: Sequence[object]) -> Sequence[Disk]:
        """Also by a name that only one disk has, or by the place (``web1/0``)."""
        return [ctx.config.disk(str(name)) for name in names]

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[Disk]:
        wanted = {value for value in values if isinstance(value, str)}
        return [d for d in ctx.tables.disks if d.uuid in wanted or d.name in wanted]


KIND = DiskKind()

stamps.add_fields(KIND, "disk")
KIND.attribute("size", "Size", UNIT, "Size of the disk", "size")
KIND.value("name", "Name", TEXT, "Name of the disk, if it has one")(lambda disk: disk.name)
KIND.value("template", "Template", TEXT, "How the disk is stored")(
    lambda disk: None if disk.dev_type is None else str(disk.dev_type)
)
KIND.value("mode", "Mode", TEXT, "Whether the guest may write (rw) or not (ro)")(
    lambda disk: str(disk.mode)
)
KIND.value("spindles", "Spindles", NUMBER, "Number of physical disks it counts as")(
    lambda disk: disk.spindles
)
KIND.value("max_iops", "MaxIOPS", NUMBER, "Most reads and writes in a second; 0: no limit")(
    lambda disk: disk.max_iops
)
KIND.value("max_bandwidth", "MaxBandwidth", NUMBER, "Most MiB in a second; 0: no limit")(
    lambda disk: disk.max_bandwidth
)
KIND.value("forthcoming", "Forthcoming", BOOL, "Whether it is reserved or still being made")(
    lambda disk: bool(disk.forthcoming)
)
KIND.value("params", "Params", OTHER, "Parameters that only this disk has")(
    lambda disk: dict(disk.params or {})
)


# place ---------------------------------------------------------------------------------------


@KIND.field("nodes", "Nodes", OTHER, "Nodes that hold the disk; none for one that all reach")
def _nodes(ctx: Context) -> Column[Disk]:
    names = ctx.tables.node_names
    return lambda disk: (0, [names.get(uuid, uuid) for uuid in disk.nodes])


@KIND.field("groups", "Groups", OTHER, "Node groups of the nodes that hold the disk")
def _groups(ctx: Context) -> Column[Disk]:
    nodes, names = ctx.config.nodes, ctx.tables.group_names

    def column(disk: Disk) -> Cell:
        uuids = {nodes[uuid].group for uuid in disk.nodes if uuid in nodes}
        return (0, sorted(names.get(uuid, uuid) for uuid in uuids))

    return column


@KIND.value("logical_id", "Logical_ID", OTHER, "What the driver finds the data by, but no secret")
def _logical_id(disk: Disk) -> list[object]:
    names = traits_of(disk.dev_type).id_parts
    return [part for name, part in zip(names, disk.logical_id) if name != "secret"]


@KIND.value("path", "Path", TEXT, "File or device with the data, where it has one place")
def _path(disk: Disk) -> str | None:
    named = dict(zip(traits_of(disk.dev_type).id_parts, disk.logical_id))
    return str(named["path"]) if "path" in named else None


@KIND.value("volumes", "Volumes", OTHER, "Logical volumes as group/name: data, then metadata")
def _volumes(disk: Disk) -> list[str] | None:
    volumes = [part for part in disk.children or (disk,) if traits_of(part.dev_type).is_volume]
    return ["/".join(map(str, part.logical_id)) for part in volumes] or None


@KIND.value("minors", "Minors", OTHER, "DRBD minors, in the order of the nodes in logical_id")
def _minors(disk: Disk) -> list[int] | None:
    names = traits_of(disk.dev_type).id_parts
    return [int(part) for name, part in zip(names, disk.logical_id) if name == "minor"] or None


# instance ------------------------------------------------------------------------------------


@KIND.field("instance", "Instance", TEXT, "Instance that the disk is attached to", hostname=True)
def _instance(ctx: Context) -> Column[Disk]:
    return _make_place_column(ctx, lambda instance, _index: instance.name)


@KIND.field("instance.uuid", "InstanceUUID", TEXT, "Identity of that instance")
def _instance_uuid(ctx: Context) -> Column[Disk]:
    return _make_place_column(ctx, lambda instance, _index: instance.uuid)


@KIND.field("index", "Index", NUMBER, "Place among the disks of its instance, from 0")
def _index(ctx: Context) -> Column[Disk]:
    return _make_place_column(ctx, lambda _instance, index: index)


def _make_place_column(ctx: Context, pick: Callable[[Instance, int], str | int]) -> Column[Disk]:
    """Something of the instance that a disk is attached to and of its index there."""
    places = ctx.tables.disk_places

    def column(disk: Disk) -> Cell:
        place = places.get(disk.uuid)
        return UNAVAIL if place is None else (0, pick(*place))

    return column


@KIND.field("attached", "Attached", BOOL, "Whether the disk belongs to an instance")
def _make_attached_column(ctx: Context) -> Column[Disk]:
    places = ctx.tables.disk_places
    return lambda disk: (0, disk.uuid in places)

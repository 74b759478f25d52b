"""Disks of instances, as lists and one by one (``disk.size/0``)."""

from __future__ import annotations

from collections.abc import Callable

from ganeti.constants import MAX_DISKS
from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Cell, Column
from ganeti.model.disk import Disk
from ganeti.model.ids import DiskUuid
from ganeti.model.instance import Instance
from ganeti.query.field import UNAVAIL, Context, Field, Getter, Kind
from ganeti.storage.registry import traits_of

TEXT, NUMBER, UNIT, OTHER = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.UNIT, FieldKind.OTHER

#: name of one, title of one, kind, name of all, title of all, noun
_VALUES = (
    ("name", "DiskName", TEXT, "names", "Disk_names", "Name"),
    ("size", "Disk", UNIT, "sizes", "Disk_sizes", "Size"),
    ("spindles", "DiskSpindles", NUMBER, "spindles", "Disk_spindles", "Spindles"),
    ("uuid", "DiskUUID", TEXT, "uuids", "Disk_UUIDs", "Identity"),
)


def add_fields(kind: Kind[Instance]) -> None:
    """Give a kind the fields of all disks."""
    kind.value("disk.count", "Disks", NUMBER, "Number of disks")(
        lambda instance: len(instance.disks)
    )
    kind.add(
        Field("disk_usage", "DiskUsage", UNIT, "Space that all disks take on a node", _disk_usage)
    )
    kind.add(Field("disk_template", "Disk_template", TEXT, "Template of the disks", _disk_template))
    for one, title, value_kind, many, titles, noun in _VALUES:
        kind.add(Field(f"disk.{many}", titles, OTHER, f"{noun} of each disk", _all(one)))
        for index in range(MAX_DISKS):
            doc = f"{noun} of disk {index}"
            getter = _make_single_getter(one, index)
            kind.add(Field(f"disk.{one}/{index}", f"{title}/{index}", value_kind, doc, getter))


def _value(ctx: Context, attribute: str) -> Callable[[DiskUuid], object]:
    """Value of a disk by its uuid, None for a disk that is missing."""
    disks = ctx.config.disks

    def value(uuid: DiskUuid) -> object:
        disk: Disk | None = disks.get(uuid)
        return None if disk is None else getattr(disk, attribute)

    return value


def _all(attribute: str) -> Getter[Instance]:
    def getter(ctx: Context) -> Column[Instance]:
        value = _value(ctx, attribute)
        return lambda instance: (0, [value(uuid) for uuid in instance.disks])

    return getter


def _make_single_getter(attribute: str, index: int) -> Getter[Instance]:
    def getter(ctx: Context) -> Column[Instance]:
        value = _value(ctx, attribute)

        def column(instance: Instance) -> Cell:
            disks = instance.disks
            found = value(disks[index]) if index < len(disks) else None
            return UNAVAIL if found is None else (0, found)

        return column

    return getter


def _disk_usage(ctx: Context) -> Column[Instance]:
    disks = ctx.config.disks

    def column(instance: Instance) -> Cell:
        usage = 0
        for uuid in instance.disks:
            disk = disks.get(uuid)
            if disk is not None:
                usage += disk.size + traits_of(disk.dev_type).overhead
        return (0, usage)

    return column


def _disk_template(ctx: Context) -> Column[Instance]:
    template = ctx.config.disk_template
    return lambda instance: (0, template(instance))

"""Reports of LVM about its groups and volumes: argument lists and readers of the answers.

The tools answer in JSON (LVM 2.02.158 and later), sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.storage.lvm import tool

_JSON = ("--reportformat", "json", "--units", "b", "--nosuffix")

T = TypeVar("T")


class Group(msgspec.Struct, frozen=True):
    """A volume group; sizes in bytes."""

    vg_name: str
    vg_size: int
    vg_free: int
    vg_extent_size: int
    vg_missing_pv_count: int


class Volume(msgspec.Struct, frozen=True):
    """A logical volume; ``size`` in bytes."""

    vg_name: str
    lv_name: str
    lv_size: int
    #: ``lv_attr``: one character for each of ten properties (lvs(8))
    lv_attr: str
    lv_tags: str
    stripes: int
    #: ``device(first extent)`` of each segment, in order
    devices: str

    @property
    def tags(self) -> list[str]:
        return [tag for tag in self.lv_tags.split(",") if tag]

    @property
    def is_active(self) -> bool:
        """Active or suspended; unknown (``X``) counts as inactive."""
        return self.lv_attr[4:5] not in ("-", "X", "")

    @property
    def is_open(self) -> bool:
        return self.lv_attr[5:6] == "o"

    @property
    def is_virtual(self) -> bool:
        """Its data is gone: an error segment stands where a missing disk was."""
        return self.lv_attr[:1] == "v"

    @property
    def is_faulty(self) -> bool:
        """Part of its data cannot be reached, or must not be trusted."""
        return (
            self.is_virtual
            or self.lv_attr[8:9] in ("p", "r", "m")
            or (
                # invalid snapshot, or suspended, without or with a wrong table
                self.lv_attr[4:5] in ("I", "S", "d", "i")
            )
        )

    @property
    def disks(self) -> list[str]:
        """Physical volumes of its segments, each once, in order."""
        found = (part.partition("(")[0] for part in self.devices.split(","))
        return list(dict.fromkeys(name for name in found if name))


class Physical(msgspec.Struct, frozen=True):
    """A physical volume; sizes in bytes, ``pv_name`` is ``[unknown]`` for a missing one."""

    pv_name: str
    vg_name: str
    pv_size: int
    pv_free: int
    pv_used: int
    pv_attr: str
    pv_allocatable: str
    pv_missing: str

    @property
    def is_allocatable(self) -> bool:
        """LVM calls a missing one allocatable, too."""
        return bool(self.pv_allocatable) and not self.is_missing

    @property
    def is_missing(self) -> bool:
        return bool(self.pv_missing)


class Segment(msgspec.Struct, frozen=True):
    """A run of extents of a physical volume; ``lv_name`` is empty for a free one."""

    pv_name: str
    vg_name: str
    vg_extent_size: int
    #: bytes, of the whole physical volume
    pv_size: int
    pv_free: int
    pv_allocatable: str
    pv_missing: str
    lv_name: str
    lv_tags: str


@dataclass(frozen=True)
class PhysicalUse:
    """A physical volume with what lies on it; sizes in bytes."""

    name: str
    group: str
    extent_size: int
    size: int
    free: int
    allocatable: bool
    volumes: tuple[str, ...]
    tags: frozenset[str]


def groups_argv(group: str | None = None) -> list[str]:
    """Of one group, or of all."""
    return ["vgs", *_JSON, "-o", ",".join(Group.__struct_fields__), *([group] if group else [])]


def volumes_argv(groups: Sequence[str] = (), name: str | None = None) -> list[str]:
    """Of some groups (none given: all), or one volume of one group.

    A volume is selected and not named, since a name that is not there makes the tool fail just
    as a disk that cannot be read does.
    """
    argv = ["lvs", *_JSON, "-o", ",".join(Volume.__struct_fields__)]
    if name is not None:
        argv += ["--select", f'lv_name="{name}"']
    return [*argv, *groups]


def physicals_argv() -> list[str]:
    return ["pvs", *_JSON, "-o", ",".join(Physical.__struct_fields__)]


def segments_argv(group: str | None = None) -> list[str]:
    """Of the physical volumes of one group, or of all."""
    argv = ["pvs", "--segments", *_JSON, "-o", ",".join(Segment.__struct_fields__)]
    return [*argv, "--select", f'vg_name="{group}"'] if group else argv


def read_groups(text: str) -> list[Group]:
    return _read(text, "vg", Group)


def read_volumes(text: str) -> list[Volume]:
    """Logical volumes; the segments of one become one entry."""
    found: dict[tuple[str, str], Volume] = {}
    for row in _read(text, "lv", Volume):
        key = (row.vg_name, row.lv_name)
        before = found.get(key)
        if before is not None:
            devices = f"{before.devices},{row.devices}"
            row = msgspec.structs.replace(before, devices=devices)
        found[key] = row
    return list(found.values())


def read_physicals(text: str) -> list[Physical]:
    return _read(text, "pv", Physical)


def read_segments(text: str) -> list[PhysicalUse]:
    """Physical volumes of groups with their content, without missing ones."""
    rows: dict[str, list[Segment]] = {}
    for row in _read(text, "pvseg", Segment):
        if row.vg_name and not row.pv_missing:
            rows.setdefault(row.pv_name, []).append(row)
    return [
        PhysicalUse(
            name,
            parts[0].vg_name,
            parts[0].vg_extent_size,
            parts[0].pv_size,
            parts[0].pv_free,
            bool(parts[0].pv_allocatable),
            tuple(dict.fromkeys(part.lv_name for part in parts if part.lv_name)),
            frozenset(tag for part in parts for tag in part.lv_tags.split(",") if tag),
        )
        for name, parts in rows.items()
    ]


def groups() -> list[Group]:
    """The volume groups of this node. BlockDeviceError."""
    return read_groups(tool.run(groups_argv()))


def group(name: str) -> Group:
    """One volume group; BlockDeviceError when it is not there."""
    return read_groups(tool.run(groups_argv(name)))[0]


def volume(group: str, name: str) -> Volume | None:
    """One logical volume. BlockDeviceError when its group cannot be read."""
    found = read_volumes(tool.run(volumes_argv([group], name)))
    return found[0] if found else None


def volumes(groups: Sequence[str] = ()) -> list[Volume]:
    """The logical volumes of some groups, or of all; hidden ones are left out. BlockDeviceError."""
    return read_volumes(tool.run(volumes_argv(groups)))


def physicals() -> list[Physical]:
    """The physical volumes of this node. BlockDeviceError."""
    return read_physicals(tool.run(physicals_argv()))


def uses(group: str | None = None) -> list[PhysicalUse]:
    """Physical volumes with what lies on them, of one group or of all. BlockDeviceError."""
    return read_segments(tool.run(segments_argv(group)))


def empty(found: Iterable[PhysicalUse]) -> list[PhysicalUse]:
    """Those that may be used and hold nothing; they count where disks share no hardware."""
    return [item for item in found if item.allocatable and not item.volumes]


def _read(text: str, key: str, kind: type[T]) -> list[T]:
    try:
        reports = msgspec.json.decode(text)["report"]
        rows = [row for report in reports for row in report.get(key, [])]
        # The numbers are texts.
        return typed.convert(rows, list[kind], strict=False)  # type: ignore[valid-type]
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as err:
        raise errors.BlockDeviceError(f"LVM's report of {key} cannot be read: {err}") from err

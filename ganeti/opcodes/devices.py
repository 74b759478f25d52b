"""Disks and NICs as parameters: what one is made of and how a list of them changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import msgspec

from ganeti import errors
from ganeti.base import units
from ganeti.model import params as parameter_sets
from ganeti.model.marks import Mark
from ganeti.model.params import VALUE_AUTO, VALUE_DEFAULT
from ganeti.opcodes.enums import DdmFull, DdmSimple, DiskMode, ImageFormat
from ganeti.opcodes.scalars import NonEmpty, UInt, doc
from ganeti.opcodes.values import Value, read_part, refuse

P = TypeVar("P")

#: Position of a change that names none: the end of the list.
_LAST = -1


class NicParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Parameters of one NIC; ``None`` means not given."""

    notation: ClassVar[str] = "INicParams"

    bridge: str | None = None
    ip: str | None = None
    link: str | None = None
    mac: str | None = None
    mode: str | None = None
    name: str | None = None
    network: str | None = None
    vlan: str | None = None

    def own_params(self) -> dict[str, str]:
        """Those that are parameters of NICs (``link`` also as ``bridge``), as far as given.

        ``auto`` asks for the inherited value, as ``default`` does (Ganeti 2.0 design, ``--net``).
        """
        given = {name: getattr(self, name) for name in parameter_sets.NicParams.__struct_fields__}
        if self.link is None:
            given["link"] = self.bridge
        return {
            key: VALUE_DEFAULT if value == VALUE_AUTO else value
            for key, value in given.items()
            if value is not None
        }


class Mebibytes(int):
    """A size in MiB; text with a unit (``20G``) is accepted and rounded up to 4 MiB."""

    notation: ClassVar[str] = "uint|size"
    expected: ClassVar[str] = "a size in MiB, or text with a unit such as 20G"
    shape: ClassVar[Any] = UInt | str

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """Read a number of MiB or text with a unit."""
        if isinstance(raw, str):
            try:
                return cls(units.parse_size(raw))
            except (errors.UnitParseError, OverflowError):
                raise refuse(cls.expected, raw) from None
        if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
            raise refuse(cls.expected, raw)
        return cls(raw)


class DiskKeys(msgspec.Struct, kw_only=True):
    """Keys of a disk that have a meaning of their own."""

    size: Annotated[Mebibytes | None, doc("Size, as in 10G"), Mark.SAFE] = None
    mode: Annotated[DiskMode | None, doc("Whether the guest may write"), Mark.SAFE] = None
    adopt: NonEmpty | None = None
    vg: NonEmpty | None = None
    metavg: NonEmpty | None = None
    name: Annotated[NonEmpty | None, doc("Name that no other disk has")] = None
    provider: NonEmpty | None = None
    spindles: Annotated[
        int | None, doc("Number of physical disks that it counts as"), Mark.SAFE
    ] = None
    access: NonEmpty | None = None
    dev_type: NonEmpty | None = None
    max_iops: Annotated[
        UInt | None, doc("Maximum reads and writes of the guest per second; 0 for no limit")
    ] = None
    max_bandwidth: Annotated[
        UInt | None, doc("Maximum MiB that the guest reads and writes per second; 0 for no limit")
    ] = None


class DiskParams(Value):
    """Parameters of one disk; ``None`` means not given.

    ``size`` is in MiB. ``ext`` holds every other key, for the provider of external storage.
    """

    __slots__ = (
        "access",
        "adopt",
        "dev_type",
        "ext",
        "max_bandwidth",
        "max_iops",
        "metavg",
        "mode",
        "name",
        "provider",
        "size",
        "spindles",
        "vg",
    )

    notation = "IDiskParams"
    shape = DiskKeys

    def __init__(
        self,
        *,
        size: int | None = None,
        mode: DiskMode | None = None,
        adopt: str | None = None,
        vg: str | None = None,
        metavg: str | None = None,
        name: str | None = None,
        provider: str | None = None,
        spindles: int | None = None,
        access: str | None = None,
        dev_type: str | None = None,
        max_iops: int | None = None,
        max_bandwidth: int | None = None,
        ext: Mapping[str, object] | None = None,
    ) -> None:
        self.size = None if size is None else int(size)
        self.mode = mode
        self.adopt = adopt
        self.vg = vg
        self.metavg = metavg
        self.name = name
        self.provider = provider
        self.spindles = spindles
        self.access = access
        self.dev_type = dev_type
        self.max_iops = max_iops
        self.max_bandwidth = max_bandwidth
        self.ext = dict(ext or {})

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """Read an object; unknown keys go to ``ext``."""
        if not isinstance(raw, dict):
            raise refuse("an object with disk parameters", raw)
        names = DiskKeys.__struct_fields__
        known = {key: value for key, value in raw.items() if key in names}
        ext = {key: value for key, value in raw.items() if key not in names}
        for key in ext:
            if not (isinstance(key, str) and key):
                raise refuse("non-empty texts as names of disk parameters", key)
        keys = read_part(known, DiskKeys)
        return cls(ext=ext, **{name: getattr(keys, name) for name in names})

    def to_wire(self) -> Any:
        names = DiskKeys.__struct_fields__
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return given | self.ext


class DiskSource(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a new disk is filled with: a file in one of the formats of images."""

    notation: ClassVar[str] = "IDiskSource"

    #: URL (https or http), or name of a file in the directory of uploads of the master
    source: NonEmpty
    #: by default it is detected
    format: ImageFormat | None = None


class DiskRecreation(Value):
    """A disk to make again, by index, with what shall differ from before."""

    __slots__ = ("index", "params")

    notation = "uint|(uint,IDiskParams)"
    # no limit on the first: msgspec 0.22 crashes on a limited scalar beside a fixed-length tuple
    shape = int | tuple[UInt, DiskKeys]

    def __init__(self, index: int, params: DiskParams | None = None) -> None:
        self.index = index
        self.params = params or DiskParams()

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """Read ``index`` or ``[index, parameters]``."""
        if not isinstance(raw, list | tuple):
            return cls(_index(raw, ""))
        if len(raw) != 2:
            raise refuse("a disk index, or a list of index and disk parameters", raw)
        return cls(_index(raw[0], "[0]"), read_part(raw[1], DiskParams, "[1]"))

    def to_wire(self) -> object:
        return [self.index, self.params]


def _index(raw: object, at: str) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise refuse("a disk index (0 or above)", raw, at)
    return raw


class Change(Value, Generic[P]):
    """One change of a list of devices.

    ``item`` is an index (negative counts from the end), a name or a uuid; ``params`` is what to
    set on an added or modified device.
    """

    __slots__ = ("action", "item", "params")

    params_type: ClassVar[type[Any]]

    def __init__(self, action: DdmFull, item: int | str, params: P) -> None:
        self.action = action
        self.item = item
        self.params = params

    @classmethod
    def from_wire(cls, raw: object) -> Self:
        """Read ``[action, item, parameters]``, or the older form without an item.

        The older form is ``[action, parameters]`` for the last device (or the place behind it
        when adding) or ``[index, parameters]`` for a modification.
        """
        if not (isinstance(raw, list | tuple) and len(raw) in (2, 3)):
            raise refuse("a list of action, index or name, and parameters", raw)
        action: DdmFull
        item: int | str
        if len(raw) == 2:
            action, item = _read_old_form(raw[0])
        else:
            action, item = read_part(raw[0], DdmFull, "[0]"), _item(raw[1])
        last = len(raw) - 1
        return cls(action, item, read_part(raw[last], cls.params_type, f"[{last}]"))

    def to_wire(self) -> object:
        return [str(self.action), self.item, self.params]


def _read_old_form(head: object) -> tuple[DdmFull, int]:
    if isinstance(head, str) and head in list(DdmSimple):
        return DdmFull(head), _LAST
    if isinstance(head, int) and not isinstance(head, bool) and head >= 0:
        return DdmFull.MODIFY, head
    raise refuse(f"an index or one of {', '.join(DdmSimple)}", head, "[0]")


def _item(raw: object) -> int | str:
    if isinstance(raw, bool) or not isinstance(raw, int | str) or raw == "":
        raise refuse("an index, a name or a uuid", raw, "[1]")
    return raw


class NicChange(Change[NicParams]):
    """Add, remove or modify a NIC."""

    __slots__ = ()

    notation = "(enum:DdmFull,int|str,INicParams)"
    shape = tuple[DdmFull, int | str, NicParams]
    params_type = NicParams


class DiskChange(Change[DiskParams]):
    """Add, attach, detach, remove or modify a disk."""

    __slots__ = ()

    notation = "(enum:DdmFull,int|str,IDiskParams)"
    shape = tuple[DdmFull, int | str, DiskParams]
    params_type = DiskParams

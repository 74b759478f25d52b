"""The reference page of ``config.data``, made of the classes of the model; pure."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Union, get_args, get_origin

import msgspec

from ganeti.base import jsonio, typed
from ganeti.config.upgrade import formats
from ganeti.luxi.requests import FilterSettings
from ganeti.model.backup import BackupPlan, UnfinishedRestore
from ganeti.model.base import ConfigObject, Tagged
from ganeti.model.cloud_init import CloudInit
from ganeti.model.cluster import Cluster
from ganeti.model.config import ConfigData
from ganeti.model.disk import Disk
from ganeti.model.filter_rule import FilterRule
from ganeti.model.group import NodeGroup
from ganeti.model.image import Image
from ganeti.model.instance import Instance, Reservation
from ganeti.model.network import Network
from ganeti.model.nic import Nic
from ganeti.model.node import Node
from ganeti.model.notification import Notification
from ganeti.model.recovery import Attempt, Fencing
from ganeti.model.snapshot import FrozenDisk, Snapshot
from ganeti.opcodes import describe
from ganeti.opcodes.cluster import OpClusterSetParams
from ganeti.opcodes.group import OpGroupSetParams
from ganeti.opcodes.network import OpNetworkAdd
from ganeti.opcodes.node import OpNodeSetParams

_HEAD = """\
# The configuration file

`/var/lib/ganeti/config.data` on every master candidate is one JSON object. The master writes it as
a checkpoint; later changes are in `config.journal`, see
[configuration](../design/configuration.md). Before you edit it, read
[repair](../admin/repair.md). `gnt-cluster history` and `diff` show changes by the names of these
members.

- A member that is missing has its default. A member that is *unset* is not in the file. Unknown
  members are refused.
- A UUID that is the key of an object is also the member `uuid` of the object.
- Times are in seconds since 1970, sizes in MiB.
- Members with a star are unknown to Ganeti: a [downgrade](../admin/from-ganeti.md) drops them, with
  a warning.
"""

#: Class -> heading, its objects in the plural, and its kind in ``formats.OBJECT_KEYS``.
_OBJECTS: Mapping[type[ConfigObject], tuple[str, str, str]] = {
    ConfigData: ("The whole file", "files", "config"),
    Tagged: ("Members of most objects", "objects", "cluster"),
    Cluster: ("Cluster", "clusters", "cluster"),
    Node: ("Node", "nodes", "nodes"),
    NodeGroup: ("Node group", "node groups", "nodegroups"),
    Instance: ("Instance", "instances", "instances"),
    Reservation: ("Reservation", "reservations", ""),
    Snapshot: ("Snapshot", "snapshots", ""),
    FrozenDisk: ("Copy of a disk in a snapshot", "copies of disks", ""),
    BackupPlan: ("Plan of backups", "plans of backups", ""),
    UnfinishedRestore: ("Unfinished restore", "unfinished restores", ""),
    Fencing: ("Proven death of a node", "proven deaths of nodes", ""),
    Attempt: ("Attempt to start an instance elsewhere", "attempts to start instances", ""),
    CloudInit: ("Data for cloud-init", "data for cloud-init", ""),
    Nic: ("NIC", "NICs", "nic"),
    Disk: ("Disk", "disks", "disks"),
    Network: ("Network", "networks", "networks"),
    FilterRule: ("Filter rule", "filter rules", "filters"),
    Image: ("Image", "images", ""),
    Notification: ("Notification", "notifications", ""),
}
#: Requests that set members of the same name; they describe those that the class does not.
_SETTERS: Mapping[type[ConfigObject], type[msgspec.Struct]] = {
    Cluster: OpClusterSetParams,
    Node: OpNodeSetParams,
    NodeGroup: OpGroupSetParams,
    Network: OpNetworkAdd,
    FilterRule: FilterSettings,
}
_PLAIN = {
    str: ("text", "texts"),
    int: ("integer", "integers"),
    float: ("number", "numbers"),
    bool: ("true or false", "booleans"),
    Any: ("any value", "any values"),
}


def page() -> str:
    """The whole page, in Markdown."""
    return "\n".join([_HEAD, *("\n".join(_section(cls)) + "\n" for cls in _OBJECTS)])


def unexplained() -> list[str]:
    """Members without a description."""
    return [
        f"{cls.__name__}.{f.name}" for cls in _OBJECTS for f in _list_own(cls) if not _text(cls, f)
    ]


def _section(cls: type[ConfigObject]) -> Iterator[str]:
    yield f"## {_OBJECTS[cls][0]}"
    yield ""
    if issubclass(cls, Tagged) and cls is not Tagged:
        yield f"Also has the [{_OBJECTS[Tagged][0].lower()}](#{_anchor(Tagged)})."
        yield ""
    yield "| member | type | default | meaning |"
    yield "|---|---|---|---|"
    known = formats.OBJECT_KEYS.get(_OBJECTS[cls][2], frozenset())
    for field in _list_own(cls):
        star = "" if field.name in known else " *"
        text = _text(cls, field).replace("<", "&lt;")
        cells = (f"`{field.name}`{star}", _type(field.type), _default(field), text)
        yield f"| {' | '.join(cells)} |"


def _list_own(cls: type[ConfigObject]) -> list[msgspec.structs.FieldInfo]:
    """The members of a class, without those that are common to most objects."""
    common = Tagged.__struct_fields__ if issubclass(cls, Tagged) and cls is not Tagged else ()
    return [field for field in typed.fields(cls) if field.name not in common]


def _text(cls: type[ConfigObject], field: msgspec.structs.FieldInfo) -> str:
    own = [meta.description for meta in describe.peel(field.type)[1] if meta.description]
    if own or cls not in _SETTERS:
        return own[-1] if own else ""
    known = {item.name: item.description for item in describe.parameters(_SETTERS[cls])}
    return known.get(field.name, "")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    made = field.default_factory is not msgspec.NODEFAULT
    value = field.default_factory() if made else field.default
    if value is None:
        return "unset"
    plain = msgspec.to_builtins(value)
    return "empty" if plain in ("", [], {}, ()) else f"`{jsonio.dumps(plain)}`"


def _type(kind: Any, *, many: bool = False) -> str:
    """A type in words; ``many`` for several values of it."""
    kind = describe.peel(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (part for part in get_args(kind) if part is not type(None))
        return _type(kind, many=many)
    if kind in _PLAIN:
        return _PLAIN[kind][many]
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple and args[-1] is Ellipsis:
        return f"{'lists' if many else 'list'} of {_type(args[0], many=True)}"
    if origin is tuple:
        return f"{'lists' if many else 'list'} of {len(args)} {_type(args[0], many=True)}"
    if origin is dict:
        inner = "" if args[1] is Any else f" of {_type(args[1], many=True)}"
        return f"{'objects' if many else 'object'}{inner}"
    if hasattr(kind, "__supertype__"):
        return "UUIDs" if many else "UUID"
    if issubclass(kind, Enum):
        return ", ".join(f"`{item.value}`" for item in kind)
    name = _OBJECTS[kind][1] if many else _OBJECTS[kind][0].lower().replace("nic", "NIC")
    return f"[{name}](#{_anchor(kind)})"


def _anchor(cls: type[ConfigObject]) -> str:
    return _OBJECTS[cls][0].lower().replace(" ", "-")

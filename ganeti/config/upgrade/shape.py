"""The outer form of a configuration: objects where objects belong, lists where lists belong.

Later steps need not check that again. Single values are checked in the end, when typed objects are
made.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Union

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.config.upgrade.report import Report
from ganeti.model import marks
from ganeti.model.base import ConfigObject
from ganeti.model.cluster import Cluster
from ganeti.model.config import CONTAINERS, ConfigData
from ganeti.model.disk import Disk
from ganeti.model.nic import Nic


def check(raw: JsonObject, report: Report) -> None:
    """Make sure of the form; containers that are missing are made, keys with null left out.

    Raises:
        ConfigurationError: something is not of the form that it must have; names the path.
    """
    if not isinstance(raw.get("cluster"), dict):
        raise errors.ConfigurationError("the configuration has no cluster")
    _object(ConfigData, raw, "", report)
    for name in CONTAINERS:
        if name not in raw:
            raw[name] = {}
            if name not in ConfigData.left_out_empty:
                report.added(name, {})
    _object(Cluster, raw["cluster"], "cluster", report)
    for name, cls in CONTAINERS.items():
        for key, value in raw[name].items():
            path = f"{name}/{key}"
            _object(cls, _mapping(value, path), path, report)
    for key, instance in raw["instances"].items():
        for index, nic in enumerate(instance.get("nics", [])):
            path = f"instances/{key}/nics/{index}"
            _object(Nic, _mapping(nic, path), path, report)
        for index, disk in enumerate(instance.get("disks", [])):
            if not isinstance(disk, str):
                _disk(disk, f"instances/{key}/disks/{index}", report)
    for key, disk in raw["disks"].items():
        _disk(disk, f"disks/{key}", report)


def _disk(disk: Any, path: str, report: Report) -> None:
    _object(Disk, _mapping(disk, path), path, report)
    for index, child in enumerate(disk.get("children", [])):
        _disk(child, f"{path}/children/{index}", report)


def _object(cls: type[ConfigObject], value: JsonObject, path: str, report: Report) -> None:
    for info in typed.fields(cls):
        if info.name not in value:
            continue
        where = f"{path}/{info.name}".lstrip("/")
        if value[info.name] is None:
            # An older way to write that a key has no value.
            del value[info.name]
            report.note_drop(where, "it was null")
            continue
        _form(_plain(info.type), value[info.name], where)


def _form(wanted: object, value: object, path: str) -> None:
    origin = typing.get_origin(wanted)
    if origin is dict:
        inner = _plain(typing.get_args(wanted)[1])
        for key, item in _mapping(value, path).items():
            _form(inner, item, f"{path}/{key}")
    elif origin is tuple:
        if not isinstance(value, list):
            raise _make_error(path, "a list", value)
        if typing.get_args(wanted)[0] is str:
            for index, item in enumerate(value):
                _form(str, item, f"{path}/{index}")
    elif isinstance(wanted, type) and issubclass(wanted, str) and not isinstance(value, str):
        raise _make_error(path, "a text", value)


def _plain(wanted: object) -> Any:
    """``X`` of ``X | None``, and the type below a name for it, without its description."""
    wanted = marks.plain(wanted)
    wanted = getattr(wanted, "__supertype__", wanted)
    if typing.get_origin(wanted) in (Union, types.UnionType):
        rest = [part for part in typing.get_args(wanted) if part is not type(None)]
        return rest[0] if len(rest) == 1 else Any
    return wanted


def _mapping(value: object, path: str) -> JsonObject:
    if not isinstance(value, dict):
        raise _make_error(path, "an object", value)
    return value


def _make_error(path: str, wanted: str, value: object) -> errors.ConfigurationError:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    found = kinds.get(type(value), "null" if value is None else "a number")
    return errors.ConfigurationError(f"{path} must be {wanted}, but is {found}")


def label(obj: Mapping[str, object], key: str) -> str:
    """The label of an object: its name, else its key in the container."""
    name = obj.get("name")
    return name if isinstance(name, str) and name else key


def disks(raw: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """All disks with their paths: those inside instances and those at the top, not their parts."""
    for key, instance in raw["instances"].items():
        for index, disk in enumerate(instance.get("disks", [])):
            if isinstance(disk, dict):
                yield f"instances/{label(instance, key)}/disks/{index}", disk
    for key, disk in raw["disks"].items():
        yield f"disks/{label(disk, key)}", disk

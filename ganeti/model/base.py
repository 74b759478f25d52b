"""Common ground of all configuration objects, and their JSON form.

The form is that of ``config.data``: optional keys that are unset are left out, unknown keys are
refused. Objects are frozen; a change makes a new object (:func:`replace`).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, TypeVar

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.base.typed import doc

O = TypeVar("O", bound="ConfigObject")  # noqa: E741


class ConfigObject(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A frozen record with a documented JSON form."""

    #: fields that are left out while they are empty
    left_out_empty: ClassVar[frozenset[str]] = frozenset()


class Stamped(ConfigObject, frozen=True, kw_only=True):
    """An object with identity and history: times are float seconds since 1970."""

    uuid: Annotated[str, doc("UUID of the object, which never changes")]
    ctime: Annotated[float, doc("When it was created, in seconds since 1970")] = 0.0
    mtime: Annotated[float, doc("When it was last changed, in seconds since 1970")] = 0.0
    serial_no: Annotated[int, doc("Number of its changes, 1 for a new one")] = 1


class Tagged(Stamped, frozen=True, kw_only=True):
    """A stamped object that carries tags, kept sorted."""

    tags: Annotated[tuple[str, ...], doc("Tags, sorted")] = ()


_OPTIONAL: dict[type, tuple[tuple[str, bool], ...]] = {}


def _fields(cls: type[ConfigObject]) -> tuple[tuple[str, bool], ...]:
    """Field names, and whether None means "left out"."""
    found = _OPTIONAL.get(cls)
    if found is None:
        found = tuple((info.name, info.default is None) for info in msgspec.structs.fields(cls))
        _OPTIONAL[cls] = found
    return found


def to_wire(obj: ConfigObject) -> JsonObject:
    """Plain JSON value of an object; unset optional fields are left out.

    A forthcoming object leaves out whatever still has its default.
    """
    forthcoming = bool(getattr(obj, "forthcoming", False))
    result: JsonObject = {}
    for name, optional in _fields(type(obj)):
        value = getattr(obj, name)
        if value is None and optional:
            continue
        if not value and (forthcoming or name in obj.left_out_empty):
            continue
        result[name] = _plain(value)
    return result


def _plain(value: object) -> object:
    if isinstance(value, ConfigObject):
        return to_wire(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, str) and type(value) is not str:
        return str(value)
    return value


def from_wire(cls: type[O], value: object, what: str) -> O:
    """Object of a JSON value.

    Raises:
        ConfigurationError: unknown or missing key, wrong type; the text has ``what`` and the key.
    """
    try:
        return typed.convert(value, cls, strict=True)
    except msgspec.ValidationError as err:
        raise errors.ConfigurationError(f"{what}: {err}") from err


def replace(obj: O, **changes: object) -> O:
    """A copy with other values."""
    return msgspec.structs.replace(obj, **changes)

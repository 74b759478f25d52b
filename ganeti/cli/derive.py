"""Facts about requests that commands need, from their types; ``generated`` keeps them."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import msgspec

from ganeti.bootstrap.node_setup import SetupRequest
from ganeti.bootstrap.settings import FailoverSettings, FixedSettings
from ganeti.luxi.requests import FilterSettings, HistoryFilter
from ganeti.model.ipolicy import PolicyKeys
from ganeti.opcodes import describe, registry
from ganeti.opcodes.devices import DiskKeys, Mebibytes
from ganeti.opcodes.hidden import Hidden
from ganeti.opcodes.node_storage import StorageChanges
from ganeti.rapi.tokens import TokenSettings

#: Name, kind of an option (or ``switch``, ``switch_off``; empty for none), default, choices and
#: description.
Field = tuple[str, str, Any, tuple[str, ...], str]

#: Requests that are not opcodes, and parts of opcodes that have options of their own.
REQUESTS = {
    cls.__name__: cls
    for cls in (
        DiskKeys,
        FailoverSettings,
        FilterSettings,
        FixedSettings,
        HistoryFilter,
        PolicyKeys,
        SetupRequest,
        StorageChanges,
        TokenSettings,
    )
}


def facts(name: str) -> tuple[str, tuple[Field, ...]]:
    """Description of an opcode or of one of ``REQUESTS``, and the fields that are its own."""
    cls = REQUESTS.get(name) or registry.find(name)
    types = {info.name: info.type for info in msgspec.structs.fields(cls)}
    return inspect.cleandoc(cls.__doc__ or ""), tuple(
        _field(found, types[found.name]) for found in describe.parameters(cls)
    )


def _field(found: describe.Parameter, kind: object) -> Field:
    parts = [part for part in describe.members(kind) if part is not type(None)]
    optional = bool(describe.members(kind))
    inner = describe.peel(parts[0] if len(parts) == 1 else kind)[0]
    if inner is bool:
        if optional:
            return (found.name, "bool", found.default, (), found.description)
        name = "switch_off" if found.default else "switch"
        return (found.name, name, bool(found.default), (), found.description)
    if isinstance(inner, type) and issubclass(inner, Enum):
        choices = tuple(sorted(str(item.value) for item in inner))
        return (found.name, "choice", found.default, choices, found.description)
    if get_origin(inner) is Literal:
        choices = tuple(str(word) for word in get_args(inner))
        return (found.name, "choice", found.default, choices, found.description)
    name = _kind(inner)
    items = describe.peel(get_args(inner)[0])[0] if name == "list" else None
    words: tuple[str, ...] = ()
    if isinstance(items, type) and issubclass(items, Enum):
        words = tuple(sorted(str(item.value) for item in items))
    default = found.default if name in ("int", "float", "string") else None
    return (found.name, name, default, words, found.description)


def _kind(kind: object) -> str:
    """Kind of the option for a type; empty when there is none."""
    if kind in (int, float):
        return str(kind.__name__)
    if kind is Mebibytes:
        return "unit"
    if get_origin(kind) in (list, frozenset):
        item = describe.peel(get_args(kind)[0])[0]
        if get_origin(item) is dict:
            return "multilistidentkeyval"
        return "list" if _is_text(item) else ""
    if get_origin(kind) is dict:
        value = describe.peel(get_args(kind)[1])[0]
        if isinstance(value, type) and issubclass(value, Hidden):
            return "keyprivateval"
        return "identkeyval" if get_origin(value) is dict else "keyval"
    return "string" if _is_text(kind) else ""


def _is_text(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, str | Enum)

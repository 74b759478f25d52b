"""Documentation of opcodes, derived from their types: parameters, type texts, JSON schemas.

Type texts use a short notation: ``nestr`` is a non-empty text, ``uint`` and ``pint`` are integers
from 0 and from 1, ``[T]`` is a list, ``{K:V}`` an object, ``(A,B)`` a list with fixed places,
``enum:X`` a word of the enumeration X, ``T|null`` may be null.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.base import OpCode, id_of

_PLAIN = {Any: "any", str: "str", int: "int", float: "float", bool: "bool", type(None): "null"}

#: Enumerations whose published name differs from the name of the class.
_ENUM_NAMES = {"HypervisorName": "Hypervisor"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of an opcode; ``default`` is in JSON form and null when required."""

    name: str
    type: str
    required: bool
    default: object
    description: str


def parameters(cls: type[msgspec.Struct]) -> list[Parameter]:
    """Parameters of an opcode, or of another request, in the order of their definition.

    Those that every opcode has are left out; they are the parameters of ``OpCode`` itself.
    """
    common = OpCode.__struct_fields__ if issubclass(cls, OpCode) and cls is not OpCode else ()
    return [_parameter(f) for f in typed.fields(cls) if f.name not in common]


def _parameter(field: msgspec.structs.FieldInfo) -> Parameter:
    metas = peel(field.type)[1]
    texts = [meta.description for meta in metas if meta.description]
    if field.required:
        default = None
    elif field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    else:
        default = field.default
    return Parameter(
        name=field.encode_name,
        type=type_text(field.type),
        required=field.required,
        default=msgspec.to_builtins(default),
        description=texts[-1] if texts else "",
    )


def peel(kind: object) -> tuple[object, list[msgspec.Meta]]:
    """A type without its annotations, and those that are msgspec's."""
    metas: list[msgspec.Meta] = []
    while get_origin(kind) is Annotated:
        kind, *extra = get_args(kind)
        metas = [item for item in extra if isinstance(item, msgspec.Meta)] + metas
    return kind, metas


def members(kind: object) -> list[object]:
    """Alternatives of a union, or the type alone; annotations of the whole are dropped."""
    kind = peel(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        return [item for part in get_args(kind) for item in members(part) or [part]]
    return []


def limit(metas: list[msgspec.Meta], name: str) -> Any:
    """A limit (``ge``, ``lt``, ``min_length``, ...) among annotations, or None."""
    values = [getattr(meta, name) for meta in metas]
    return next((value for value in reversed(values) if value is not None), None)


def type_text(kind: Any) -> str:
    """A type in the notation of this module."""
    parts = members(kind)
    if parts:
        texts = [type_text(part) for part in parts]
        return "|".join(sorted(texts, key="null".__eq__))
    kind, metas = peel(kind)
    notation = getattr(kind, "notation", None)
    if isinstance(notation, str):
        return notation
    if kind is str and limit(metas, "min_length"):
        return "nestr"
    if kind is int:
        return _integer(metas)
    return _PLAIN.get(kind) or _compound(kind)


def _integer(metas: list[msgspec.Meta]) -> str:
    low, below = limit(metas, "ge"), limit(metas, "lt")
    if low is not None and below is not None:
        return f"int {low}..{below - 1}"
    if low == 0:
        return "uint"
    return "pint" if limit(metas, "gt") == 0 else "int"


def _compound(kind: Any) -> str:
    origin = get_origin(kind)
    texts = [repr(item) if origin is Literal else type_text(item) for item in get_args(kind)]
    if origin is list:
        return f"[{texts[0]}]"
    if origin is frozenset:
        return f"set[{texts[0]}]"
    if origin is dict:
        return f"{{{texts[0]}:{texts[1]}}}"
    if origin is tuple:
        return f"({','.join(texts)})"
    if origin is Literal:
        return f"oneof({','.join(texts)})"
    if issubclass(kind, Enum):
        return f"enum:{_ENUM_NAMES.get(kind.__name__, kind.__name__)}"
    if issubclass(kind, OpCode):
        return id_of(kind)
    if issubclass(kind, msgspec.Struct):
        return "object"
    raise TypeError(f"no notation for {kind!r}")


def json_schema(cls: type[OpCode]) -> JsonObject:
    """JSON schema (draft 2020-12) of the wire form; complete in itself, without references."""
    return _inline(cls)


def _inline(kind: object) -> JsonObject:
    schema = msgspec.json.schema(kind, schema_hook=_hook)
    definitions = schema.pop("$defs", {})
    result: JsonObject = _resolve(schema, definitions)
    return result


def _hook(kind: Any) -> JsonObject:
    return _inline(kind.shape) | {"title": kind.__name__}


def _resolve(node: object, definitions: Mapping[str, object]) -> Any:
    if isinstance(node, list):
        return [_resolve(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if not isinstance(reference, str):
        return {key: _resolve(item, definitions) for key, item in node.items()}
    target = _resolve(definitions[reference.rpartition("/")[2]], definitions)
    rest = {key: _resolve(item, definitions) for key, item in node.items() if key != "$ref"}
    return target | rest

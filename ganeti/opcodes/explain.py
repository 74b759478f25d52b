"""Explains why an opcode was refused: which parameter is wrong, what it is, what is accepted.

msgspec says ``Expected `int`, got `str` - at `$.disks[0].size` ``. The path in that text leads to
the type of the parameter and to the refused value; from these comes a text in plain words. Where
the path leads nowhere, the text of msgspec stays. Private and secret values are never shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import msgspec

from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.describe import limit, members, peel, type_text
from ganeti.opcodes.values import format_refused, read_part

_PLACES = re.compile(r"(?: - at (?:`key` in )?`\$[^`]*`)*\Z")
_PLACE = re.compile(r"`\$([^`]*)`")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`\Z", re.DOTALL)

_BAD_WORD = re.compile(r"Invalid enum value (.*)\Z", re.DOTALL)

_WORDS = {
    Any: "any value",
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
_LISTED = 15
_UNKNOWN = object()


def message(cls: type[OpCode], raw: Mapping[str, object], problem: str) -> str:
    """The text about ``raw``, which msgspec refused with the text ``problem``; has no OP_ID."""
    names = cls.__struct_fields__
    unknown = [key for key in raw if key not in names and key != "OP_ID"]
    required = (f for f in typed.fields(cls) if f.required)
    missing = [f for f in required if f.name not in raw]
    texts = [f"unknown parameter {format_refused(key)}{_hint(key, names)}" for key in unknown]
    texts += [f"parameter {f.name} is missing (expected {describe_type(f.type)})" for f in missing]
    return "; ".join(texts) or _explain_one(cls, raw, problem)


def _explain_one(cls: type[OpCode], raw: Mapping[str, object], problem: str) -> str:
    tail = _PLACES.search(problem)
    start = tail.start() if tail else len(problem)
    text, places = problem[:start], problem[start:]
    name, kind, value = _walk(cls, raw, "".join(reversed(_PLACE.findall(places))))
    if "`key` in" in places:
        return f"parameter {name}: {_explain_bad_key(kind, text)}"
    field = _FIELD.match(text)
    if field:
        return _find_inner_field(name, kind, field)
    if text.startswith("expected ") or kind is None or value is _UNKNOWN:
        return f"parameter {name}: {text[:1].lower()}{text[1:].replace('`', '')}"
    if any(word in type_text(kind) for word in ("private<", "secret<")):
        return f"parameter {name}: expected {describe_type(kind)}"
    got = f"{format_refused(value)}{_suggest(kind, value)}"
    return f"parameter {name}: expected {describe_type(kind)}, got {got}"


def _explain_bad_key(kind: object, text: str) -> str:
    keys = [get_args(part)[0] for part in _plain(kind) if get_origin(part) is dict]
    expected = describe_type(keys[0]) if keys else "text"
    word = _BAD_WORD.match(text)
    return f"expected as a key {expected}" + (f", got {word[1]}" if word else "")


def _find_inner_field(name: str, kind: object, found: re.Match[str]) -> str:
    if found[1].startswith("missing"):
        return f"parameter {name}.{found[2]} is missing"
    known = sorted(_struct_types(kind))
    if len(known) > _LISTED:
        return f"parameter {name}: unknown key {found[2]!r}{_hint(found[2], known)}"
    return f"parameter {name}: unknown key {found[2]!r}; known keys are {', '.join(known)}"


def _hint(word: object, known: Any) -> str:
    near = get_close_matches(str(word)[:60], list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _suggest(kind: object, value: object) -> str:
    words = [str(word) for part in _plain(kind) for word in _choices(part)]
    return _hint(value, words) if isinstance(value, str) else ""


def _choices(kind: object) -> list[object]:
    kind = peel(kind)[0]
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [item.value for item in kind]
    return []


def _walk(cls: type[OpCode], raw: object, path: str) -> tuple[str, object, object]:
    """Readable path, type and value at a path of msgspec.

    Where the path leads nowhere, the type is None or the value is ``_UNKNOWN``. msgspec writes
    ``[...]`` for any value of an object; the first value that cannot be read is taken then.
    """
    kind: object = cls
    value = raw
    readable = ""
    for step in _STEP.finditer(path):
        name, place = step[1], step[2]
        kind = _find_inner_type(kind, name, place)
        if place == "..." and isinstance(value, dict):
            place = _find_first_bad(kind, value) or place
            value = value.get(place, _UNKNOWN)
        else:
            value = _find_inner_value(value, name, place)
        readable += f".{name}" if name is not None else f"[{place}]"
    return readable.removeprefix("."), kind, value


def _find_inner_value(value: object, name: str | None, place: str) -> object:
    if name is not None:
        return value.get(name, _UNKNOWN) if isinstance(value, dict) else _UNKNOWN
    if isinstance(value, list | tuple) and place.isdigit() and int(place) < len(value):
        return value[int(place)]
    return _UNKNOWN


def _find_first_bad(kind: Any, value: JsonObject) -> str | None:
    for key, item in value.items():
        try:
            read_part(item, kind)
        except ValueError:
            return key
    return None


def _find_inner_type(kind: object, name: str | None, place: str) -> object:
    if name is not None:
        return _struct_types(kind).get(name)
    for part in _plain(kind):
        origin, args = get_origin(part), get_args(part)
        if origin is tuple and place.isdigit():
            return args[int(place)] if int(place) < len(args) else None
        if origin in (list, frozenset):
            return args[0]
        if origin is dict:
            return args[1]
    return None


def _struct_types(kind: object) -> JsonObject:
    for part in _plain(kind):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return {f.name: f.type for f in typed.fields(part)}
    return {}


def _plain(kind: object) -> list[object]:
    """Alternatives of a type, each without annotations and wire types as their shape."""
    kind = peel(kind)[0]
    shape = getattr(kind, "shape", None)
    if shape is not None:
        return _plain(shape)
    parts = members(kind)
    return [item for part in parts for item in _plain(part)] if parts else [kind]


def describe_type(kind: Any) -> str:
    """A type in words: ``a non-empty text or null``."""
    metas = peel(kind)[1]
    parts = members(kind)
    if parts:
        texts = sorted((describe_type(part) for part in parts), key="null".__eq__)
        return " or ".join(texts)
    kind = peel(kind)[0]
    if kind is str and limit(metas, "min_length"):
        return "a non-empty text"
    if kind is int:
        return _integer(metas)
    if kind is float and limit(metas, "le"):
        return f"a number up to {limit(metas, 'le'):g}"
    words = _WORDS.get(kind) or getattr(kind, "expected", None)
    return words if isinstance(words, str) else _compound(kind)


def _integer(metas: list[msgspec.Meta]) -> str:
    low, below = limit(metas, "ge"), limit(metas, "lt")
    if low is not None and below is not None:
        return f"an integer from {low} to {below - 1}"
    if low is not None:
        return f"an integer of at least {low}"
    above = limit(metas, "gt")
    return "an integer" if above is None else f"an integer above {above}"


def _compound(kind: Any) -> str:
    choices = _choices(kind)
    if choices:
        words = ", ".join(str(word) for word in choices)
        return f"one of {words}" if len(choices) <= _LISTED else f"a word of {kind.__name__}"
    origin, args = get_origin(kind), get_args(kind)
    if origin in (list, frozenset):
        return "a list" if args[0] is Any else f"a list (each item {describe_type(args[0])})"
    if origin is tuple:
        return f"a list of {len(args)} items ({', '.join(describe_type(arg) for arg in args)})"
    if origin is dict:
        return "an object"
    if getattr(kind, "shape", Any) is not Any:
        return describe_type(kind.shape)
    return "an object" if issubclass(kind, msgspec.Struct) else "any value"

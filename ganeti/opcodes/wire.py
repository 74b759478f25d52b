"""Opcodes as JSON: read with a strict check, written for a wire, a job file or a log.

All functions take and give plain Python data as a JSON reader gives it; no text, no i/o.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import msgspec

from ganeti import errors
from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.opcodes import registry
from ganeti.opcodes.base import OpCode, id_of
from ganeti.opcodes.hidden import REDACTED, Hidden, Private, Secret
from ganeti.opcodes.values import Value, decode_value

O = TypeVar("O", bound=OpCode)  # noqa: E741

#: Parameters that are written even when they are unset.
_ALWAYS = frozenset(("depends", "comment"))
_PLAIN = frozenset((str, int, float, bool, type(None)))

_Kinds = tuple[type[Hidden], ...]


def from_wire(raw: object) -> OpCode:
    """The opcode that a JSON object with the key ``OP_ID`` stands for.

    Raises OpCodeUnknown, or OpPrereqError (wrong_input) that names the opcode, the parameter by
    its path, what was wrong and what is accepted. A missing or null ``reason`` is taken as empty.
    """
    if not isinstance(raw, dict):
        raise errors.make_invalid_error("An opcode must be an object with the key OP_ID")
    op_id = raw.get("OP_ID")
    if not isinstance(op_id, str):
        raise errors.make_invalid_error(
            "The key OP_ID of an opcode must be a text such as OP_INSTANCE_STARTUP",
        )
    return decode(registry.find(op_id), raw)


def decode(cls: type[O], raw: Mapping[str, object]) -> O:
    """Like :func:`from_wire` for a known class; the key ``OP_ID`` may be missing.

    Unknown parameters that are null are left out: clients of other versions send such that way.
    Unchecked inner values are taken over, not copied: do not change ``raw`` afterwards.
    """
    given = raw
    nulls = find_unknown_nulls(cls, raw)
    if "reason" in raw and raw["reason"] is None:
        nulls.append("reason")
    if nulls:
        given = {key: value for key, value in raw.items() if key not in nulls}
    try:
        return typed.convert(given, cls, dec_hook=decode_value)
    except msgspec.ValidationError as err:
        from ganeti.opcodes import explain

        text = explain.message(cls, given, str(err))
        raise errors.make_invalid_error(f"{id_of(cls)}: {text}") from None


def find_unknown_nulls(cls: type[OpCode], raw: Mapping[str, object]) -> list[str]:
    """Parameters that the class does not have and that ask for nothing."""
    known = cls.__struct_fields__
    return [key for key, value in raw.items() if value is None and key not in known]


def to_wire(op: OpCode, *, redact: bool = False) -> JsonObject:
    """The JSON object of an opcode, with everything in clear.

    With ``redact`` (for logs and lists) private and secret values are ``<redacted>``.
    """
    return _opcode(op, (Private, Secret) if redact else ())


def to_stored_form(op: OpCode) -> JsonObject:
    """The JSON object for the job file: private values in clear, secret ones ``<redacted>``."""
    return _opcode(op, (Secret,))


def find_lost_secrets(op: OpCode) -> list[str]:
    """Parameters (``osparams_secret[key]``) whose value did not survive in the job file.

    An opcode with such a parameter must not be executed. Only opcodes, mappings and lists are
    searched.
    """
    return list(_find_lost(op, ""))


def _find_lost(value: object, path: str) -> list[str]:
    if isinstance(value, Hidden):
        return [path] if value.lost else []
    found: list[str] = []
    if isinstance(value, OpCode):
        for name in value.__struct_fields__:
            found += _find_lost(getattr(value, name), f"{path}.{name}" if path else name)
    elif isinstance(value, dict):
        for key, item in value.items():
            found += _find_lost(item, f"{path}[{key}]")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += _find_lost(item, f"{path}[{index}]")
    return found


def _opcode(op: OpCode, hide: _Kinds) -> JsonObject:
    result: JsonObject = {"OP_ID": op.op_id}
    for name in op.__struct_fields__:
        value = getattr(op, name)
        if value is not None or name in _ALWAYS:
            result[name] = _encode(value, hide)
    return result


def _encode(value: object, hide: _Kinds) -> object:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return {str(key): _encode(item, hide) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item, hide) for item in value]
    if isinstance(value, Hidden):
        return REDACTED if isinstance(value, hide) else _encode(value.reveal(), hide)
    return _encode_typed(value, hide)


def _encode_typed(value: object, hide: _Kinds) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int):
        return str(value) if isinstance(value, str) else int(value)
    if isinstance(value, frozenset | set):
        return sorted(_encode(item, hide) for item in value)
    if isinstance(value, OpCode):
        return _opcode(value, hide)
    if isinstance(value, Value):
        return _encode(value.to_wire(), hide)
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value).items()
        return {name: _encode(item, hide) for name, item in fields if item is not None}
    raise TypeError(f"a {type(value).__name__} has no JSON form")

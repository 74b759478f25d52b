"""Reads the answers of out-of-band helpers. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ganeti import errors
from ganeti.base import jsonio, typed
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.enums import OobCommand

#: Words of the health of a part.
_HEALTH = ("CRITICAL", "OK", "UNKNOWN", "WARNING")


def read(command: OobCommand, text: str) -> Any:
    """The answer of a helper; OpExecError if it is not valid. Pure."""
    match command:
        case OobCommand.HEALTH:
            shape: Any = list[tuple[str, str]]
        case OobCommand.POWER_STATUS:
            shape = JsonObject
        case _:
            if text.strip():
                raise errors.OpExecError(f"it was to say nothing, but said: {text[:200]}")
            return None
    try:
        value = typed.convert(jsonio.loads(text), shape)
    except (errors.ParseError, msgspec.ValidationError) as err:
        raise errors.OpExecError(f"its answer to {command} cannot be used: {err}") from err
    if command is OobCommand.POWER_STATUS:
        if not isinstance(value.get("powered"), bool):
            raise errors.OpExecError("its answer has no true or false under 'powered'")
        return value
    unknown = sorted({state for _part, state in value} - set(_HEALTH))
    if unknown:
        raise errors.OpExecError(f"it speaks of unknown states: {', '.join(unknown)}")
    return value

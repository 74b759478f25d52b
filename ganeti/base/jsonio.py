"""JSON text; the only importer of simplejson.

Why simplejson: it is prescribed, takes ``RawJSON`` (a stored job file is spliced into an answer
without parsing it) and reports positions of errors.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import simplejson

from ganeti import errors
from ganeti.base.json_types import JsonObject

if TYPE_CHECKING:
    import msgspec

RawJSON = simplejson.RawJSON

_COMPACT = simplejson.JSONEncoder(separators=(",", ":"), ensure_ascii=True)
_PRETTY = simplejson.JSONEncoder(indent=2, sort_keys=True, ensure_ascii=False)


def _check_finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


#: Characters that no file or path can have, and what a JSON text with one has in it.
_UNUSABLE = "[\0\ud800-\udfff]"
_SUSPECT = rb"\\u(?:0000|[dD][89a-fA-F])"
#: Bytes from which on importing msgspec costs less than reading without it.
_LARGE = 256 * 1024

_DECODER = simplejson.JSONDecoder(parse_float=_check_finite, parse_constant=_refuse_constant)


def dumps(value: object) -> str:
    """Compact text on one line, ASCII only (so that no control byte can occur in it)."""
    return _COMPACT.encode(value)


def dumps_bytes(value: object) -> bytes:
    return dumps(value).encode("ascii")


def answer_bytes(value: object) -> bytes:
    """UTF-8 text of plain data; ``loads`` returns the same value as for :func:`dumps_bytes`.

    For large answers: msgspec writes them some 50 times as fast as simplejson. It leaves letters
    that are not ASCII as they are, but escapes control characters too. What it does not know
    (``RawJSON``, huge numbers) is left to simplejson, and so are the errors. Plain data is made of
    what JSON has; of other values some (sets, times) are written in a form of msgspec's own.
    """
    try:
        return _make_encoder().encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return dumps_bytes(value)


@cache
def _make_encoder() -> msgspec.json.Encoder:
    """The encoder; imported here so that commands, which write little, need not load it."""
    import msgspec

    return msgspec.json.Encoder()


def format_pretty(value: object) -> str:
    """Indented text with sorted keys, for humans."""
    return _PRETTY.encode(value)


def request_bytes(value: object) -> bytes:
    """Like :func:`answer_bytes`, for small texts: does not import msgspec for them."""
    return answer_bytes(value) if "msgspec" in sys.modules else dumps_bytes(value)


def read(data: bytes) -> object:
    """Parse JSON as :func:`loads` does; several times as fast for large texts and in daemons.

    msgspec refuses whatever is not plain JSON; then simplejson has the last word.
    """
    if len(data) > _LARGE or "msgspec" in sys.modules:
        with contextlib.suppress(ValueError, RecursionError):
            return _make_decoder().decode(data)
    return loads(data)


def read_request(data: bytes) -> object:
    """Like :func:`read`, of a text that somebody may have sent to do harm.

    A zero character and half a surrogate pair are refused: no file, path or environment can have
    one, so they would fail somewhere later.

    Raises:
        ParseError: as :func:`loads`, or such a character.
    """
    value = read(data)
    if re.search(_SUSPECT, data):
        problem = next((found for text in _texts(value) if (found := explain_refusal(text))), None)
        if problem is not None:
            raise errors.ParseError(f"invalid JSON: {problem}")
    return value


def explain_refusal(text: str) -> str | None:
    """Why :func:`read_request` refuses a text, None when it does not."""
    found = re.search(_UNUSABLE, text)
    return found and f"\\u{ord(found[0]):04x} is not a character that can be used"


def _texts(value: object) -> Iterator[str]:
    """All texts and keys in a value."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            todo += item
        elif isinstance(item, dict):
            todo += item
            todo += item.values()


@cache
def _make_decoder() -> msgspec.json.Decoder[object]:
    import msgspec

    return msgspec.json.Decoder()


class _Doubled(JsonObject):
    """An object in which a key was there twice."""

    key = ""


def _unique(pairs: list[tuple[str, object]]) -> JsonObject:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    duplicate = _Doubled(found)
    names = [key for key, _value in pairs]
    duplicate.key = next(key for key in names if names.count(key) > 1)
    return duplicate


_UNIQUE_DECODER = simplejson.JSONDecoder(
    parse_float=_check_finite, parse_constant=_refuse_constant, object_pairs_hook=_unique
)


def loads_unique(data: str | bytes) -> Any:
    """Like :func:`loads`, for files that people edit: no object may have a key twice.

    Raises:
        ParseError: as there, or a key is there twice; the text has the path to it.
    """
    value = _load(_UNIQUE_DECODER, data)
    path = _find_double_key(value) if isinstance(value, dict | list) else None
    if path is not None:
        raise errors.ParseError(f"invalid JSON: the key {path} is there twice")
    return value


def _find_double_key(value: Any) -> str | None:
    """Path of a key that was there twice."""
    if isinstance(value, _Doubled):
        return value.key
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            rest = _find_double_key(item)
            if rest is not None:
                return f"{key}/{rest}"
    return None


def loads(data: str | bytes) -> Any:
    """Value of a JSON text.

    Raises:
        ParseError: no valid UTF-8 or JSON, or nested too deeply; the text says where.
    """
    return _load(_DECODER, data)


def _load(decoder: simplejson.JSONDecoder, data: str | bytes) -> Any:
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        return decoder.decode(text)
    except UnicodeDecodeError as err:
        raise errors.ParseError(f"not UTF-8 at byte {err.start}") from err
    except simplejson.JSONDecodeError as err:
        raise errors.ParseError(
            f"invalid JSON at line {err.lineno} column {err.colno}: {err.msg}"
        ) from err
    except ValueError as err:
        raise errors.ParseError(f"invalid JSON: {err}") from err
    except RecursionError as err:
        raise errors.ParseError("invalid JSON: nested too deeply") from err

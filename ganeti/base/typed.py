"""Values of declared types from plain ones, from any thread.

msgspec works out what a type is made of when it meets it first, and fills that in while other
threads can see it: two that meet a struct at the same moment end the process with a segmentation
fault (seen with 0.22). So each type is worked out by one thread before any uses it.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_LOCK = threading.RLock()
_known: set[object] = set()


def doc(text: str) -> msgspec.Meta:
    """Description of a field, one sentence without a full stop."""
    return msgspec.Meta(description=text)


@overload
def convert(value: object, kind: type[T], **how: Any) -> T: ...


@overload
def convert(value: object, kind: Any, **how: Any) -> Any: ...


def convert(value: object, kind: object, **how: Any) -> object:
    """``msgspec.convert``; the first use of a type blocks others of types that are new.

    Raises:
        msgspec.ValidationError: the value does not fit.
    """
    _work_out(kind)
    return msgspec.convert(value, kind, **how)


def decode(text: bytes | str, kind: type[T]) -> T:
    """``msgspec.json.decode``, as :func:`convert`.

    Raises:
        msgspec.DecodeError: the text is not JSON.
        msgspec.ValidationError: a value has the wrong type; a kind of DecodeError.
    """
    _work_out(kind)
    return msgspec.json.decode(text, type=kind)


@cache
def fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a struct; remembered, because msgspec evaluates annotations in each call."""
    return msgspec.structs.fields(kind)


def _work_out(kind: object) -> None:
    if kind not in _known:
        with _LOCK:
            msgspec.json.Decoder(kind)
            _known.add(kind)

"""Sensitive parameters are hidden, wherever they appear, from users who may not set them.

A kernel's command line may have a password in it. Values are replaced before filters look at
them, so that nobody can find one out by guessing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from ganeti.base import typed
from ganeti.base.json_types import JsonObject
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import marks
from ganeti.model.marks import Mark
from ganeti.opcodes.hidden import REDACTED

_NOTHING = (None, "")
#: Types without parts; checked first, as most values are of one of them.
_PLAIN = frozenset((str, int, float, bool, type(None)))
#: Keys of the answer of a query.
_ANSWER = {"fields", "data"}


@cache
def names() -> frozenset[str]:
    """The sensitive parameters of all hypervisors; the first call imports their drivers."""
    drivers = [HYPERVISORS.get(name).params for name in HYPERVISORS.names()]
    return frozenset[str]().union(*(marks.names(cls, Mark.SENSITIVE) for cls in drivers))


def is_sensitive(name: str) -> bool:
    """Whether a parameter is, or a field or row that is called ``hv/`` and its name."""
    return name.rpartition("/")[2] in names()


def hide(value: object, name: str = "") -> Any:
    """A value with that name as such a reader sees it; what is not set stays."""
    if name and is_sensitive(name):
        return _redact(value)
    if isinstance(value, dict):
        answer = _answer(value) if value.keys() == _ANSWER else None
        if answer is not None:
            return _hide_answer(answer)
        known = names()
        return {
            key: _redact(item) if key in known else item if type(item) in _PLAIN else hide(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        if len(value) == 2 and isinstance(value[0], str):
            return [value[0], hide(value[1], value[0])]
        return [item if type(item) in _PLAIN else hide(item) for item in value]
    return value


def _redact(value: object) -> object:
    return value if value in _NOTHING else REDACTED


class _Answer(msgspec.Struct):
    """The answer of a query that is the result of a job."""

    fields: list[dict[str, str]]
    data: list[list[tuple[int, Any]]]


def _answer(value: Mapping[str, object]) -> _Answer | None:
    try:
        return typed.convert(value, _Answer)
    except msgspec.ValidationError:
        return None  # something else with these keys


def _hide_answer(answer: _Answer) -> JsonObject:
    titles = [field.get("name", "") for field in answer.fields]
    rows = [
        [(status, hide(value, name)) for name, (status, value) in zip(titles, row, strict=False)]
        for row in answer.data
    ]
    return {"fields": answer.fields, "data": rows}

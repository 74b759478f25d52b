"""The types of LUXI arguments: a small notation, and the check that it stands for.

``str``, ``int`` and so on are words; ``[T]`` is a list of T, ``T|null`` may be null. All functions
are pure. Clients check what they send by it, too, so a tuple is a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Check = Callable[[Any], bool]

#: Whole numbers are no larger than other programs can store them.
_LARGEST = 2**63
#: Digits of a job id that is sent as text, as older clients do.
_LONGEST_ID = 18


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


def _is_number(value: object) -> bool:
    return _is_int(value) or (isinstance(value, float) and math.isfinite(value))


def _is_job_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_ID and value.isascii() and value.isdigit()
    return _is_int(value)


#: Of each word: the check, and what it stands for as one and as several.
_WORDS: dict[str, tuple[Check, str, str]] = {
    "str": (lambda value: isinstance(value, str), "a text", "texts"),
    "bool": (lambda value: isinstance(value, bool), "true or false", "booleans"),
    "int": (_is_int, "an integer", "integers"),
    "number": (_is_number, "a number", "numbers"),
    "job id": (_is_job_id, "a job id, which is a number", "job ids, which are numbers"),
    "object": (lambda value: isinstance(value, Mapping), "an object", "objects"),
    "opcode": (lambda value: isinstance(value, Mapping), "an opcode (an object)", "opcodes"),
    "any": (lambda _value: True, "a value", "values"),
}


def is_valid(notation: str, value: object) -> bool:
    """Whether a value has a type."""
    return _check(notation)(value)


@cache
def _check(notation: str) -> Check:
    if notation.endswith("|null"):
        inner = _check(notation.removesuffix("|null"))
        return lambda value: value is None or inner(value)
    if notation.startswith("["):
        item = _check(notation[1:-1])
        return lambda value: isinstance(value, list | tuple) and all(map(item, value))
    return _WORDS[notation][0]


def describe(notation: str, *, several: bool = False) -> str:
    """A type in words: ``a list of texts, or null``."""
    if notation.endswith("|null"):
        return f"{describe(notation.removesuffix('|null'))}, or null"
    if notation.startswith("["):
        return f"{'lists' if several else 'a list'} of {describe(notation[1:-1], several=True)}"
    _check, one, many = _WORDS[notation]
    return many if several else one

"""Text for people and for sorting."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache

#: Characters of a path that are shown.
_LONG_PATH = 200
#: Letters from which on the beginning of a name is a hint.
_BEGINNING = 3


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that orders numbers inside names by value (``node2`` before ``node10``).

    Different names have different keys: ``a07`` comes before ``a7`` whatever came first.
    """
    parts = [
        _number(part) if index % 2 else (1, 0, part)
        for index, part in enumerate(_digits().split(name))
        if part
    ]
    return (*parts, (-1, 0, name))


@cache
def _digits() -> re.Pattern[str]:
    return re.compile(r"([0-9]+)")


def _number(digits: str) -> tuple[int, int, str]:
    # Without int(): it refuses very long numbers. Fewer digits, smaller number.
    value = digits.lstrip("0")
    return 0, len(value), value


def natural_sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=natural_key)


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)`` when a known name is close, else an empty text.

    The beginning of a name counts more than its letters; of a host name the first label is enough.
    """
    names = list(known)
    if len(name) >= _BEGINNING:
        for part in (str, _take_last_part):
            begun = [other for other in names if part(other).startswith(name)]
            if begun:
                return _hint(min(begun, key=len))
    by_label = {} if "." in name else {other.partition(".")[0]: other for other in names}
    spelled = {**by_label, **{other: other for other in names}}
    import difflib  # only for a refusal

    found = difflib.get_close_matches(name, list(spelled), n=1)
    return _hint(spelled[found[0]]) if found else ""


def _take_last_part(name: str) -> str:
    """``memory`` of ``be/memory``."""
    return name.rpartition("/")[2]


def _hint(name: str) -> str:
    return f" (did you mean {name}?)"


def os_error(err: OSError) -> str:
    """``/a/b: No space left on device``: the path that an error names, and the system's words.

    Unlike ``str`` it shows no number, and not more than the end of a long path.
    """
    words = err.strerror or str(err) or type(err).__name__
    if err.filename is None:
        return words
    path = os.fsdecode(err.filename) if isinstance(err.filename, bytes) else str(err.filename)
    return f"{path if len(path) <= _LONG_PATH else '...' + path[-_LONG_PATH:]}: {words}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def join_names(names: Iterable[str], limit: int = 10) -> str:
    """``a, b, c and 4 more``"""
    items = list(names)
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"

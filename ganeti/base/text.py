"""Text for people and for sorting."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_DIGITS = re.compile(r"([0-9]+)")


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that orders numbers inside names by value (``node2`` before ``node10``).

    Different names have different keys: ``a07`` comes before ``a7`` whatever came first.
    """
    parts = [_number(part) if index % 2 else (1, 0, part)
             for index, part in enumerate(_DIGITS.split(name)) if part]
    return (*parts, (-1, 0, name))


def _number(digits: str) -> tuple[int, int, str]:
    # Without int(): it refuses very long numbers. Fewer digits, smaller number.
    value = digits.lstrip("0")
    return 0, len(value), value


def natural_sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=natural_key)


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean X?)`` when a known name is close, else an empty text."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def join_names(names: Iterable[str], limit: int = 10) -> str:
    """``a, b, c and 4 more``"""
    items = list(names)
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"

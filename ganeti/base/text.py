"""Text for people and for sorting."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_DIGITS = re.compile(r"([0-9]+)")


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that orders numbers inside names by value (``node2`` before ``node10``)."""
    return tuple(
        (0, int(part), part) if part.isdigit() else (1, 0, part)
        for part in _DIGITS.split(name)
        if part
    )


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

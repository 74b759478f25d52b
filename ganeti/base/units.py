"""Sizes and times as people write them."""

from __future__ import annotations

import re

from ganeti import errors

_SIZE = r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zA-Z]*)\s*"
_SIZE_UNITS = {
    "": 1,
    "m": 1,
    "mb": 1,
    "mib": 1,
    "g": 1024,
    "gb": 1024,
    "gib": 1024,
    "t": 1024 * 1024,
    "tb": 1024 * 1024,
    "tib": 1024 * 1024,
}
_TIME = r"\s*([0-9]{1,12})\s*([smhdw]?)\s*"
_TIME_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

#: Sizes are rounded up to this many MiB, the extent size that volume managers use.
SIZE_STEP = 4

#: MiB; an exbibyte
LARGEST_SIZE = 1 << 40


def parse_size(text: str | int) -> int:
    """MiB of ``"512"``, ``"512M"``, ``"1.5g"``, ``"2TiB"``; rounded up to a multiple of 4 MiB.

    Raises:
        UnitParseError: no number, unknown unit.
    """
    text = str(text)
    shown = text[:30]
    match = re.fullmatch(_SIZE, text)
    if not match:
        raise errors.UnitParseError(
            f"'{shown}' is not a size: expected a number with an optional unit M, G or T, as in 10G"
        )
    number, unit = match.groups()
    factor = _SIZE_UNITS.get(unit.lower())
    if factor is None:
        raise errors.UnitParseError(f"'{shown}' has the unknown unit '{unit[:30]}': use M, G or T")
    value = float(number) * factor
    if value > LARGEST_SIZE:
        raise errors.UnitParseError(f"'{shown}' is larger than any disk can be")
    mib = int(value)
    if mib < value:
        mib += 1
    if mib % SIZE_STEP:
        mib += SIZE_STEP - mib % SIZE_STEP
    return mib


def format_size(mib: float, unit: str = "h") -> str:
    """Text of a size in MiB: ``h`` picks unit and suffix; ``m``, ``g``, ``t`` fix the unit."""
    if unit == "m" or (unit == "h" and mib < 1024):
        return f"{round(mib)}" + ("M" if unit == "h" else "")
    if unit == "g" or (unit == "h" and mib < 1024 * 1024):
        return f"{mib / 1024:.1f}" + ("G" if unit == "h" else "")
    if unit in ("t", "h"):
        return f"{mib / 1024 / 1024:.1f}" + ("T" if unit == "h" else "")
    raise errors.ProgrammerError(f"unknown unit {unit!r}")


def parse_timespec(text: str) -> int:
    """Seconds of ``"90"``, ``"30m"``, ``"4h"``, ``"2d"``, ``"1w"``.

    Raises:
        UnitParseError: no number, unknown unit.
    """
    match = re.fullmatch(_TIME, text)
    if not match:
        raise errors.UnitParseError(
            f"'{text[:30]}' is not a time: expected a number with an optional unit s, m, h, d or w"
        )
    return int(match[1]) * _TIME_UNITS[match[2]]


def format_duration(seconds: float) -> str:
    """A span of time for people: ``0.4 s``, ``41 s``, ``3 min 5 s``, ``2 h 7 min``, ``3 d 4 h``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    left = round(seconds)
    for large, small, size in (("d", "h", 86400), ("h", "min", 3600), ("min", "s", 60)):
        if left >= size:
            part = {"h": 3600, "min": 60, "s": 1}[small]
            return f"{left // size} {large} {left % size // part} {small}"
    return f"{left} s"

"""Answers by gzip, for clients that take them so."""

from __future__ import annotations

import gzip


def pack(data: bytes, level: int = 9) -> bytes:
    """The data by gzip; the same data makes the same bytes."""
    return gzip.compress(data, level, mtime=0)


def accepts_gzip(header: str | None) -> bool:
    """Whether ``Accept-Encoding`` allows gzip (RFC 9110, section 12.5.3).

    ``gzip;q=0`` forbids it. A ``*`` does not count: who wants gzip names it.
    """
    for part in (header or "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return weight.replace(" ", "").rstrip("0.") != "q="
    return False

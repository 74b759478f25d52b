"""Points in time as people write them."""

from __future__ import annotations

import re
from datetime import datetime

from ganeti import errors
from ganeti.base import units
from ganeti.base.clock import SYSTEM

#: Forms of a time, for help texts.
FORMS = (
    "2026-11-21, '2026-11-21 08:00', 2026-11-21T08:00:00, seconds since 1970,"
    " 2h or -2h (two hours ago), now"
)

_AGO = re.compile(r"[0-9]{1,12}[smhdw]")
_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def parse(text: str, now: float | None = None) -> float:
    """Seconds since 1970 of a text like those in ``FORMS``.

    Without a time zone it is local time. ``-2h`` and ``2h`` are two hours ago; units are s, m, h,
    d and w.

    Raises:
        OpPrereqError: nothing of that kind.
    """
    now = SYSTEM.now() if now is None else now
    wanted = text.strip()
    try:
        if wanted == "now":
            return now
        if wanted.startswith("-") or _AGO.fullmatch(wanted):
            return now - units.parse_timespec(wanted.removeprefix("-"))
        if _SECONDS.fullmatch(wanted):
            return float(wanted)
        if not wanted[:1].isdigit():
            raise ValueError
        return datetime.fromisoformat(wanted).timestamp()
    except (ValueError, OverflowError, OSError, errors.UnitParseError):
        raise errors.make_invalid_error(
            f"'{text[:40]}' is not a time; use one of these forms: {FORMS}"
        ) from None

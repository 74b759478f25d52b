"""How long a certificate is still valid, and when to warn."""

from __future__ import annotations

import time
from enum import StrEnum

from ganeti.base.clock import SYSTEM
from ganeti.net.certs import CertInfo

#: So long before its end a certificate is replaced by itself; well before anybody is warned.
RENEW_DAYS = 90
WARN_DAYS = 30
ERROR_DAYS = 7
_DAY = 86400


class Expiry(StrEnum):
    """How urgently a certificate must be renewed."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


def judge(
    info: CertInfo,
    now: float | None = None,
    *,
    warn_days: int = WARN_DAYS,
    error_days: int = ERROR_DAYS,
) -> tuple[Expiry, str]:
    """Judge the validity at ``now`` (seconds since 1970): level and a text for the admin."""
    moment = SYSTEM.now() if now is None else now
    if moment < info.not_before:
        return Expiry.ERROR, f"valid only from {_date(info.not_before)}"
    left = info.not_after - moment
    if left <= 0:
        return Expiry.ERROR, f"expired on {_date(info.not_after)}"
    text = f"valid until {_date(info.not_after)} ({int(left // _DAY)} days left)"
    if left < error_days * _DAY:
        return Expiry.ERROR, text
    if left < warn_days * _DAY:
        return Expiry.WARNING, text
    return Expiry.OK, text


def is_due(not_after: float, now: float) -> bool:
    """Whether a certificate that ends then (Unix time) is to be replaced now."""
    return not_after - now < RENEW_DAYS * _DAY


def _date(stamp: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(stamp))

"""Rules that decide which queued jobs may start."""

from __future__ import annotations

from typing import Any

from ganeti.model.base import ConfigObject


class FilterRule(ConfigObject, frozen=True, kw_only=True):
    """Order: priority, watermark, uuid; the first matching rule but CONTINUE decides."""

    watermark: int
    priority: int
    predicates: tuple[Any, ...] = ()
    #: ACCEPT, PAUSE, REJECT, CONTINUE or ["RATE_LIMIT", n]
    action: Any = "CONTINUE"
    reason_trail: tuple[Any, ...] = ()
    uuid: str

"""Rules that decide which queued jobs may start."""

from __future__ import annotations

from typing import Annotated, Any

from ganeti.base.typed import doc
from ganeti.model.base import ConfigObject


class FilterRule(ConfigObject, frozen=True, kw_only=True):
    """Order: priority, watermark, uuid; the first matching rule but CONTINUE decides."""

    watermark: Annotated[int, doc("Highest job id when the rule was made")]
    priority: int
    predicates: tuple[Any, ...] = ()
    #: ACCEPT, PAUSE, REJECT, CONTINUE or ["RATE_LIMIT", n]
    action: Any = "CONTINUE"
    reason_trail: Annotated[
        tuple[Any, ...], doc("Who made the rule and why: source, text and time in nanoseconds")
    ] = ()
    uuid: Annotated[str, doc("UUID of the rule")]

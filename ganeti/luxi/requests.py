"""LUXI requests that take an object or several values, as types with descriptions.

The master checks what comes; commands derive their options from the fields (``cli.derive``).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ganeti.base.typed import doc


class HistoryFilter(msgspec.Struct, kw_only=True):
    """The filter of QueryHistory; what is unset filters nothing."""

    object: Annotated[str | None, doc("Name or uuid, also of what is gone; or 'cluster'")] = None
    kind: Annotated[
        Literal["cluster", "disk", "filter", "group", "image", "instance", "network", "node"]
        | None,
        doc("Only objects of this kind"),
    ] = None
    since: Annotated[float | None, doc("Only newer changes, in seconds since 1970")] = None
    until: Annotated[float | None, doc("Only older changes, in seconds since 1970")] = None
    job: Annotated[int | None, doc("Only changes by this job")] = None
    limit: Annotated[int | None, doc("Maximum number of changes; the newest are shown")] = None


class FilterSettings(msgspec.Struct, kw_only=True):
    """The settings of a filter rule in ReplaceFilter."""

    priority: Annotated[int, doc("Rules with low numbers are tried first; 0 is the lowest")] = 0
    predicates: Annotated[
        list[Any],
        doc(
            "Conditions that a job must fulfil, all of them: a list of [<kind>, <filter>] with the"
            " kinds jobid, opcode and reason. Without one, the rule matches every job"
        ),
    ] = []
    action: Annotated[
        Any,
        doc(
            "What happens to jobs that match: ACCEPT, PAUSE, REJECT, 'RATE_LIMIT <number>' (so many"
            " at a time), or CONTINUE (the rule has no effect)"
        ),
    ] = "CONTINUE"

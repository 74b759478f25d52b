"""The administrator's own programs in ``hooks/watcher`` run, on each node."""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.base import run_parts
from ganeti.upkeep.round import Here

_LOG = logging.getLogger(__name__)
#: Seconds for all of them together: less than the time between two runs of the watcher.
TIMEOUT = 240.0
_ENVIRONMENT = {"PATH": "/sbin:/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"}


def run(here: Here) -> None:
    """Run them one after the other.

    Raises:
        HooksFailure: some failed, or the directory cannot be read.
    """
    failed = []
    outcomes = run_parts.run(
        here.paths.hooks / "watcher",
        _ENVIRONMENT,
        limit=TIMEOUT,
        clock=here.clock,
        scratch=here.paths.run,
    )
    for outcome in outcomes:
        _LOG.debug("%s: %s %s", outcome.name, outcome.result.name, outcome.output)
        if outcome.result is run_parts.Result.FAIL:
            failed.append(f"{outcome.name}: {(outcome.output.splitlines() or ['no output'])[-1]}")
    if failed:
        raise errors.HooksFailure("; ".join(failed))

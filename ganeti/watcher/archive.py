"""Jobs that ended long ago are archived."""

from __future__ import annotations

import logging

from ganeti.upkeep.round import Round

_LOG = logging.getLogger(__name__)
#: Seconds for one run; what is left comes with the next.
_LIMIT = 30


def run(now: Round) -> None:
    """Archive what ended more than the job age ago."""
    archived, left = now.client.auto_archive_jobs(now.options.job_age, _LIMIT)
    if archived or left:
        _LOG.info("Archived %s jobs, left %s", archived, left)

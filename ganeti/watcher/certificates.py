"""Certificates that end soon are replaced, once a day, long before anybody has to be warned.

The operation asks the nodes and decides. It also renews nodes that were down during a renewal.
"""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.base import files
from ganeti.upkeep.round import Round

_LOG = logging.getLogger(__name__)
#: Seconds from one look to the next.
INTERVAL = 24 * 3600.0


def run(now: Round) -> None:
    """Submit a job, unless the last one was submitted within a day.

    Raises:
        GanetiError: the master did not take the job; the next run tries again.
    """
    moment = now.clock.now()
    if 0 <= moment - _read_last(now) < INTERVAL:
        return
    reason = now.reason("certificates are checked once a day")
    op = {"OP_ID": "OP_CLUSTER_RENEW_CRYPTO", "expiring": True, "reason": reason}
    [submitted] = now.submit([op])
    if submitted.job_id is None:
        raise errors.GenericError(f"certificates are not checked: {submitted.error}")
    files.write_atomic(now.paths.watcher_certificates, f"{moment:.0f}\n", mode=0o600)
    _LOG.debug("Job %s checks certificates", submitted.job_id)


def _read_last(now: Round) -> float:
    try:
        return float(files.read_text(now.paths.watcher_certificates))
    except (FileNotFoundError, ValueError):
        return 0.0

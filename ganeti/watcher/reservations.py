"""Expired reservations are released.

The view here may be old when the job runs. So the job looks again under the lock, and a commit or
a longer time in between wins.
"""

from __future__ import annotations

import logging

from ganeti import errors
from ganeti.luxi.client import QueryResult
from ganeti.upkeep.round import Round

_LOG = logging.getLogger(__name__)
_NORMAL = 0


def run(now: Round) -> None:
    """Submit a job for each reservation that has expired.

    Raises:
        GanetiError: the master did not take a job; the next run tries again.
    """
    found = now.client.query("instance", ["uuid", "name", "expires"], ["?", "forthcoming"])
    over = expired(found, now.clock.now())
    if not over:
        return
    ops = [
        {
            "OP_ID": "OP_RESERVATION_EXPIRE",
            "instance_name": name,
            "instance_uuid": uuid,
            "reason": now.reason("the time of the reservation is over"),
        }
        for uuid, name in over
    ]
    refused = []
    for (_uuid, name), submitted in zip(over, now.submit(ops)):
        if submitted.job_id is None:
            refused.append(f"{name}: {submitted.error}")
        else:
            _LOG.info("Reservation %s has expired: job %s", name, submitted.job_id)
    if refused:
        raise errors.GenericError(f"expired reservations stay: {'; '.join(refused)}")


def expired(found: QueryResult, now: float) -> list[tuple[str, str]]:
    """(uuid, name) of reservations whose time is over. Pure."""
    return [
        (str(uuid), str(name))
        for (_s1, uuid), (_s2, name), (status, expires) in found.data
        if status == _NORMAL and expires <= now
    ]

"""Backups that are due, by the plans of instances, and the removal of those that need not stay."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.upkeep.round import Round

_LOG = logging.getLogger(__name__)
_NORMAL = 0
#: Backups that are begun on one node in one run.
PER_NODE = 2
#: Hours after the time of day in which a backup may begin. What has not begun then waits for the
#: next day.
WINDOW = 6
_HOUR = 3600
_DAY = 24
_FIELDS = (
    "name",
    "pnode",
    "backup.every",
    "backup.at",
    "backup.time",
    "backup.keep_last",
    "backup.keep_daily",
    "backup.keep_weekly",
    "backup.keep_monthly",
)
#: How the summary of a backup begins.
_SUMMARY = "BACKUP_RUN("


@dataclass(frozen=True)
class Plan:
    """One instance with a schedule."""

    name: str
    node: str
    #: hours
    every: float
    #: time of day of the first moment, such as 02:30; empty for any
    at: str
    #: seconds since 1970, 0 for never
    last: float
    #: whether something says which backups stay
    keeps: bool


def run(now: Round) -> None:
    """Submit a job for each backup that is due, the oldest first.

    Raises:
        GanetiError: the master did not take a job; the next run tries again.
    """
    # A filter would let instances without a schedule pass: a value that is missing matches.
    found = now.client.query("instance", list(_FIELDS), None)
    plans = [plan for plan in map(_read, found.data) if plan.every > 0]
    due = find_due(plans, _find_waiting(now), now.clock.now()) if plans else []
    refused = []
    for plan, submitted in zip(
        due, now.client.submit_many_jobs([_ops(now, each) for each in due]) if due else []
    ):
        if submitted.job_id is None:
            refused.append(f"{plan.name}: {submitted.error}")
        else:
            _LOG.info("Backup of %s is due: job %s", plan.name, submitted.job_id)
    if refused:
        raise errors.GenericError(f"backups were not begun: {'; '.join(refused)}")


def _read(row: Sequence[Any]) -> Plan:
    values = [value if status == _NORMAL else None for status, value in row]
    name, node, every, at, last, *keep = values
    return Plan(
        name=str(name),
        node=str(node),
        every=float(every or 0),
        at=str(at or ""),
        last=float(last or 0),
        keeps=any(keep),
    )


def _find_waiting(now: Round) -> set[str]:
    """Names of instances for which a backup runs or waits."""
    active = ["|", *(["=", "status", state] for state in ("queued", "waiting", "running"))]
    found = now.client.query("job", ["summary"], active)
    return {
        text.removeprefix(_SUMMARY).removesuffix(")")
        for ((_status, summary),) in found.data
        for text in summary or ()
        if text.startswith(_SUMMARY)
    }


def find_due(plans: Sequence[Plan], waiting: Collection[str], now: float) -> list[Plan]:
    """Whose time has come, the longest overdue first, and not too many of one node. Pure."""
    busy = Counter(plan.node for plan in plans if plan.name in waiting)
    due = []
    for plan in sorted(plans, key=lambda each: each.last + each.every * _HOUR):
        if plan.name in waiting or not is_due(plan, now):
            continue
        if busy[plan.node] < PER_NODE:
            busy[plan.node] += 1
            due.append(plan)
    return due


def is_due(plan: Plan, now: float) -> bool:
    """Whether a backup is to begin now, by the local time of this machine. Pure.

    With a time of day the last one must be of an earlier day than the plan wants: how long after
    that time it has begun does not matter, so backups do not wander through the day.
    """
    if not plan.at:
        return plan.last + plan.every * _HOUR <= now
    today = datetime.fromtimestamp(now)
    begin = datetime.combine(today.date(), time.fromisoformat(plan.at))
    if begin > today:
        begin -= timedelta(days=1)
    if today - begin > timedelta(hours=WINDOW):
        return False
    return plan.last < (begin - timedelta(hours=plan.every - _DAY)).timestamp()


def _ops(now: Round, plan: Plan) -> list[JsonObject]:
    """One job: the backup, then the removal of older ones if it succeeded."""
    ops: list[JsonObject] = [{"OP_ID": "OP_BACKUP_RUN"}]
    if plan.keeps:
        ops.append({"OP_ID": "OP_BACKUP_PRUNE"})
    reason = now.reason("by the plan of the instance")
    return [{**op, "instance_name": plan.name, "reason": reason} for op in ops]

"""Backups and verifications that are due, by the plans of instances; removal of old backups."""

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
_HOUR = 3600.0
#: Backups, and verifications, that are begun on one node in one run.
PER_NODE = 2
#: Hours after the time of day in which a backup may begin. What has not begun then waits for the
#: next day.
WINDOW = 6
_DAY = 24
#: Hours after which a verification that failed is tried again, when they are fewer than those
#: between two.
AGAIN = 24.0
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
    "backup.verify_every",
    "backup.verify_boot",
    "backup.verified_time",
    "backup.booted_time",
    "backup.verify_tried",
)
#: How the summaries of jobs begin.
_SUMMARIES = ("BACKUP_RUN(", "BACKUP_VERIFY(")
_BACKUP: JsonObject = {"OP_ID": "OP_BACKUP_RUN"}
_PRUNE: JsonObject = {"OP_ID": "OP_BACKUP_PRUNE"}
_VERIFICATION: JsonObject = {"OP_ID": "OP_BACKUP_VERIFY"}


@dataclass(frozen=True)
class Plan:
    """Something that is done with one instance again and again."""

    name: str
    node: str
    #: hours
    every: float
    #: time of day of the first moment, such as 02:30; empty for any
    at: str
    #: seconds since 1970, 0 for never
    last: float
    #: opcodes of the job: what comes second is done if the first succeeded
    ops: tuple[JsonObject, ...] = (_BACKUP,)
    #: when it was tried last, if that counts
    tried: float = 0.0

    @property
    def backs_up(self) -> bool:
        """Whether it makes backups; else it verifies them."""
        return _BACKUP in self.ops

    @property
    def due(self) -> float:
        """When its time comes, without a time of day."""
        return max(self.last + self.every * _HOUR, self.tried + min(self.every, AGAIN) * _HOUR)


def run(now: Round) -> None:
    """Submit a job for each backup and verification that is due, the oldest first.

    Raises:
        GanetiError: the master did not take a job; the next run tries again.
    """
    # A filter would let instances without a schedule pass: a value that is missing matches.
    found = now.client.query("instance", list(_FIELDS), None)
    plans = [plans for row in found.data for plans in _read(row)]
    wanted = [plan for plan in plans if plan.every > 0]
    if not wanted:
        return
    waiting, moment = _find_waiting(now), now.clock.now()
    due: list[Plan] = []
    for backs_up in (True, False):
        same = [plan for plan in wanted if plan.backs_up == backs_up]
        # an instance is backed up or verified, not both at the same time
        due += find_due(same, waiting | {plan.name for plan in due}, moment)
    refused = []
    jobs = [_make_ops(now, each) for each in due]
    for plan, submitted in zip(due, now.client.submit_many_jobs(jobs) if jobs else []):
        what = "Backup" if plan.backs_up else "Verification"
        if submitted.job_id is None:
            refused.append(f"{plan.name}: {submitted.error}")
        else:
            _LOG.info("%s of %s is due: job %s", what, plan.name, submitted.job_id)
    if refused:
        raise errors.GenericError(f"backups or verifications were not begun: {'; '.join(refused)}")


def _read(row: Sequence[Any]) -> list[Plan]:
    """The backups of an instance, and the verifications when there is a backup."""
    values = [value if status == _NORMAL else None for status, value in row]
    name, node, every, at, last, *more = values
    *keep, verify_every, boot, verified, booted, tried = more
    found = [
        Plan(
            name=str(name),
            node=str(node),
            every=float(every or 0),
            at=str(at or ""),
            last=float(last or 0),
            ops=(_BACKUP, _PRUNE) if any(keep) else (_BACKUP,),
        )
    ]
    if last:
        found.append(
            Plan(
                name=str(name),
                node=str(node),
                every=float(verify_every or 0),
                at="",
                last=float((booted if boot else verified) or 0),
                ops=({**_VERIFICATION, "boot": bool(boot)},),
                tried=float(tried or 0),
            )
        )
    return found


def _find_waiting(now: Round) -> set[str]:
    """Names of instances for which a backup or a verification runs or waits."""
    active = ["|", *(["=", "status", state] for state in ("queued", "waiting", "running"))]
    found = now.client.query("job", ["summary"], active)
    return {
        text.partition("(")[2].removesuffix(")")
        for ((_status, summary),) in found.data
        for text in summary or ()
        if text.startswith(_SUMMARIES)
    }


def find_due(plans: Sequence[Plan], waiting: Collection[str], now: float) -> list[Plan]:
    """Return the plans that are due, the longest overdue first, not too many of one node. Pure."""
    busy = Counter(plan.node for plan in plans if plan.name in waiting)
    due = []
    for plan in sorted(plans, key=lambda each: each.due):
        if plan.name in waiting or not is_due(plan, now):
            continue
        if busy[plan.node] < PER_NODE:
            busy[plan.node] += 1
            due.append(plan)
    return due


def is_due(plan: Plan, now: float) -> bool:
    """Whether it is to begin now, by the local time of this machine. Pure.

    With a time of day the last one must be of an earlier day than the plan wants: how long after
    that time it has begun does not matter, so backups do not wander through the day.
    """
    if not plan.at:
        return plan.due <= now
    today = datetime.fromtimestamp(now)
    begin = datetime.combine(today.date(), time.fromisoformat(plan.at))
    if begin > today:
        begin -= timedelta(days=1)
    if today - begin > timedelta(hours=WINDOW):
        return False
    return plan.last < (begin - timedelta(hours=plan.every - _DAY)).timestamp()


def _make_ops(now: Round, plan: Plan) -> list[JsonObject]:
    reason = now.reason("by the plan of the instance")
    return [{**op, "instance_name": plan.name, "reason": reason} for op in plan.ops]

"""Fields of instances about their backups: when they are made, and the last good one."""

from __future__ import annotations

from collections.abc import Callable

from ganeti.filters.answer import FieldKind
from ganeti.model.backup import BackupPlan
from ganeti.model.instance import Instance
from ganeti.query.field import Kind

TEXT, NUMBER, TIME = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.TIMESTAMP


def add_fields(kind: Kind[Instance]) -> None:
    """Add all of them."""

    def add(
        name: str,
        title: str,
        field_kind: FieldKind,
        doc: str,
        read: Callable[[BackupPlan], object],
    ) -> None:
        kind.value(f"backup.{name}", f"Backup{title}", field_kind, doc)(
            lambda instance: None if instance.backup is None else read(instance.backup)
        )

    add("last", "Last", TEXT, "Id of the last good backup", lambda plan: plan.last_id)
    add("time", "Time", TIME, "When the last good backup was made", lambda plan: plan.last_time)
    add("every", "Every", NUMBER, "Hours between two backups", lambda plan: plan.every)
    add("at", "At", TEXT, "Time of day at which backups begin", lambda plan: plan.at)
    add(
        "repository",
        "Repository",
        TEXT,
        "Directory or name of the repository",
        lambda plan: plan.repository,
    )
    add(
        "bandwidth",
        "Bandwidth",
        NUMBER,
        "Maximum MiB per second of a backup",
        lambda plan: plan.bandwidth,
    )
    add("keep_last", "KeepLast", NUMBER, "Newest backups that stay", lambda plan: plan.keep_last)
    add("keep_daily", "KeepDaily", NUMBER, "Days with a backup", lambda plan: plan.keep_daily)
    add("keep_weekly", "KeepWeekly", NUMBER, "Weeks with a backup", lambda plan: plan.keep_weekly)
    add(
        "keep_monthly",
        "KeepMonthly",
        NUMBER,
        "Months with a backup",
        lambda plan: plan.keep_monthly,
    )
    add(
        "verified",
        "Verified",
        TEXT,
        "Id of the last backup proven good",
        lambda plan: plan.verified_id,
    )
    add(
        "verified_time",
        "VerifiedTime",
        TIME,
        "When a backup was proven good last",
        lambda plan: plan.verified_time,
    )
    add(
        "booted",
        "Booted",
        TEXT,
        "Id of the last backup of which a copy has booted",
        lambda plan: plan.booted_id,
    )
    add(
        "booted_time",
        "BootedTime",
        TIME,
        "When a copy of a backup has booted last",
        lambda plan: plan.booted_time,
    )
    add(
        "verify_every",
        "VerifyEvery",
        NUMBER,
        "Hours between two verifications",
        lambda plan: plan.verify_every,
    )
    add(
        "verify_tried",
        "VerifyTried",
        TIME,
        "When the last verification began",
        lambda plan: plan.verify_tried,
    )
    add(
        "verify_boot",
        "VerifyBoot",
        FieldKind.BOOL,
        "Whether the verifications of the schedule start a copy",
        lambda plan: plan.verify_boot,
    )
    add(
        "verify_until",
        "VerifyUntil",
        TEXT,
        "By what a copy shows that it works",
        lambda plan: plan.verify_until,
    )

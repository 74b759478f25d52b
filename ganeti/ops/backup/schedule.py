"""Change when and where an instance is backed up, and which backups are kept."""

from __future__ import annotations

from ganeti import errors
from ganeti.backup import sign
from ganeti.base.json_types import JsonObject
from ganeti.model.backup import is_time_of_day
from ganeti.opcodes.backup import OpBackupSchedule
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.steps import backups
from ganeti.ops.targets.instance import InstanceOperation

#: Hours of a year.
_LONGEST = 8784
#: Hours of a day.
_DAY = 24
_FIELDS = (
    "every",
    "at",
    "bandwidth",
    "keep_last",
    "keep_daily",
    "keep_weekly",
    "keep_monthly",
    "verify_every",
    "verify_boot",
    "verify_until",
)
#: Fields of hours, of which 0 means never.
_HOURS = ("every", "verify_every")


class BackupSchedule(InstanceOperation[OpBackupSchedule, None]):
    """Parameters that are not given keep their values."""

    @classmethod
    def check_submission(cls, op: OpBackupSchedule) -> None:
        backups.check_repository(op.repository)
        if op.repository is None and all(getattr(op, name) is None for name in _FIELDS):
            raise errors.make_invalid_error(
                "nothing to change: give --every, --at, --repository, --bandwidth, or one of"
                " --keep-* and --verify-*"
            )
        if op.at and not is_time_of_day(op.at):
            raise errors.make_invalid_error(
                f"--at is a time of day from 00:00 to 23:59, such as 02:30, not {op.at[:40]!r}"
            )
        for name in _HOURS:
            hours = getattr(op, name)
            if hours is not None and not 0 <= hours <= _LONGEST:
                raise errors.make_invalid_error(
                    f"--{name.replace('_', '-')} is a number of hours from 0 (no schedule) to"
                    f" {_LONGEST}, not {hours:g}"
                )
        if op.verify_until:
            sign.parse(op.verify_until)

    def locks(self) -> Needs:
        yield from self.lock_instance()

    def check(self) -> None:
        op, known = self.op, backups.plan_of(self.instance)
        every = known.every if op.every is None else op.every
        at = known.at if op.at is None else op.at
        if at and every and every % _DAY:
            raise errors.make_invalid_error(
                f"with --at={at} backups are whole days apart: --every is 24, 48 and so on, not"
                f" {every:g}; --at= without a value removes the time of day"
            )

    def hooks(self) -> Hooks:
        return self.instance_hooks("backup-schedule")

    def run(self) -> None:
        op = self.op
        values: JsonObject = {
            name: getattr(op, name) for name in _FIELDS if getattr(op, name) is not None
        }
        for name in (*_HOURS, "at", "verify_until"):
            if name in values:
                values[name] = values[name] or None
        if op.repository is not None and op.repository != (
            backups.plan_of(self.instance).repository or ""
        ):
            # what is remembered is about the old one
            values.update(
                repository=op.repository or None,
                last_id=None,
                last_time=None,
                verified_id=None,
                verified_time=None,
                booted_id=None,
                booted_time=None,
            )
        backups.note(self.ctx, self.instance, **values)

"""Change when and where an instance is backed up, and which backups are kept."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.opcodes.backup import OpBackupSchedule
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.steps import backups
from ganeti.ops.targets.instance import InstanceOperation

#: Hours of a year.
_LONGEST = 8784
_FIELDS = ("every", "bandwidth", "keep_last", "keep_daily", "keep_weekly", "keep_monthly")


class BackupSchedule(InstanceOperation[OpBackupSchedule, None]):
    """What is not given stays as it is."""

    @classmethod
    def check_submission(cls, op: OpBackupSchedule) -> None:
        backups.check_repository(op.repository)
        if op.repository is None and all(getattr(op, name) is None for name in _FIELDS):
            raise errors.make_invalid_error(
                "nothing to change: give --every, --repository, --bandwidth or one of --keep-*"
            )

        if op.every is not None and not 0 <= op.every <= _LONGEST:
            raise errors.make_invalid_error(
                f"--every is a number of hours from 0 (no schedule) to {_LONGEST}, not {op.every:g}"
            )

    def locks(self) -> Needs:
        yield from self.lock_instance()

    def hooks(self) -> Hooks:
        return self.instance_hooks("backup-schedule")

    def run(self) -> None:
        op = self.op
        values: JsonObject = {
            name: getattr(op, name) for name in _FIELDS if getattr(op, name) is not None
        }
        if op.every == 0:
            values["every"] = None
        if op.repository is not None and op.repository != (
            backups.plan_of(self.instance).repository or ""
        ):
            # what is remembered is about the old one
            values.update(repository=op.repository or None, last_id=None, last_time=None)
        backups.note(self.ctx, self.instance, **values)

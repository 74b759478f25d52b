"""Remove the backups of an instance that its rules do not keep."""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.backup.retention import Keep, find_removable
from ganeti.model.backup import BackupPlan, Manifest
from ganeti.opcodes.backup import OpBackupPrune
from ganeti.ops.operation import Operation
from ganeti.ops.steps import backups
from ganeti.rpc.calls import NodeCalls


class BackupPrune(Operation[OpBackupPrune, list[str]]):
    """Returns the ids of the removed backups; the instance need not exist any more."""

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpBackupPrune) -> None:
        backups.check_repository(op.repository)

    def _keep(self, plan: BackupPlan) -> Keep:
        given = [self.op.keep_last, self.op.keep_daily, self.op.keep_weekly, self.op.keep_monthly]
        if any(each is not None for each in given):
            return Keep(*(each or 0 for each in given))
        return Keep(plan.keep_last, plan.keep_daily, plan.keep_weekly, plan.keep_monthly)

    def run(self) -> list[str]:
        ctx, op = self.ctx, self.op
        instance = ctx.config.find_instance(op.instance_name)
        name = instance.name if instance is not None else op.instance_name
        keep = self._keep(backups.plan_of(instance))
        if not keep:
            raise errors.make_invalid_error(
                f"no rule says which backups of {name} to keep: give one of --keep-*, or set it"
                f" with gnt-backup schedule --keep-last=NUMBER {name}"
            )
        node = backups.choose_reader(ctx, instance)
        repository = backups.find_repository(op.repository, instance)
        found = backups.list_all(ctx, node, repository, name)
        gone = _choose(found, keep)
        ctx.log(f"* {len(gone)} of {len(found)} backups of {name} are removed")
        if gone:
            backups.follow(
                ctx,
                node,
                name,
                name,
                lambda: ctx.rpc.call_one(node, NodeCalls.backup_remove, repository, name, gone),
            )
        return gone


def _choose(found: Sequence[Manifest], keep: Keep) -> list[str]:
    """Ids of what goes. Pure.

    A damaged backup does not count, and goes when it is older than all that stay.
    """
    good = [each for each in found if not each.damage]
    gone = {good[index].id for index in find_removable([each.time for each in good], keep)}
    oldest = min((each.id for each in good if each.id not in gone), default="")
    gone.update(each.id for each in found if each.damage and each.id < oldest)
    return sorted(gone)

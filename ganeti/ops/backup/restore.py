"""Write disks of a backup over those of the same instance."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.model.backup import Manifest, UnfinishedRestore
from ganeti.model.node import Node
from ganeti.opcodes.backup import OpBackupRestore
from ganeti.ops import annotate
from ganeti.ops.operation import Hooks
from ganeti.ops.planning import restores
from ganeti.ops.steps import backups
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.backups import BackupPlace
from ganeti.rpc.calls import NodeCalls


@dataclass(frozen=True)
class _Plan:
    node: Node
    place: BackupPlace
    manifest: Manifest
    #: numbers of disks, in the backup and in the instance
    disks: tuple[tuple[int, int], ...]


class BackupRestore(PlannedInstanceOperation[OpBackupRestore, _Plan, str]):
    """Returns the id of the backup. The error of a failure says that the disks are half written."""

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpBackupRestore) -> None:
        backups.check_repository(op.repository)

    def decide(self) -> _Plan:
        ctx, op, name = self.ctx, self.op, self.instance.name
        node = power.primary(ctx, self.instance)
        if power.query_running(ctx, self.instance) is not None:
            raise errors.make_state_error(
                f"instance {name} runs; stop it first: gnt-instance shutdown {name}"
            )
        repository = backups.find_repository(op.repository, self.instance)
        place = backups.find_place(ctx, node, repository, name, op.backup)
        manifest = ctx.rpc.call_one(node, NodeCalls.backup_find, place)
        return _Plan(node, place, manifest, self._pair(manifest))

    def _pair(self, manifest: Manifest) -> tuple[tuple[int, int], ...]:
        """Which disk of the backup is written to which of the instance: by number."""
        disks, op = self.ctx.config.disks_of(self.instance), self.op
        wanted = range(len(manifest.disks)) if op.disk is None else [op.disk]
        for index in wanted:
            if index >= len(manifest.disks):
                raise errors.make_invalid_error(
                    f"backup {manifest.id} has {len(manifest.disks)} disks, but none of number"
                    f" {index}"
                )
            if index >= len(disks):
                raise errors.make_invalid_error(
                    f"instance {self.instance.name} has no disk {index}; restore to a new instance"
                    " with --as, or one disk with --disk"
                )
            if disks[index].size << 20 < manifest.disks[index].size:
                raise errors.make_invalid_error(
                    f"disk {index} has {disks[index].size} MiB, and needs"
                    f" {-(-manifest.disks[index].size >> 20)} MiB; grow it first:"
                    f" gnt-instance grow-disk {self.instance.name} {index} AMOUNT"
                )
        return tuple((index, index) for index in wanted)

    def hooks(self) -> Hooks:
        return self.instance_hooks("backup-restore", {"BACKUP_ID": self.plan.place.id})

    def run(self) -> str:
        ctx, plan, name = self.ctx, self.plan, self.instance.name
        config = ctx.config
        disks = config.disks_of(self.instance)
        group = plan.node.group
        targets = [
            (number, annotate.disk(config, disks[index], group)) for number, index in plan.disks
        ]
        ctx.log(f"* restoring backup {plan.place.id} to instance {name}")
        before = restores.find(self.now)
        self._record(restores.combine(before, self._describe()))
        try:
            instance_disks.assemble(ctx, self.instance, disks)
            backups.follow(
                ctx,
                plan.node,
                plan.place.instance,
                name,
                lambda: ctx.rpc.call_one(plan.node, NodeCalls.backup_restore, plan.place, targets),
            )
        except errors.LockError:  # something else works with the backups: nothing was written
            self._record(before)
            raise
        except errors.GanetiError:
            ctx.warn(f"the disks of {name} are written in part: restore again before you start it")
            raise
        else:
            self._record(restores.subtract(restores.find(self.now), self.op.disk))
        finally:
            if not self.instance.disks_active:
                instance_disks.shutdown(ctx, self.instance, disks)
        return plan.place.id

    def _describe(self) -> UnfinishedRestore:
        place = self.plan.place
        return UnfinishedRestore(
            backup=place.id, repository=place.repository or None, disk=self.op.disk
        )

    def _record(self, found: UnfinishedRestore | None) -> None:
        """Have it on record before the first byte is written: no guest starts on a part of it."""
        backups.note(self.ctx, self.instance, restoring=found)

"""Prove that a backup can be restored."""

from __future__ import annotations

from ganeti.opcodes.backup import OpBackupVerify
from ganeti.ops.operation import Operation
from ganeti.ops.steps import backups
from ganeti.rpc.calls import NodeCalls


class BackupVerify(Operation[OpBackupVerify, str]):
    """Returns the id of the backup, which is good; needs no locks, as nodes lock the files."""

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpBackupVerify) -> None:
        backups.check_repository(op.repository)

    def run(self) -> str:
        ctx, op = self.ctx, self.op
        instance = ctx.config.find_instance(op.instance_name)
        name = instance.name if instance is not None else op.instance_name
        node = backups.choose_reader(ctx, instance)
        repository = backups.find_repository(op.repository, instance)
        place = backups.find_place(ctx, node, repository, name, op.backup)
        ctx.log(f"* reading backup {place.id} of {name} on node {node.name}")
        backups.follow(
            ctx, node, name, name, lambda: ctx.rpc.call_one(node, NodeCalls.backup_verify, place)
        )
        if instance is not None:
            backups.note(ctx, instance, verified_id=place.id, verified_time=ctx.clock.now())
        return place.id

"""Back up the disks of an instance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.guest_os import export_config
from ganeti.model.backup import BackupPlan, make_id
from ganeti.model.enums import AdminState, Consistency
from ganeti.model.node import Node
from ganeti.opcodes.backup import OpBackupRun
from ganeti.ops import annotate
from ganeti.ops.operation import Hooks
from ganeti.ops.steps import backups, exports
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.backups import BackupPlace, BackupRequest
from ganeti.rpc.calls import NodeCalls


@dataclass(frozen=True)
class _Plan:
    node: Node
    running: bool
    repository: str
    known: BackupPlan


class BackupRun(PlannedInstanceOperation[OpBackupRun, _Plan, JsonObject]):
    """Returns what was made. The primary node reads the disks and writes to the repository."""

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpBackupRun) -> None:
        backups.check_repository(op.repository)

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        node = power.primary(ctx, self.instance)
        if not self.instance.disks:
            raise errors.make_state_error(
                f"instance {self.instance.name} has no disks, so there is nothing to back up"
            )
        running = power.query_running(ctx, self.instance) is not None
        repository = backups.find_repository(op.repository, self.instance)
        return _Plan(node, running, repository, backups.plan_of(self.instance))

    def hooks(self) -> Hooks:
        return self.instance_hooks("backup-run", {"BACKUP_REPOSITORY": self.plan.repository})

    def run(self) -> JsonObject:
        ctx, op, plan, name = self.ctx, self.op, self.plan, self.instance.name
        known = plan.known
        same = (known.repository or "") == plan.repository
        # two moments never have the same name, whatever the clock does
        moment = max(ctx.clock.now(), (known.last_time or 0.0) + 1.0)
        wire = annotate.instance(ctx.config, self.now)
        request = BackupRequest(
            place=BackupPlace(repository=plan.repository, instance=name, id=make_id(moment)),
            full=op.full,
            bandwidth=known.bandwidth if op.bandwidth is None else op.bandwidth,
            last_id=known.last_id if same else None,
            at_rest=self._find_rest(),
            settings=self._describe(moment),
        )
        ctx.log(f"* backing up instance {name} on node {plan.node.name}")
        with self._activate():
            copy = backups.follow(
                ctx,
                plan.node,
                name,
                name,
                lambda: ctx.rpc.call_one(plan.node, NodeCalls.backup_run, wire, request),
            )
        result = ctx.rpc.call_one(plan.node, NodeCalls.backup_result, copy)
        for text in result.notes:
            ctx.warn(text)
        made = result.manifest
        backups.note(
            ctx,
            self.instance,
            last_id=made.id,
            last_time=moment,
            repository=known.repository if known.last_id else plan.repository or None,
        )
        ctx.log(
            f"* backup {made.id} ({made.mode}): {_mib(made.read)} read, {_mib(made.stored)} stored"
            f" of {_mib(made.size)}"
        )
        return backups.describe(made)

    def _find_rest(self) -> Consistency:
        """A guest that shall run and does not has crashed."""
        up = self.instance.admin_state == AdminState.UP
        return Consistency.CRASH if up else Consistency.CLEAN

    def _describe(self, moment: float) -> str:
        config, now = self.ctx.config, self.now
        wire = exports.describe(config, now, config.disks_of(now))
        return export_config.compose(wire, wire.disks_info, dict(now.osparams_private), moment)

    @contextmanager
    def _activate(self) -> Iterator[None]:
        """The disks can be read; those that were not active before are deactivated afterwards."""
        ctx, disks = self.ctx, self.ctx.config.disks_of(self.instance)
        if self.plan.running:
            yield
            return
        try:
            instance_disks.assemble(ctx, self.instance, disks)
            yield
        finally:
            if not self.instance.disks_active:
                instance_disks.shutdown(ctx, self.instance, disks)


def _mib(size: int) -> str:
    return units.format_size(-(-size // (1 << 20)), "h")

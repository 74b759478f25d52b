"""Back up the disks of an instance."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ganeti import errors
from ganeti.base import units
from ganeti.base.json_types import JsonObject
from ganeti.config import snapshots as places
from ganeti.config.changes import Draft
from ganeti.guest_os import export_config
from ganeti.locking.levels import LockLevel
from ganeti.model.backup import BackupPlan, make_id
from ganeti.model.enums import AdminState, Consistency, LocalDisk
from ganeti.model.ids import SnapshotUuid
from ganeti.model.node import Node
from ganeti.model.snapshot import Snapshot
from ganeti.opcodes.backup import OpBackupRun
from ganeti.ops import annotate, locks
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.planning import backup_sources, snapshots
from ganeti.ops.planning.backup_sources import Source
from ganeti.ops.steps import backups, exports
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.steps.storage import snapshots as disk_copies
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.backups import BackupPlace, BackupRequest
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeDisk

#: How the names of snapshots begin that are made to be read.
_COPIES = "backup-"
#: Node and copies of the disks of a snapshot, and their consistency.
_Read = tuple[Node, tuple[NodeDisk, ...], Consistency]


@dataclass(frozen=True)
class _Plan:
    primary: Node
    source: Source
    running: bool
    repository: str
    known: BackupPlan


class BackupRun(PlannedInstanceOperation[OpBackupRun, _Plan, JsonObject]):
    """Returns what was made. One node reads the disks and writes to the repository."""

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpBackupRun) -> None:
        backups.check_repository(op.repository)

    def locks(self) -> Needs:
        yield from self.lock_instance()
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        yield from self.lock_nodes(nodes, storage=backup_sources.may_copy(self.instance))

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        node = power.primary(ctx, self.instance)
        if not self.instance.disks:
            raise errors.make_state_error(
                f"instance {self.instance.name} has no disks, so there is nothing to back up"
            )
        running = power.query_running(ctx, self.instance) is not None
        source = backup_sources.choose(ctx.config, self.instance, node, runs=running)
        repository = backups.find_repository(op.repository, self.instance)
        return _Plan(node, source, running, repository, backups.plan_of(self.instance))

    def hooks(self) -> Hooks:
        return self.instance_hooks("backup-run", {"BACKUP_REPOSITORY": self.plan.repository})

    def run(self) -> JsonObject:
        ctx, op, plan, name = self.ctx, self.op, self.plan, self.instance.name
        known = plan.known
        same = (known.repository or "") == plan.repository
        # two moments never have the same name, whatever the clock does
        moment = max(ctx.clock.now(), (known.last_time or 0.0) + 1.0)
        self._remove_left()
        with self._activate(), self._open(make_id(moment)) as (node, copies, consistency):
            request = BackupRequest(
                place=BackupPlace(repository=plan.repository, instance=name, id=make_id(moment)),
                full=op.full,
                bandwidth=known.bandwidth if op.bandwidth is None else op.bandwidth,
                last_id=known.last_id if same else None,
                at_rest=consistency,
                settings=self._describe(moment),
                copies=copies,
            )
            wire = annotate.instance(ctx.config, self.now)
            ctx.log(f"* backing up instance {name} on node {node.name}")
            copy = backups.follow(
                ctx,
                node,
                name,
                name,
                lambda: ctx.rpc.call_one(node, NodeCalls.backup_run, wire, request),
            )
        result = ctx.rpc.call_one(node, NodeCalls.backup_result, copy)
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
        """A guest that runs, or shall run and does not, has not closed its disks."""
        up = self.plan.running or self.instance.admin_state == AdminState.UP
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

    @contextmanager
    def _open(self, backup: str) -> Iterator[_Read]:
        """The node that reads, the copies that it reads in place of disks, their consistency."""
        ctx, plan = self.ctx, self.plan
        node, begun = plan.source.node, None
        consistency = self._find_rest()
        if plan.source.copied:
            if self._is_behind(node):
                node = plan.primary
            if plan.running or node is not plan.primary:
                begun = self._draft(node, backup, consistency)
        try:
            copies: tuple[NodeDisk, ...] = ()
            if begun is not None:
                self._record(begun)
                try:
                    consistency = self._freeze(begun, consistency)
                except errors.OpExecError as err:
                    if plan.running:
                        raise
                    ctx.log(f" - node {node.name} is not read: {errors.text(err)}")
                    node = plan.primary
                else:
                    copies = tuple(
                        annotate.disk(ctx.config, copy, node.group)
                        for _disk, copy in places.copies(ctx.config, begun)
                    )
            if backup_sources.may_copy(self.instance):
                ctx.release(LockLevel.NODE_RES)
            yield node, copies, consistency
        finally:
            if begun is not None:
                self._remove(begun)

    def _is_behind(self, node: Node) -> bool:
        """Whether the data of a secondary node are not those of the primary one."""
        ctx, config = self.ctx, self.ctx.config
        if node.uuid == self.plan.primary.uuid:
            return False
        for disk in config.disks_of(self.instance):
            wire = annotate.disk(config, disk, node.group)
            state = ctx.rpc.call_one(node, NodeCalls.blockdev_find, wire)
            if state is None or state.is_degraded or state.ldisk_status != LocalDisk.OKAY:
                ctx.log(f" - {disk.iv_name} is not in sync on node {node.name}, which is not read")
                return True
        return False

    def _draft(self, node: Node, backup: str, consistency: Consistency) -> Snapshot:
        ctx = self.ctx
        return snapshots.draft(
            ctx.config.disks_of(self.instance),
            uuid=SnapshotUuid(str(uuid.uuid4())),
            name=f"{_COPIES}{backup}",
            description="read by a backup, and removed after it",
            created=ctx.clock.now(),
            consistency=consistency,
            job=ctx.job.job_id,
            nodes=(node.uuid,),
        )

    def _freeze(self, begun: Snapshot, consistency: Consistency) -> Consistency:
        ctx = self.ctx
        if not (self.plan.running and self.plan.source.held):
            disk_copies.freeze(ctx, self.instance, begun, self.op.room)
            return consistency
        with disk_copies.hold(ctx, self.instance, self.plan.primary) as found:
            disk_copies.freeze(ctx, self.instance, begun, self.op.room)
        return found

    def _record(self, snapshot: Snapshot) -> None:
        def edit(draft: Draft) -> None:
            disk_copies.put(draft, self.instance, snapshot)

        self.ctx.store.change("backup-copies", self.ctx.author, edit)

    def _remove_left(self) -> None:
        """Remove what a backup has left whose master died."""
        for each in self.now.snapshots:
            if each.creating is not None and each.name.startswith(_COPIES):
                self._remove(each)

    def _remove(self, snapshot: Snapshot) -> None:
        """Remove copies; where that fails the record stays, and the next backup tries again."""
        failures = disk_copies.remove(self.ctx, self.instance, [snapshot])
        for failure in failures:
            self.ctx.warn(failure)
        if failures:
            return

        def edit(draft: Draft) -> None:
            disk_copies.forget(draft, self.instance, snapshot)

        self.ctx.store.change("backup-copies-removed", self.ctx.author, edit)


def _mib(size: int) -> str:
    return units.format_size(-(-size // (1 << 20)), "h")

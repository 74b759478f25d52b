"""Keep the content of all disks of an instance under a name."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import Consistency, RunState
from ganeti.model.ids import SnapshotUuid
from ganeti.model.node import Node
from ganeti.model.snapshot import Snapshot
from ganeti.opcodes.snapshot import OpSnapshotCreate
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.planning import checks, snapshots
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import snapshots as copies
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    node: Node
    disks: list[Disk]
    runs: bool
    #: whether the guest has to be paused
    hold: bool


class SnapshotCreate(PlannedInstanceOperation[OpSnapshotCreate, _Plan, str]):
    """Returns the uuid of the snapshot.

    A running guest is paused until all disks are copied, so that the copies are of one moment.
    """

    def locks(self) -> Needs:
        yield from self.lock_instance()
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        yield from self.lock_nodes(nodes, storage=True)

    def decide(self) -> _Plan:
        ctx, instance, config = self.ctx, self.instance, self.ctx.config
        snapshots.check_new_name(instance, self.op.snapshot_name)
        snapshots.check_complete(instance)
        disks = config.disks_of(instance)
        node = power.primary(ctx, instance)
        nodes = locks.storage_nodes(config, instance)
        checks.all_online(
            [config.nodes[uuid] for uuid in nodes], f"to copy the disks of {instance.name}"
        )
        info = power.query_running(ctx, instance)
        snapshots.check_copyable(instance, disks, runs=info is not None)
        hold = (
            info is not None
            and info.state == RunState.RUNNING
            and snapshots.must_hold(instance, disks)
        )
        return _Plan(node, disks, info is not None, hold)

    def hooks(self) -> Hooks:
        return self.instance_hooks("snapshot-create", {"SNAPSHOT_NAME": self.op.snapshot_name})

    def run(self) -> str:
        ctx, plan = self.ctx, self.plan
        begun = self._draft()
        self._record(begun)
        ctx.undo.callback(self._undo, begun)
        consistency = self._copy(begun)
        self._record(base.replace(begun, creating=None, consistency=consistency))
        count = len(plan.disks)
        ctx.log(f"Snapshot '{begun.name}' has {count} disk{'' if count == 1 else 's'}")
        return begun.uuid

    def _draft(self) -> Snapshot:
        ctx, op = self.ctx, self.op
        return snapshots.draft(
            self.plan.disks,
            uuid=SnapshotUuid(str(uuid.uuid4())),
            name=op.snapshot_name,
            description=op.description,
            created=ctx.clock.now(),
            consistency=Consistency.CRASH if self.plan.runs else Consistency.CLEAN,
            job=ctx.job.job_id,
        )

    def _copy(self, begun: Snapshot) -> Consistency:
        ctx, instance, plan = self.ctx, self.instance, self.plan
        if not plan.runs:
            copies.copy_stopped(ctx, instance, begun, self.op.room)
            return begun.consistency
        if not plan.hold:
            copies.freeze(ctx, instance, begun, self.op.room)
            return begun.consistency
        with copies.hold(ctx, instance, plan.node) as found:
            copies.freeze(ctx, instance, begun, self.op.room)
        return found

    def _record(self, snapshot: Snapshot) -> None:
        def edit(draft: Draft) -> None:
            copies.put(draft, self.instance, snapshot)

        self.ctx.store.change("snapshot-create", self.ctx.author, edit)

    def _undo(self, snapshot: Snapshot) -> None:
        """Remove what was made; where that fails the record stays, so that it can be repeated."""
        failures = copies.remove(self.ctx, self.instance, [snapshot])
        for failure in failures:
            self.ctx.warn(failure)
        if failures:
            return

        def edit(draft: Draft) -> None:
            copies.forget(draft, self.instance, snapshot)

        self.ctx.store.change("snapshot-undone", self.ctx.author, edit)

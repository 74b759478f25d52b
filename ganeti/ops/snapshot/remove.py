"""Remove a snapshot of an instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.snapshot import Snapshot
from ganeti.opcodes.snapshot import OpSnapshotRemove
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.planning import snapshots
from ganeti.ops.steps.storage import snapshots as copies
from ganeti.ops.targets.instance import PlannedInstanceOperation


class SnapshotRemove(PlannedInstanceOperation[OpSnapshotRemove, Snapshot, None]):
    """The guest, if it runs, notices nothing."""

    def locks(self) -> Needs:
        yield from self.lock_instance()
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        yield from self.lock_nodes(nodes, storage=True)

    def decide(self) -> Snapshot:
        found = snapshots.find(self.instance, self.op.snapshot_name)
        if found.reverting is not None:
            snapshots.check_complete(self.instance)
        return found

    def hooks(self) -> Hooks:
        return self.instance_hooks("snapshot-remove", {"SNAPSHOT_NAME": self.plan.name})

    def run(self) -> None:
        ctx, instance, found = self.ctx, self.instance, self.plan
        failures = copies.remove(ctx, instance, [found])
        if failures and not self.op.ignore_failures:
            raise errors.OpExecError(
                f"snapshot '{found.name}' of {instance.name} stays: {'; '.join(failures)}"
            )
        for failure in failures:
            ctx.warn(f"left over: {failure}")

        def edit(draft: Draft) -> None:
            copies.forget(draft, instance, found)

        ctx.store.change("snapshot-remove", ctx.author, edit)

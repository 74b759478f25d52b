"""Return the disks of a stopped instance to a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.snapshot import Snapshot
from ganeti.opcodes.snapshot import OpSnapshotRevert
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.planning import checks, restores, snapshots
from ganeti.ops.steps import backups
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import snapshots as copies
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    snapshot: Snapshot
    #: names of disks that the snapshot does not have
    newer: list[str]
    #: names of disks that have grown since
    larger: list[str]


class SnapshotRevert(PlannedInstanceOperation[OpSnapshotRevert, _Plan, None]):
    """Only what differs is written, through the disk itself, so a mirrored disk stays mirrored.

    Interrupted, it is repeated: the guest does not start before.
    """

    def locks(self) -> Needs:
        yield from self.lock_instance()
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        yield from self.lock_nodes(nodes, storage=True)

    def decide(self) -> _Plan:
        ctx, instance, config = self.ctx, self.instance, self.ctx.config
        found = snapshots.find_ready(instance, self.op.snapshot_name)
        node = power.primary(ctx, instance)
        if power.query_running(ctx, instance) is not None:
            raise errors.make_state_error(
                f"instance {instance.name} is running; stop it before it is reverted:"
                f" gnt-instance shutdown {instance.name}"
            )
        for frozen in found.disks:
            if frozen.disk not in instance.disks:
                raise errors.make_state_error(
                    f"disk {frozen.disk} of snapshot '{found.name}' is not attached to"
                    f" instance {instance.name}; attach it first, or remove the snapshot"
                )
            if frozen.nodes and node.uuid not in frozen.nodes:
                raise errors.make_state_error(
                    f"node {node.name} has no copy of snapshot '{found.name}'"
                )
        checks.all_online(
            [config.nodes[uuid] for uuid in locks.storage_nodes(config, instance)],
            f"to write to the disks of {instance.name}",
        )
        return _Plan(found, *self._compare(config, found))

    def _compare(self, config: Config, found: Snapshot) -> tuple[list[str], list[str]]:
        sizes = {frozen.disk: frozen.size for frozen in found.disks}
        disks = config.disks_of(self.instance)
        newer = [disk.iv_name for disk in disks if disk.uuid not in sizes]
        larger = [disk.iv_name for disk in disks if disk.size > sizes.get(disk.uuid, disk.size)]
        return newer, larger

    def hooks(self) -> Hooks:
        return self.instance_hooks("snapshot-revert", {"SNAPSHOT_NAME": self.plan.snapshot.name})

    def run(self) -> None:
        ctx, plan = self.ctx, self.plan
        if plan.newer:
            ctx.warn(f"{', '.join(plan.newer)} came after the snapshot and stay as they are")
        if plan.larger:
            ctx.warn(f"{', '.join(plan.larger)} have grown since; what was added stays")
        self._record(base.replace(plan.snapshot, reverting=ctx.job.job_id))
        copies.copy_back(ctx, self.instance, plan.snapshot)
        self._record(base.replace(plan.snapshot, reverting=None))
        if not plan.newer and restores.find(self.now) is not None:
            backups.note(ctx, self.now, restoring=None)

    def _record(self, snapshot: Snapshot) -> None:
        def edit(draft: Draft) -> None:
            copies.put(draft, self.instance, snapshot)

        self.ctx.store.change("snapshot-revert", self.ctx.author, edit)

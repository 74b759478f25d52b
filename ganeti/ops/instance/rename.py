"""Rename an instance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ganeti import errors
from ganeti.config import snapshots
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.node import Node
from ganeti.opcodes.instance import OpInstanceRename
from ganeti.ops import annotate, locks
from ganeti.ops.on_reservations.rename import ReservationRename
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.planning import checks
from ganeti.ops.steps import host_names
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.calls import NodeCalls


@dataclass(frozen=True)
class _Plan:
    node: Node
    #: whether the instance has the name already
    same: bool


class InstanceRename(
    FindingOperation[OpInstanceRename, str, str],
    PlannedInstanceOperation[OpInstanceRename, _Plan, str],
):
    """The instance must be stopped. Disks get the new name; the OS's rename script runs."""

    for_reservation = ReservationRename

    def find(self) -> Finding[str]:
        """The new name."""
        op, config = self.op, self.ctx.config
        name = checks.host_name(op.new_name, "an instance")
        before = config.instance(op.instance_uuid or op.instance_name)
        if name != before.name:
            name = host_names.choose_name(name, name_check=op.name_check, ip_check=op.ip_check)
        # one request for both names: locks of one level are taken together
        yield from self.lock_instance(new=[] if name == before.name else [name])
        yield from self.lock_nodes(locks.storage_nodes(self.ctx.config, self.instance))
        return name

    @property
    def new_name(self) -> str:
        return self.found

    def decide(self) -> _Plan:
        ctx, found = self.ctx, self.instance
        same = self.new_name == found.name
        if not same and ctx.config.has_instance_name(self.new_name):
            raise errors.make_exists_error(f"instance '{self.new_name}' exists already")
        node = power.primary(ctx, found)
        if power.query_running(ctx, found) is not None:
            raise errors.make_state_error(
                f"instance {found.name} is running; stop it before renaming it"
            )
        return _Plan(node, same)

    def hooks(self) -> Hooks:
        return self.instance_hooks("instance-rename", {"INSTANCE_NEW_NAME": self.new_name})

    def run(self) -> str:
        ctx, old = self.ctx, self.instance
        if self.plan.same:
            ctx.log(f"instance {old.name} has this name already; only the OS script rename runs")
        else:
            self._rename()
        self._run_rename_script(old.name)
        return self.new_name

    def _rename(self) -> None:
        ctx, old = self.ctx, self.instance
        disks = self._disks_at_home()
        moved = [self._move_disk(disk) for disk in disks]
        old_directories = self._move_files(disks, moved)

        def edit(draft: Draft) -> None:
            for before, after in zip(disks, moved):
                if before != after:
                    draft.update(before, logical_id=after.logical_id)
            draft.update(old, name=self.new_name)

        ctx.store.change("instance-rename", ctx.author, edit)
        instance_disks.remove_directories(ctx, self.plan.node, old_directories)
        job_id = ctx.job.job_id
        ctx.locks.keep(job_id, LockLevel.INSTANCE, [self.new_name])
        ctx.locks.remove(job_id, LockLevel.INSTANCE, old.name)
        instance_disks.relabel(ctx, self.now)

    def _disks_at_home(self) -> list[Disk]:
        """The instance's file disks in its own directories; those attached later may be elsewhere.

        Such a path stays as it is: attaching and detaching move no data.
        """
        return [
            disk
            for disk in self.ctx.config.disks_of(self.instance)
            for directory in instance_disks.directories([disk])
            if Path(directory).name == self.instance.name
        ]

    def _move_disk(self, disk: Disk) -> Disk:
        """The disk with its file in the directory of the new name."""
        driver, path = disk.logical_id
        target = Path(path).parent.with_name(self.new_name) / Path(path).name
        return base.replace(disk, logical_id=(driver, str(target)))

    def _move_files(self, before: list[Disk], after: list[Disk]) -> list[Disk]:
        """Rename the directories of file disks; undone if the operation fails.

        Where others have disks too, in the old directory or the new one, the files move one by one.
        Returns the old form of the disks that left a directory in this way.
        """
        ctx = self.ctx
        shared = instance_disks.directories_of_others(ctx.config, before)
        moves: dict[str, str] = {}
        alone: list[Disk] = []
        for old, new in zip(before, after):
            source, target = instance_disks.directories([old, new])
            if {source, target} & shared:
                instance_disks.make_directories(ctx, self.instance, [new])
                for there, here in [(old, new), *self._list_copies(old, new)]:
                    self._move_file(there, here)
                    ctx.undo.callback(self._move_file, here, there)
                alone.append(old)
            else:
                moves[source] = target
        for source, target in moves.items():
            ctx.rpc.call_one(self.plan.node, NodeCalls.file_storage_dir_rename, source, target)
            ctx.undo.callback(
                ctx.rpc.call_one, self.plan.node, NodeCalls.file_storage_dir_rename, target, source
            )
        return alone

    def _list_copies(self, old: Disk, new: Disk) -> list[tuple[Disk, Disk]]:
        """The copies of a disk in snapshots, as they are and as they will be."""
        return [
            (snapshots.copy_of(old, frozen), snapshots.copy_of(new, frozen))
            for snapshot in self.instance.snapshots
            for frozen in snapshot.disks
            if frozen.disk == old.uuid
        ]

    def _move_file(self, old: Disk, new: Disk) -> None:
        wire = annotate.disk(self.ctx.config, old, self.plan.node.group)
        self.ctx.rpc.call_one(
            self.plan.node, NodeCalls.blockdev_rename, [(wire, list(new.logical_id))]
        )

    def _run_rename_script(self, old_name: str) -> None:
        """Run the rename script; a failure is reported, the new name stays."""
        ctx = self.ctx
        instance = self.now
        if not instance.os:
            return
        instance_disks.assemble(ctx, instance)
        try:
            wire = annotate.instance(ctx.config, instance)
            debug = self.op.debug_level or 0
            ctx.rpc.call_one(self.plan.node, NodeCalls.instance_run_rename, wire, old_name, debug)
        except errors.GanetiError as err:
            ctx.warn(
                f"the rename script of OS {instance.os} failed, but the instance is renamed:"
                f" {errors.text(err)}"
            )
        finally:
            instance_disks.shutdown(ctx, instance)

"""Rename a disk."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.opcodes.disk import OpDiskRename
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import disk_names
from ganeti.ops.targets.disk import DiskOperation


class DiskRename(DiskOperation[OpDiskRename, str], PlannedOperation[OpDiskRename, str | None, str]):
    """Returns the new name. Nothing changes on the nodes: they know disks by their UUIDs."""

    def decide(self) -> str | None:
        """The name to record."""
        return disk_names.check(self.ctx.config, self.op.new_name, besides=self.disk.uuid)

    def run(self) -> str:
        def edit(draft: Draft) -> None:
            # two jobs with different disks may want the same name
            disk_names.check(draft.config, self.op.new_name, besides=self.disk.uuid)
            draft.update(self.disk, name=self.plan)

        self.ctx.store.change("disk-rename", self.ctx.author, edit)
        return self.plan or disk_names.NONE

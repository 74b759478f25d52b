"""Rename a disk."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.model.disk import Disk
from ganeti.opcodes.disk import OpDiskRename
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.ops.planning import disk_names
from ganeti.ops.targets import disk as disk_target


class DiskRename(PlannedOperation[OpDiskRename, str | None, str]):
    """Returns the new name. Nothing changes on the nodes: they know disks by their UUIDs."""

    disk: Disk

    def locks(self) -> Needs:
        self.disk = yield from disk_target.lock(self.ctx, self.op.disk_name)

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

"""Give a disk another name."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.opcodes.disk import OpDiskRename
from ganeti.ops import locks
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.planning import disk_names


class DiskRename(Operation[OpDiskRename, str]):
    """Gives the new name. Nothing changes on the nodes: they know disks by their uuids."""

    def locks(self) -> Needs:
        self.disk = yield from locks.disk(self.ctx, self.op.disk_name)

    def check(self) -> None:
        self.name = disk_names.check(self.ctx.config, self.op.new_name, besides=self.disk.uuid)

    def run(self) -> str:
        def edit(draft: Draft) -> None:
            # two jobs with different disks may want the same name
            disk_names.check(draft.config, self.op.new_name, besides=self.disk.uuid)
            draft.update(self.disk, name=self.name)

        self.ctx.store.change("disk-rename", self.ctx.author, edit)
        return self.name or disk_names.NONE

"""Give a detached disk to an instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.disk import OpDiskAttach
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.instance.new_settings import Row
from ganeti.ops.instance.set_params import InstanceSetParams
from ganeti.ops.operation import Hooks, Needs, Operation

#: Behind the last disk.
_END = -1


class DiskAttach(Operation[OpDiskAttach, list[Row]]):
    """The change of the instance that ``gnt-instance modify --disk attach`` makes."""

    def locks(self) -> Needs:
        op, ctx = self.op, self.ctx
        disk = ctx.config.disk(op.disk_name)
        owner = ctx.config.owner(disk.uuid)
        if owner is not None:
            raise errors.OpPrereqError(
                f"disk '{op.disk_name}' is attached to instance {owner.name}; detach it first"
                f" (gnt-disk detach {disk.uuid})",
                errors.ErrorCode.STATE,
            )
        index = _END if op.index is None else op.index
        change = DiskChange(DdmFull.ATTACH, index, DiskParams(ext={"uuid": disk.uuid}))
        self.inner = InstanceSetParams(
            OpInstanceSetParams(
                instance_name=op.instance_name,
                instance_uuid=op.instance_uuid,
                disks=[change],
                hotplug=op.hotplug,
                ignore_ipolicy=op.ignore_ipolicy,
            ),
            ctx,
        )
        yield from self.inner.locks()

    def check(self) -> None:
        self.inner.check()

    def hooks(self) -> Hooks:
        return self.inner.hooks()

    def run(self) -> list[Row]:
        return self.inner.run()

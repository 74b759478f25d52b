"""Take a disk from its instance and keep it."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.disk import OpDiskDetach
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.instance.new_settings import Row
from ganeti.ops.instance.set_params import InstanceSetParams
from ganeti.ops.operation import Hooks, Needs, Operation


class DiskDetach(Operation[OpDiskDetach, list[Row]]):
    """The change of the instance that ``gnt-instance modify --disk UUID:detach`` makes."""

    def locks(self) -> Needs:
        op, ctx = self.op, self.ctx
        disk = ctx.config.disk(op.disk_name)
        owner = ctx.config.owner(disk.uuid)
        if owner is None:
            raise errors.OpPrereqError(
                f"disk '{op.disk_name}' is not attached to an instance", errors.ErrorCode.STATE
            )
        self.inner = InstanceSetParams(
            OpInstanceSetParams(
                instance_name=owner.name,
                instance_uuid=owner.uuid,
                disks=[DiskChange(DdmFull.DETACH, disk.uuid, DiskParams())],
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

"""Attach a detached disk to an instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.disk import OpDiskAttach
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.disk.inner import ChangeOfInstance

#: Behind the last disk.
_END = -1


class DiskAttach(ChangeOfInstance[OpDiskAttach]):
    """The change that ``gnt-instance modify --disk attach`` makes."""

    def change(self) -> OpInstanceSetParams:
        op, config = self.op, self.ctx.config
        disk = config.disk(op.disk_name)
        owner = config.owner(disk.uuid)
        if owner is not None:
            raise errors.make_state_error(
                f"disk '{op.disk_name}' is attached to instance {owner.name}; detach it first"
                f" (gnt-disk detach {disk.uuid})"
            )
        index = _END if op.index is None else op.index
        return OpInstanceSetParams(
            instance_name=op.instance_name,
            instance_uuid=op.instance_uuid,
            disks=[DiskChange(DdmFull.ATTACH, index, DiskParams(ext={"uuid": disk.uuid}))],
            hotplug=op.hotplug,
            ignore_ipolicy=op.ignore_ipolicy,
        )

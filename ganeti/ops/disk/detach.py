"""Detach a disk from its instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.disk import OpDiskDetach
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.disk.inner import ChangeOfInstance


class DiskDetach(ChangeOfInstance[OpDiskDetach]):
    """The change that ``gnt-instance modify --disk UUID:detach`` makes."""

    def change(self) -> OpInstanceSetParams:
        op, config = self.op, self.ctx.config
        disk = config.disk(op.disk_name)
        owner = config.owner(disk.uuid)
        if owner is None:
            raise errors.make_state_error(f"disk '{op.disk_name}' is not attached to an instance")
        return OpInstanceSetParams(
            instance_name=owner.name,
            instance_uuid=owner.uuid,
            disks=[DiskChange(DdmFull.DETACH, disk.uuid, DiskParams())],
            hotplug=op.hotplug,
            ignore_ipolicy=op.ignore_ipolicy,
        )

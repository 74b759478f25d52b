"""Make a disk larger, with or without an instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel
from ganeti.opcodes.disk import OpDiskGrow
from ganeti.opcodes.instance_disks import OpInstanceGrowDisk
from ganeti.ops import locks
from ganeti.ops.instance.grow_disk import InstanceGrowDisk
from ganeti.ops.operation import Context, Hooks, Needs, Operation
from ganeti.ops.planning import disk_bearer
from ganeti.ops.steps.storage import disks, growth, sync


class DiskGrow(Operation[OpDiskGrow, None]):
    """Of an attached disk this is what ``gnt-instance grow-disk`` does, of others the same."""

    attached: InstanceGrowDisk | None = None

    def locks(self) -> Needs:
        ctx, op = self.ctx, self.op
        uuid = ctx.config.disk(op.disk_name).uuid
        owner = ctx.config.owner(uuid)
        if owner is not None:
            self.attached = _for_instance(ctx, op, owner, uuid)
            yield from self.attached.locks()
            return
        self.disk = yield from locks.disk(ctx, uuid)
        nodes = sorted(node.uuid for node in disk_bearer.seats(ctx.config, self.disk))
        yield Need(LockLevel.NODE, nodes, shared=True)
        yield Need(LockLevel.NODE_RES, nodes)

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        if self.attached is not None:
            self._check_still_there(self.attached)
            self.attached.check()
            return
        owner = ctx.config.owner(self.disk.uuid)
        if owner is not None:
            raise errors.wrong_state(
                f"disk '{op.disk_name}' was attached to instance {owner.name} while this job"
                " waited; try again"
            )
        self.what = f"disk {disk_bearer.title(self.disk)}"
        self.home = disk_bearer.of(ctx.config, self.disk)
        self.amount = growth.amount(self.disk, self.what, op.amount, absolute=op.absolute)
        growth.check(ctx, self.home, self.disk, self.what, self.amount)

    def _check_still_there(self, attached: InstanceGrowDisk) -> None:
        config = self.ctx.config
        uuids = config.instances[attached.uuid].disks
        index = attached.op.disk
        if index >= len(uuids) or uuids[index] != config.disk(self.op.disk_name).uuid:
            raise errors.wrong_state(
                f"disk '{self.op.disk_name}' was detached or moved to another place while this"
                " job waited; try again"
            )

    def hooks(self) -> Hooks | None:
        return None if self.attached is None else self.attached.hooks()

    def run(self) -> None:
        ctx = self.ctx
        if self.attached is not None:
            self.attached.run()
            return
        if not self.amount:
            ctx.log(f"{self.what} has {self.disk.size} MiB already")
            return
        with disks.activated(ctx, self.home, [self.disk]):
            ctx.log(f"Growing {self.what} by {self.amount} MiB")
            larger = growth.grow(ctx, self.home, self.disk, self.what, self.amount)
            if sync.wait(ctx, self.home, [larger]) is sync.Outcome.DEGRADED:
                ctx.warn("disk syncing has not returned a good status")


def _for_instance(ctx: Context, op: OpDiskGrow, owner: Instance, uuid: str) -> InstanceGrowDisk:
    inner = OpInstanceGrowDisk(
        instance_name=owner.name,
        instance_uuid=owner.uuid,
        disk=owner.disks.index(uuid),
        amount=op.amount,
        absolute=op.absolute,
        wait_for_sync=op.wait_for_sync,
        ignore_ipolicy=op.ignore_ipolicy,
    )
    return InstanceGrowDisk(inner, ctx)

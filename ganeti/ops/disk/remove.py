"""Destroy a disk that belongs to no instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.opcodes.disk import OpDiskRemove
from ganeti.ops.operation import Needs
from ganeti.ops.planning import disk_bearer
from ganeti.ops.steps.storage import disks
from ganeti.ops.targets.disk import DiskOperation


class DiskRemove(DiskOperation[OpDiskRemove, None]):
    """Also removes what an interrupted creation left. What is missing already is not a failure."""

    def locks(self) -> Needs:
        ctx = self.ctx
        yield from self.lock_disk(forthcoming=True)
        uuids = sorted(node.uuid for node in disk_bearer.list_nodes(ctx.config, self.disk))
        yield Need(LockLevel.NODE, uuids, shared=True)
        yield Need(LockLevel.NODE_RES, uuids)

    def check(self) -> None:
        config = self.ctx.config
        owner = config.owner(self.disk.uuid)
        if owner is not None:
            index = owner.disks.index(self.disk.uuid)
            raise errors.make_state_error(
                f"disk '{self.op.disk_name}' is disk {index} of instance {owner.name}; detach it"
                f" first, or use gnt-instance modify --disk {index}:remove {owner.name}"
            )
        for node in disk_bearer.list_nodes(config, self.disk):
            if node.offline and not self.op.ignore_failures:
                raise errors.make_state_error(
                    f"node {node.name} is marked offline; what it holds of the disk would stay"
                    " there (--ignore-failures removes the disk from the configuration too)"
                )

    def run(self) -> None:
        ctx, disk = self.ctx, self.disk
        home = disk_bearer.make_bearer(ctx.config, disk)
        if disks.traits(disk).mirrored:
            disks.shutdown(ctx, home, [disk])
        failures = disks.remove(ctx, [disk], home.primary_node)
        if failures and not self.op.ignore_failures:
            raise errors.OpExecError(
                f"disk {disk_bearer.title(disk)} could not be removed and is still known:"
                f" {'; '.join(failures)}"
            )
        for failure in failures:
            ctx.warn(f"left over: {failure}")
        for node in disk_bearer.list_nodes(ctx.config, disk):
            if not node.offline:
                disks.remove_directories(ctx, node, [disk])

        def edit(draft: Draft) -> None:
            draft.remove_disk(disk)

        ctx.store.change("disk-remove", ctx.author, edit)

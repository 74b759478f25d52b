"""Make a disk of an instance larger."""

from __future__ import annotations

from dataclasses import replace

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.instance_disks import OpInstanceGrowDisk
from ganeti.ops import annotate, checks, locks, policy
from ganeti.ops import hooks as hook_env
from ganeti.ops.instance import disks, hotplug, space, sync, wipe
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.rpc.calls import NodeCalls


class InstanceGrowDisk(Operation[OpInstanceGrowDisk, None]):
    """First all nodes say that they can, then all do it. What has grown does not shrink again."""

    def locks(self) -> Needs:
        found = yield from locks.with_disks(
            self.ctx, self.op.instance_name, self.op.instance_uuid
        )
        self.uuid = found.uuid

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        config = ctx.config
        self.instance = config.instances[self.uuid]
        self.disk = disks.by_index(config, self.instance, op.disk)
        if not disks.traits(self.disk).growable:
            raise errors.OpPrereqError(
                f"disks of template {self.disk.dev_type} cannot grow", errors.ErrorCode.INVAL
            )
        self.amount = op.amount - self.disk.size if op.absolute else op.amount
        if self.amount < 0:
            raise errors.OpPrereqError(
                f"disk {op.disk} of {self.instance.name} has {self.disk.size} MiB; disks cannot"
                f" shrink to {op.amount} MiB",
                errors.ErrorCode.STATE,
            )
        self.nodes = disks.nodes_of(config, self.disk, self.instance.primary_node)
        checks.all_online(self.nodes, f"to grow a disk of {self.instance.name}")
        self._check_policy()
        space.check(
            ctx,
            [space.growth(self.disk, self.amount)],
            self.instance.primary_node,
            f"a larger disk {op.disk} of {self.instance.name}",
        )

    def _check_policy(self) -> None:
        config = self.ctx.config
        before = policy.shape(config, self.instance)
        sizes = list(before.disks)
        sizes[self.op.disk] += self.amount
        after = replace(before, disks=sizes)
        checks.shape_allowed(
            self.ctx,
            self.nodes[-1].group,
            after,
            before=before,
            ignore=self.op.ignore_ipolicy,
        )

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        env = {
            **hook_env.instance_env(config, instance),
            "DISK": self.op.disk,
            "AMOUNT": self.op.amount,
            "ABSOLUTE": self.op.absolute,
        }
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        return Hooks("disk-grow", "INSTANCE", env, nodes, nodes)

    def run(self) -> None:
        ctx, instance = self.ctx, self.instance
        if not self.amount:
            ctx.log(f"Disk {self.op.disk} has {self.disk.size} MiB already")
            return
        with disks.activated(ctx, instance, [self.disk]):
            self._grow()
            ctx.release(LockLevel.NODE_RES)
            ctx.downgrade(LockLevel.INSTANCE)
            hotplug.resized(ctx, ctx.config.instances[self.uuid], self.op.disk)
            if self.op.wait_for_sync:
                self._wait()

    def _grow(self) -> None:
        ctx = self.ctx
        ctx.log(
            f"Growing disk {self.op.disk} of instance '{self.instance.name}' by {self.amount} MiB"
            f" to {self.disk.size + self.amount} MiB"
        )
        for node in self.nodes:
            self._tell(node, dry_run=True, backing=True)
        grown: list[str] = []
        for node in self.nodes:
            try:
                self._tell(node, dry_run=False, backing=True)
            except errors.GanetiError as err:
                if not grown:
                    raise
                raise errors.OpExecError(
                    f"disk {self.op.disk} has grown on {', '.join(grown)}, but not on"
                    f" {node.name}: {errors.text(err)}. The instance has lost nothing and sees the"
                    " old size; cure the cause and grow the disk again"
                ) from err
            grown.append(node.name)
        self._tell(self.nodes[-1], dry_run=False, backing=False)
        wipe.part(ctx, self.instance, self.disk, self.disk.size, self.amount)

        def edit(draft: Draft) -> None:
            larger = disks.grown(self.disk, self.amount)
            draft.update(self.disk, size=larger.size, children=larger.children)

        ctx.store.change("instance-grow-disk", ctx.author, edit)

    def _tell(self, node: Node, *, dry_run: bool, backing: bool) -> None:
        config = self.ctx.config
        exclusive = bool(config.ndparams(node).get("exclusive_storage"))
        wire = annotate.disk(config, self.disk, node.group)
        self.ctx.rpc.one(
            node, NodeCalls.blockdev_grow, wire, self.amount, dry_run, backing, exclusive
        )

    def _wait(self) -> None:
        larger = disks.by_index(self.ctx.config, self.instance, self.op.disk)
        if sync.wait(self.ctx, self.instance, [larger]) is sync.Outcome.DEGRADED:
            self.ctx.warn("disk syncing has not returned a good status; see gnt-instance info")

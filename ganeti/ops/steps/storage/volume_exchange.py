"""New volumes for one side of mirrored disks, on the same node.

DRBD 8.4 keeps one pair of volumes a side, so this side has no good data from the exchange until
the new volumes are in sync. To keep that short, one disk is done after the other, and the new
volumes are complete before the old ones are detached. Those are kept, renamed, until the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import disk_layout
from ganeti.ops.steps.storage import disks, sync
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeDisk


def run(
    ctx: Context,
    instance: Instance,
    chosen: Sequence[Disk],
    target: Node,
    *,
    early_release: bool,
) -> None:
    """Replace the volumes of active disks on one of their nodes.

    Raises:
        OpExecError: a disk did not get in sync; its old volumes are kept, the text names them.
    """
    for number, disk in enumerate(chosen, 1):
        exchange = _Exchange(ctx, instance, disk, target)
        exchange.make()
        if number == len(chosen):
            ctx.release(LockLevel.NODE_RES)
        exchange.swap()
        # From here on there is no way back that would be better than the one ahead.
        ctx.undo.pop_all()
        if early_release:
            exchange.remove_old()
            continue
        exchange.wait()
        exchange.remove_old()
    if early_release:
        _wait_for_all(ctx, instance, chosen)


def _wait_for_all(ctx: Context, instance: Instance, chosen: Sequence[Disk]) -> None:
    if sync.wait(ctx, instance, chosen) is sync.Outcome.DEGRADED:
        raise errors.OpExecError(
            f"the new volumes of {instance.name} are not in sync; its data is on one node only"
        )


class _Exchange:
    """One disk whose volumes are exchanged on one node."""

    def __init__(self, ctx: Context, instance: Instance, disk: Disk, node: Node) -> None:
        self._ctx = ctx
        self._instance = instance
        self._disk = disk
        self._node = node
        self._fresh = disk_layout.make_volumes(disk)
        self._aside = tuple(
            base.replace(
                child,
                logical_id=(
                    child.logical_id[0],
                    f"{child.logical_id[1]}_replaced-{int(ctx.clock.now())}",
                ),
            )
            for child in disk.children
        )
        #: old volumes that there are; a broken disk may have lost them
        self._kept: list[Disk] = []

    def make(self) -> None:
        """Make the new volumes; removed again on failure."""
        self._ctx.log(f"Adding new volumes on {self._node.name} for {self._disk.iv_name}")
        for part in self._fresh:
            disks.create_part(self._ctx, self._instance, part, self._node, name=self._disk.iv_name)

    def swap(self) -> None:
        """Let the disk go on with the new volumes under the names of the old ones."""
        ctx, node = self._ctx, self._node
        old = [self._wire(child) for child in self._disk.children]
        there = [ctx.rpc.call_one(node, NodeCalls.blockdev_find, child) for child in old]
        ctx.log(f"Detaching {self._disk.iv_name} from its old volumes")
        ctx.undo.callback(self._attach_old)
        ctx.rpc.call_one(node, NodeCalls.blockdev_removechildren, self._wire(self._disk), old)
        ctx.log("Renaming the old volumes, then the new ones to their names")
        for child, aside, found in zip(self._disk.children, self._aside, there):
            if found is not None:
                self._rename(child, aside)
                self._kept.append(aside)
        for child, part in zip(self._disk.children, self._fresh):
            self._rename(part, child)
        ctx.log(f"Adding the new volumes to {self._disk.iv_name}")
        ctx.rpc.call_one(node, NodeCalls.blockdev_addchildren, self._wire(self._disk), old)
        self._connect()

    def _connect(self) -> None:
        """Let both sides look for each other: after a split brain they do not by themselves."""
        ctx = self._ctx
        nodes = [ctx.config.nodes[uuid] for uuid in self._disk.logical_id[:2]]
        wire = [self._wire(self._disk)]
        for uuid, answer in ctx.rpc.call_many(
            nodes, NodeCalls.drbd_attach_net, wire, False
        ).items():
            self._try(f"connecting the side on {ctx.config.nodes[uuid].name}", answer.get)

    def _rename(self, before: Disk, after: Disk) -> None:
        """Rename a volume; back on failure."""
        self._ctx.undo.callback(self._try, "renaming back", self._rename_now, after, before)
        self._rename_now(before, after)

    def _rename_now(self, before: Disk, after: Disk) -> None:
        self._ctx.rpc.call_one(
            self._node,
            NodeCalls.blockdev_rename,
            [(self._wire(before), list(after.logical_id))],
        )

    def _attach_old(self) -> None:
        """Undo: go on with the old volumes, which the other side fills with what they missed."""
        old = [self._wire(child) for child in self._disk.children]
        self._try(
            "attaching the old volumes",
            self._ctx.rpc.call_one,
            self._node,
            NodeCalls.blockdev_addchildren,
            self._wire(self._disk),
            old,
        )

    def _try(self, what: str, step: Callable[..., object], *args: object) -> None:
        try:
            step(*args)
        except errors.GanetiError as err:
            self._ctx.warn(f"{what} of {self._disk.iv_name} failed: {errors.text(err)}")

    def wait(self) -> None:
        """Until the new volumes are in sync.

        Raises:
            OpExecError: they are not; the old ones are kept.
        """
        outcome = sync.wait(self._ctx, self._instance, [self._disk])
        if outcome is not sync.Outcome.SYNCED:
            names = join_names("/".join(part.logical_id) for part in self._kept)
            raise errors.OpExecError(
                f"the new volumes of {self._disk.iv_name} of {self._instance.name} on"
                f" {self._node.name} are not in sync ({outcome.value}); its data is on the other"
                f" node. The old volumes are kept: {names or 'none were left'}"
            )

    def remove_old(self) -> None:
        """Destroy the old volumes; a failure is only reported."""
        self._ctx.log(f"Removing the old volumes of {self._disk.iv_name}")
        for part in self._kept:
            for failure in disks.remove_from(
                self._ctx, part, [self._node], name=self._disk.iv_name
            ):
                self._ctx.warn(f"left over: {failure}")

    def _wire(self, disk: Disk) -> NodeDisk:
        return annotate.disk(self._ctx.config, disk, self._node.group)

"""Another secondary node for the mirrored disks of an instance.

A DRBD 8.4 device has one peer, so the old secondary node is disconnected when the new one takes its
place. It keeps its volumes until the new ones are in sync: until then every failure leads back
to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.steps.storage import disks, sync
from ganeti.rpc.calls import NodeCalls


def run(
    ctx: Context,
    instance: Instance,
    old: Sequence[Disk],
    new: Sequence[Disk],
    *,
    early_release: bool,
) -> None:
    """Move the second copy of active disks; ``new`` are the same disks on their new nodes.

    Raises:
        OpExecError: the copy on the new node is not in sync; the old one is in use again.
    """
    _Move(ctx, instance, old, new).run(early_release=early_release)


class _Move:
    """One change of the secondary node."""

    def __init__(
        self, ctx: Context, instance: Instance, old: Sequence[Disk], new: Sequence[Disk]
    ) -> None:
        self._ctx = ctx
        self._instance = instance
        self._old = list(old)
        self._new = list(new)
        self._primary = ctx.config.nodes[instance.primary_node]
        self._old_node = self._find_other_node(old[0])
        self._new_node = self._find_other_node(new[0])

    def _find_other_node(self, disk: Disk) -> Node:
        [uuid] = [uuid for uuid in disk.nodes if uuid != self._primary.uuid]
        return self._ctx.config.nodes[uuid]

    def run(self, *, early_release: bool) -> None:
        ctx = self._ctx
        self._make()
        ctx.release(LockLevel.NODE_RES, keep=[self._old_node.uuid])
        self._let_go()
        self._record()
        self._connect()
        if early_release:
            ctx.undo.pop_all()
            self._remove_old()
        outcome = sync.wait(ctx, self._instance, self._new)
        if outcome is sync.Outcome.DEGRADED:
            raise errors.OpExecError(
                f"the copy of {self._instance.name} on {self._new_node.name} did not get in sync"
                + ("" if early_release else f"; {self._old_node.name} is its secondary node again")
            )
        ctx.undo.pop_all()
        if outcome is sync.Outcome.LEFT:
            ctx.warn(
                f"the old volumes of {self._instance.name} on {self._old_node.name} are kept;"
                " remove them when the new ones are in sync"
            )
        elif not early_release:
            self._remove_old()

    def _make(self) -> None:
        """Volumes and devices on the new node; they do not find the primary node yet."""
        self._ctx.log(f"Adding new disks on {self._new_node.name}")
        for disk in self._new:
            for part in (*disk.children, disk):
                disks.create_part(
                    self._ctx, self._instance, part, self._new_node, name=disk.iv_name
                )

    def _let_go(self) -> None:
        """The old secondary node stops, the primary node works alone."""
        ctx = self._ctx
        ctx.undo.callback(self._go_back)
        if not self._old_node.offline:
            ctx.log(f"Shutting down the disks on {self._old_node.name}")
            for disk in self._old:
                disks.shutdown_on(ctx, disk, self._old_node)
        ctx.log(f"Detaching {self._primary.name} from {self._old_node.name}")
        wire = [annotate.disk(ctx.config, disk, self._primary.group) for disk in self._old]
        ctx.rpc.call_one(self._primary, NodeCalls.drbd_disconnect_net, wire)

    def _go_back(self) -> None:
        """Undo: the old secondary node is used again; failures are only reported."""
        ctx = self._ctx
        ctx.log(f"Going back to {self._old_node.name}")
        try:
            disks.assemble(ctx, self._instance, self._old, ignore_secondaries=True)
            self._attach(self._old, [self._primary, self._old_node])
        except errors.GanetiError as err:
            ctx.warn(
                f"{self._instance.name} has no second copy now: {errors.text(err)}; try"
                " gnt-instance activate-disks, then gnt-instance replace-disks"
            )

    def _record(self) -> None:
        ctx = self._ctx
        ctx.undo.callback(self._put, self._old, "instance-replace-disks-undone")
        self._put(self._new, "instance-replace-disks")

    def _put(self, wanted: Sequence[Disk], name: str) -> None:
        def edit(draft: Draft) -> None:
            for disk in wanted:
                draft.update(
                    disk, nodes=disk.nodes, logical_id=disk.logical_id, children=disk.children
                )

        self._ctx.store.change(name, self._ctx.author, edit)

    def _connect(self) -> None:
        self._ctx.log(f"Attaching {self._primary.name} to {self._new_node.name}")
        self._attach(self._new, [self._primary, self._new_node])

    def _attach(self, wanted: Sequence[Disk], nodes: Sequence[Node]) -> None:
        ctx = self._ctx
        wire = [annotate.disk(ctx.config, disk, self._primary.group) for disk in wanted]
        answers = ctx.rpc.call_many(nodes, NodeCalls.drbd_attach_net, wire, False)
        for answer in answers.values():
            answer.get()

    def _remove_old(self) -> None:
        ctx = self._ctx
        if self._old_node.offline:
            ctx.warn(
                f"the old volumes of {self._instance.name} stay on {self._old_node.name}, which is"
                " offline"
            )
            return
        ctx.log(f"Removing the old disks on {self._old_node.name}")
        for disk in self._old:
            for failure in disks.remove_from(ctx, disk, [self._old_node]):
                ctx.warn(f"left over: {failure}")

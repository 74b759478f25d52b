"""Fail an instance with mirrored disks over to a node that has no copy of them yet.

A DRBD 8.4 device has one peer, so one of the two old nodes gives its place to the new one (Ganeti
2.0 design, "Failover to any node"):

- While the primary node is online, the new node becomes the secondary one under the running guest;
  once it is in sync it takes over, and the old primary node keeps the other copy.
- When the primary node is offline, the secondary one takes over first, and runs the guest
  meanwhile if it has the memory. Its new peer takes over once it is in sync.

No guest ever runs on a copy that is not complete.
"""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.jobs.execution import Need
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.names import AdminState, LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.ops.operation import Context, Needs
from ganeti.ops.planning import checks, disk_layout, placement
from ganeti.ops.steps import node_checks
from ganeti.ops.steps.relocation import destination, failover, secondary_change
from ganeti.ops.steps.storage import disks, space, sync


def wanted(config: Config, instance: Instance, op: OpInstanceFailover) -> Node | None:
    """The node that is asked for, if mirrored disks have no copy there.

    Raises:
        OpPrereqError: it is not known, or the instance is there already.
    """
    name = op.target_node_uuid or op.target_node
    if not name or placement.reach(config, instance) is not placement.Reach.MIRROR:
        return None
    node = config.node(name)
    if node.uuid == instance.primary_node:
        raise errors.invalid(f"instance {instance.name} is on node {node.name} already")
    return None if node.uuid in config.secondary_nodes(instance) else node


class ThirdNodeFailover:
    """One such failover."""

    def __init__(
        self, ctx: Context, instance: Instance, target: Node, op: OpInstanceFailover
    ) -> None:
        if op.iallocator is not None:
            raise errors.invalid("give either a target node or an allocator, not both")
        self._ctx = ctx
        self._op = op
        self._uuid = instance.uuid
        self.target = target
        self._primary = ctx.config.nodes[instance.primary_node]
        [secondary] = ctx.config.secondary_nodes(instance)
        self._secondary = ctx.config.nodes[secondary]
        #: whether the secondary node has to stand in for the primary one
        self._lost = self._primary.offline
        #: whether the guest stays down until the new copy is complete
        self._rests = False

    @property
    def keeper(self) -> Node:
        """The old node that keeps its copy."""
        return self._secondary if self._lost else self._primary

    def locks(self) -> Needs:
        """All three nodes, and what they store."""
        nodes = sorted({self._primary.uuid, self._secondary.uuid, self.target.uuid})
        yield Need(LockLevel.NODE, nodes, shared=True)
        yield Need(LockLevel.NODE_RES, nodes)

    # check -------------------------------------------------------------------------------

    def check(self) -> None:
        """Reads only; OpPrereqError says what stands against it."""
        ctx, op = self._ctx, self._op
        config = ctx.config
        instance = config.instances[self._uuid]
        self.target = config.nodes[self.target.uuid]
        checks.all_online([self.keeper], f"to copy the disks of {instance.name}")
        destination.check_target(ctx, instance, self.target, ignore_ipolicy=op.ignore_ipolicy)
        memory = config.beparams(instance)["maxmem"]
        runs = instance.admin_state is AdminState.UP
        if runs:
            destination.check_memory(ctx, instance, self.target, memory)
        node_checks.can_reach(ctx, self.target, self.keeper)
        self._old = [disk for disk in config.disks_of(instance) if disks.traits(disk).mirrored]
        places = (self.keeper.uuid, self.target.uuid)
        self._new = [disk_layout.on_nodes(ctx, disk, places) for disk in self._old]
        what = f"instance {instance.name}"
        space.check(ctx, self._new, self.keeper.uuid, what, nodes=[self.target.uuid])
        if self._lost:
            self._rests = runs and not self._has_memory(instance, memory)
            self._stand_in = self._takeover(
                self._secondary, start=not self._rests, ignore=op.ignore_consistency
            )
            self._stand_in.check()

    def _has_memory(self, instance: Instance, memory: int) -> bool:
        try:
            destination.check_memory(self._ctx, instance, self._secondary, memory)
        except errors.OpPrereqError as err:
            self._ctx.warn(
                f"{errors.text(err)}; {instance.name} stays down until its disks are complete on"
                f" {self.target.name}"
            )
            return False
        return True

    def _takeover(self, node: Node, *, start: bool, ignore: bool) -> failover.Failover:
        op = self._op
        return failover.Failover(
            self._ctx,
            self._ctx.config.instances[self._uuid],
            node,
            op,
            shutdown_timeout=op.shutdown_timeout,
            ignore_consistency=ignore,
            ignore_ipolicy=op.ignore_ipolicy,
            start=start,
        )

    # run ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Do it.

        Raises:
            OpExecError: a step failed; the text says where the instance is now.
        """
        if self._lost:
            self._stand_in.run()
        try:
            self._bring_copy()
            last = self._takeover(self.target, start=True, ignore=False)
            last.check()
        except errors.GanetiError as err:
            raise errors.OpExecError(self._story(errors.text(err))) from err
        last.run()

    def _story(self, why: str) -> str:
        name = self._ctx.config.instances[self._uuid].name
        where = f"instance {name} is not failed over to {self.target.name} ({why})"
        if not self._lost:
            return f"{where}; it stays on {self._primary.name}"
        text = f"{where}; it is on its old secondary node {self._secondary.name} now"
        return f"{text}, down; try gnt-instance startup {name}" if self._rests else text

    def _bring_copy(self) -> None:
        """Make the target the secondary node of the keeper, and wait until it is in sync."""
        ctx = self._ctx
        instance = ctx.config.instances[self._uuid]
        inactive = self._rests or not instance.disks_active
        if inactive:
            disks.assemble(ctx, instance, ignore_secondaries=True)
        try:
            bad = sync.faulty(ctx, self.keeper, self._old)
            if bad:
                raise errors.OpExecError(
                    f"{join_names(bad)} has no good data on node {self.keeper.name}"
                )
            secondary_change.run(ctx, instance, self._old, self._new, early_release=False)
            if sync.look(ctx, instance, self._new).done:
                return
            raise errors.OpExecError("the new copy is not complete yet")
        finally:
            if inactive:
                for failure in disks.shutdown(ctx, ctx.config.instances[self._uuid]):
                    ctx.warn(failure)

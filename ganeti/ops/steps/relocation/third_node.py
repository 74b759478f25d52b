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

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.ops.operation import Context, Needs
from ganeti.ops.planning import checks, disk_layout, disk_reach, snapshots
from ganeti.ops.steps import node_checks
from ganeti.ops.steps.relocation import destination, failover, secondary_change
from ganeti.ops.steps.storage import disks, space, sync


def find_wanted_node(config: Config, instance: Instance, op: OpInstanceFailover) -> Node | None:
    """The node that is requested, if mirrored disks have no copy there.

    Raises:
        OpPrereqError: it is not known, or the instance is there already.
    """
    name = op.target_node_uuid or op.target_node
    if not name or disk_reach.reach(config, instance) is not disk_reach.Reach.MIRROR:
        return None
    node = config.node(name)
    if node.uuid == instance.primary_node:
        raise errors.make_invalid_error(f"instance {instance.name} is on node {node.name} already")
    return None if node.uuid in config.secondary_nodes(instance) else node


class Preparation:
    """The locks and checks of one such failover."""

    def __init__(
        self, ctx: Context, instance: Instance, target: Node, op: OpInstanceFailover
    ) -> None:
        if op.iallocator is not None:
            raise errors.make_invalid_error("give either a target node or an allocator, not both")
        self.ctx = ctx
        self.op = op
        self.uuid = instance.uuid
        self._target_uuid = target.uuid
        self.primary = ctx.config.nodes[instance.primary_node]
        [secondary] = ctx.config.secondary_nodes(instance)
        self.secondary = ctx.config.nodes[secondary]
        #: whether the secondary node has to stand in for the primary one
        self.lost = self.primary.offline

    @property
    def target(self) -> Node:
        return self.ctx.config.nodes[self._target_uuid]

    @property
    def keeper(self) -> Node:
        """The old node that keeps its copy."""
        return self.secondary if self.lost else self.primary

    def locks(self) -> Needs:
        """All three nodes, and what they store."""
        nodes = sorted({self.primary.uuid, self.secondary.uuid, self._target_uuid})
        yield Need(LockLevel.NODE, nodes, shared=True)
        yield Need(LockLevel.NODE_RES, nodes)

    # check -------------------------------------------------------------------------------

    def check(self) -> ThirdNodeFailover:
        """Make the failover that can be run; reads only. OpPrereqError tells the obstacle."""
        ctx, op = self.ctx, self.op
        config = ctx.config
        instance = config.instances[self.uuid]
        snapshots.check_none(instance, "before its disks get another node")
        checks.all_online([self.keeper], f"to copy the disks of {instance.name}")
        destination.check_target(ctx, instance, self.target, ignore_ipolicy=op.ignore_ipolicy)
        memory = config.beparams(instance)["maxmem"]
        runs = instance.admin_state is AdminState.UP
        if runs:
            destination.check_memory(ctx, instance, self.target, memory)
        node_checks.can_reach(ctx, self.target, self.keeper)
        old = [disk for disk in config.disks_of(instance) if disks.traits(disk).mirrored]
        places = (self.keeper.uuid, self.target.uuid)
        new = [disk_layout.put_on_nodes(ctx, disk, places) for disk in old]
        what = f"instance {instance.name}"
        space.check(ctx, new, self.keeper.uuid, what, nodes=[self.target.uuid])
        if not self.lost:
            return ThirdNodeFailover(self, old, new, None, rests=False)
        rests = runs and not self._has_memory(instance, memory)
        stand_in = self.takeover(self.secondary, start=not rests, ignore=op.ignore_consistency)
        stand_in.check()
        return ThirdNodeFailover(self, old, new, stand_in, rests)

    def _has_memory(self, instance: Instance, memory: int) -> bool:
        try:
            destination.check_memory(self.ctx, instance, self.secondary, memory)
        except errors.OpPrereqError as err:
            self.ctx.warn(
                f"{errors.text(err)}; {instance.name} stays down until its disks are complete on"
                f" {self.target.name}"
            )
            return False
        return True

    def takeover(self, node: Node, *, start: bool, ignore: bool) -> failover.Failover:
        op = self.op
        return failover.Failover(
            self.ctx,
            self.ctx.config.instances[self.uuid],
            node,
            op,
            shutdown_timeout=op.shutdown_timeout,
            ignore_consistency=ignore,
            ignore_ipolicy=op.ignore_ipolicy,
            start=start,
        )


@dataclass(frozen=True)
class ThirdNodeFailover:
    """One such failover, checked and ready to run."""

    prepared: Preparation
    #: the mirrored disks, and the same with the target as one of their nodes
    old: list[Disk]
    new: list[Disk]
    #: how the secondary node takes over first, None while the primary node is there
    stand_in: failover.Failover | None
    #: whether the guest stays down until the new copy is complete
    rests: bool

    @property
    def target(self) -> Node:
        return self.prepared.target

    @property
    def keeper(self) -> Node:
        """The old node that keeps its copy."""
        return self.prepared.keeper

    def run(self) -> None:
        """Do it.

        Raises:
            OpExecError: a step failed; the text says where the instance is now.
        """
        if self.stand_in is not None:
            self.stand_in.run()
        try:
            self._bring_copy()
            last = self.prepared.takeover(self.target, start=True, ignore=False)
            last.check()
        except errors.GanetiError as err:
            raise errors.OpExecError(self._describe_result(errors.text(err))) from err
        last.run()

    def _describe_result(self, reason: str) -> str:
        name = self.prepared.ctx.config.instances[self.prepared.uuid].name
        where = f"instance {name} is not failed over to {self.target.name} ({reason})"
        if not self.prepared.lost:
            return f"{where}; it stays on {self.prepared.primary.name}"
        text = f"{where}; it is on its old secondary node {self.prepared.secondary.name} now"
        return f"{text}, down; try gnt-instance startup {name}" if self.rests else text

    def _bring_copy(self) -> None:
        """Make the target the secondary node of the keeper, and wait until it is in sync."""
        ctx = self.prepared.ctx
        instance = ctx.config.instances[self.prepared.uuid]
        inactive = self.rests or not instance.disks_active
        if inactive:
            disks.assemble(ctx, instance, ignore_secondaries=True)
        try:
            bad = sync.faulty(ctx, self.keeper, self.old)
            if bad:
                raise errors.OpExecError(
                    f"{join_names(bad)} has no good data on node {self.keeper.name}"
                )
            secondary_change.run(ctx, instance, self.old, self.new, early_release=False)
            if sync.query_state(ctx, instance, self.new).done:
                return
            raise errors.OpExecError("the new copy is not complete yet")
        finally:
            if inactive:
                for failure in disks.shutdown(ctx, ctx.config.instances[self.prepared.uuid]):
                    ctx.warn(failure)

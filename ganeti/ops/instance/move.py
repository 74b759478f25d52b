"""Copy the disks of an instance to another node and let it run there.

The instance is stopped meanwhile. Until all disks are copied nothing changes at the source, and
a failure removes the copies; then the target is recorded, and the old disks are removed. With
``live`` an instance that runs is migrated with its disks instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.instance_move import OpInstanceMove
from ganeti.ops import annotate
from ganeti.ops import hooks as hook_env
from ganeti.ops.on_reservations.move import ReservationMove
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.planning import disk_reach, export_request, snapshots
from ganeti.ops.steps.relocation import destination, local_disks, migration, migration_checks
from ganeti.ops.steps.running import power, run_rights
from ganeti.ops.steps.storage import copy_progress, space
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.calls import NodeCalls


@dataclass(frozen=True)
class _Plan:
    source: Node
    target: Node
    #: those that are copied, as they are
    old: list[Disk]
    #: the same disks on the target
    new: list[Disk]
    #: how they go there while the instance runs; None: it is stopped
    sending: local_disks.Sending | None = None


class InstanceMove(
    FindingOperation[OpInstanceMove, NodeUuid, None],
    PlannedInstanceOperation[OpInstanceMove, _Plan, None],
):
    """For instances whose disks are on one node only. Can be canceled while they are copied."""

    cancelable = True
    for_reservation = ReservationMove

    def find(self) -> Finding[NodeUuid]:
        """The node that it moves to."""
        yield from self.lock_instance()
        target = self.ctx.config.node(self.op.target_node_uuid or self.op.target_node).uuid
        yield from self.lock_nodes([self.instance.primary_node, target], storage=True)
        return target

    def decide(self) -> _Plan:
        ctx, op, config = self.ctx, self.op, self.ctx.config
        source = config.nodes[self.instance.primary_node]
        target = config.nodes[self.found]
        name = self.instance.name
        if source.uuid == target.uuid:
            raise errors.make_invalid_error(f"instance {name} is on node {target.name} already")
        export_request.check_compression(config, op.compress)
        if disk_reach.reach(config, self.instance) is not disk_reach.Reach.FIXED:
            raise errors.make_state_error(
                f"the disks of instance {name} (template {config.disk_template(self.instance)})"
                " need not be copied; use gnt-instance migrate or failover"
            )
        wrong = [
            d.iv_name for d in config.disks_of(self.instance) if instance_disks.traits(d).mirrored
        ]
        if wrong:
            raise errors.make_state_error(
                f"{', '.join(wrong)} of instance {name} cannot be copied, as other disks can:"
                " mirrored disks stay on their two nodes"
            )
        snapshots.check_none(self.instance, "before the disks are moved")
        power.primary(ctx, self.instance)
        if op.live and (info := power.query_running(ctx, self.instance)) is not None:
            return self._plan_live(source, target, info.memory)
        destination.check_target(ctx, self.instance, target, ignore_ipolicy=op.ignore_ipolicy)
        # what all nodes see is there already
        old = [
            disk
            for disk in config.disks_of(self.instance)
            if not instance_disks.traits(disk).shared
        ]
        new = [base.replace(disk, nodes=(NodeUuid(target.uuid),)) for disk in old]
        space.check(ctx, new, target.uuid, f"instance {name}")
        if self.instance.admin_state is AdminState.UP:
            memory = config.beparams(self.instance)["maxmem"]
            destination.check_memory(ctx, self.instance, target, memory)
        return _Plan(source, target, old, new)

    def _plan_live(self, source: Node, target: Node, memory: int) -> _Plan:
        ctx, op, name = self.ctx, self.op, self.instance.name
        local_disks.check(ctx, self.instance, target)
        reason = migration_checks.explain_refusal(ctx, self.instance, live=True)
        if reason is not None:
            raise errors.make_state_error(
                f"instance {name} cannot be moved while it runs: {reason}"
            )
        allowed = migration_checks.Allowed(policy=op.ignore_ipolicy)
        migration_checks.check_target(ctx, self.instance, target, memory, allowed)
        sending = local_disks.Sending(op.bandwidth, op.give_up_after)
        return _Plan(source, target, [], [], sending)

    def hooks(self) -> Hooks:
        config, source, target = self.ctx.config, self.plan.source, self.plan.target
        env = hook_env.instance_env(config, self.now)
        env.update(TARGET_NODE=target.name, SHUTDOWN_TIMEOUT=self.op.shutdown_timeout)
        nodes = [config.cluster.master_node, source.uuid, target.uuid]
        return Hooks("instance-move", "INSTANCE", env, nodes, nodes)

    def run(self) -> None:
        ctx, before, plan = self.ctx, self.instance, self.plan
        if plan.sending is not None:
            migration.Migration(
                ctx, before, plan.target, self.op, live=True, sending=plan.sending
            ).run()
            return
        self._stop()
        arrived = destination.place_on_node(before, self.plan.target)
        ctx.log(f"* creating the disks on node {self.plan.target.name}")
        instance_disks.create(ctx, arrived, self.plan.new)
        self._copy(arrived)
        run_rights.revoke(ctx, self.plan.source, before)
        moved = destination.record(ctx, "instance-move", before, self.plan.target)
        # From here on the instance belongs to the target; nothing is taken back.
        ctx.undo.pop_all()
        self._remove_old()
        if before.admin_state is AdminState.UP:
            ctx.log(f"* starting the instance on node {self.plan.target.name}")
            power.start(ctx, moved, self.op)

    def _stop(self) -> None:
        ctx, instance = self.ctx, self.instance
        ctx.log(f"* shutting down the instance on node {self.plan.source.name}")
        power.stop(ctx, instance, self.op, self.op.shutdown_timeout)
        if instance.admin_state is AdminState.UP:
            ctx.undo.callback(self._start_again)
        instance_disks.shutdown(ctx, instance)

    def _start_again(self) -> None:
        try:
            power.start(self.ctx, self.instance, self.op)
        except errors.GanetiError as err:
            self.ctx.warn(f"{self.instance.name} was not started again: {errors.text(err)}")

    def _copy(self, arrived: Instance) -> None:
        """Copy all disks, one after the other; both ends are deactivated afterwards.

        Raises: whatever the nodes say.
        """
        ctx, old = self.ctx, self.plan.old
        ends = ((self.plan.source, self.instance, old), (self.plan.target, arrived, self.plan.new))
        try:
            for node, instance, disks in ends:
                self._activate(node, instance, disks)
            for before, after in zip(old, self.plan.new):
                ctx.log(f"* copying {before.iv_name} ({before.size} MiB)")
                port, token = ctx.rpc.call_one(
                    self.plan.target,
                    NodeCalls.disk_expect,
                    annotate.disk(ctx.config, after, self.plan.target.group),
                    self.plan.target.secondary_ip,
                    self.op.compress,
                )
                copy = ctx.rpc.call_one(
                    self.plan.source,
                    NodeCalls.disk_transfer,
                    annotate.disk(ctx.config, before, self.plan.source.group),
                    self.plan.target.name,
                    (self.plan.target.secondary_ip, port),
                    token,
                    self.op.compress,
                )
                copy_progress.follow(ctx, self.plan.source, copy, before.iv_name)
        finally:
            for node, _instance, disks in ends:
                self._deactivate(node, disks)

    def _activate(self, node: Node, instance: Instance, disks: list[Disk]) -> None:
        wire = annotate.instance(self.ctx.config, instance, disks=disks)
        for index, item in enumerate(wire.disks_info):
            self.ctx.rpc.call_one(node, NodeCalls.blockdev_assemble, item, wire, True, index)

    def _deactivate(self, node: Node, disks: list[Disk]) -> None:
        for disk in disks:
            try:
                wire = annotate.disk(self.ctx.config, disk, node.group)
                self.ctx.rpc.call_one(node, NodeCalls.blockdev_shutdown, wire)
            except errors.GanetiError as err:
                self.ctx.warn(f"{disk.iv_name} stays active on {node.name}: {errors.text(err)}")

    def _remove_old(self) -> None:
        ctx = self.ctx
        ctx.log(f"* removing the disks on node {self.plan.source.name}")
        for disk in self.plan.new:
            for failure in instance_disks.remove_from(ctx, disk, [self.plan.source]):
                ctx.warn(failure)

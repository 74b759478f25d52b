"""Submit jobs that move an instance to another node group."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti.base.json_types import JsonObject
from ganeti.model.ids import GroupUuid
from ganeti.opcodes.instance_move import OpInstanceChangeGroup
from ganeti.ops import hooks as hook_env
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.on_reservations.move import ReservationChangeGroup
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.planning import disk_reach
from ganeti.ops.steps.nodes import departures
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    #: uuids of the node groups that the instance may go to
    groups: list[GroupUuid]
    allocator: str


class InstanceChangeGroup(PlannedInstanceOperation[OpInstanceChangeGroup, _Plan, JsonObject]):
    """The allocator plans the moves; the instance is free again before their jobs begin."""

    for_reservation = ReservationChangeGroup

    def locks(self) -> Needs:
        yield from self.lock_instance()
        yield from self.lock_nodes(self.ctx.config.nodes)

    def decide(self) -> _Plan:
        ctx, config, op = self.ctx, self.ctx.config, self.op
        own = {config.nodes[uuid].group for uuid in config.instance_nodes(self.instance)}
        subject = f"instance {self.instance.name} is"
        groups = disk_reach.choose_other_groups(config, subject, own, op.target_groups)
        name = allocator.choose_allocator(
            ctx, op.iallocator, "an allocator has to plan the way to another group"
        )
        return _Plan(groups, name)

    def hooks(self) -> Hooks:
        env = hook_env.instance_env(self.ctx.config, self.now)
        env["TARGET_GROUPS"] = self.plan.groups
        master = [self.ctx.config.cluster.master_node]
        return Hooks("instance-change-group", "INSTANCE", env, master, master)

    def run(self) -> JsonObject:
        ctx, op = self.ctx, self.op
        moves = allocator.change_group(ctx, self.plan.allocator, [self.instance], self.plan.groups)
        return departures.submit(
            ctx, op, departures.departures(moves), early_release=op.early_release
        )

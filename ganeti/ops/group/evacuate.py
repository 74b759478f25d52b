"""Submit jobs that move all instances of a node group to other groups."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import msgspec

from ganeti.base.json_types import JsonObject
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.group import NodeGroup
from ganeti.model.ids import GroupUuid
from ganeti.model.instance import Instance
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.group import OpGroupEvacuate
from ganeti.opcodes.instance_move import (
    OpInstanceChangeGroup,
    OpInstanceFailover,
    OpInstanceMigrate,
)
from ganeti.opcodes.values import JobDep
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.operation import Finding, FindingOperation, Hooks, PlannedOperation
from ganeti.ops.planning import disk_reach
from ganeti.ops.steps.nodes import departures
from ganeti.ops.steps.nodes.departures import Departure
from ganeti.ops.targets import group as groups


@dataclass(frozen=True)
class _Plan:
    allocator: str
    #: uuids of the node groups that instances may go to
    goals: list[GroupUuid]
    instances: list[Instance]
    reservations: list[Instance]


class GroupEvacuate(
    FindingOperation[OpGroupEvacuate, NodeGroup, JsonObject],
    PlannedOperation[OpGroupEvacuate, _Plan, JsonObject],
):
    """The instances are not locked: each job checks again what it finds."""

    def find(self) -> Finding[NodeGroup]:
        """The group that is evacuated."""
        found = yield from groups.lock(self.ctx, self.op.group_name, shared=True)
        yield Need(LockLevel.NODE, list(self.ctx.config.nodes), shared=True)
        return found

    def decide(self) -> _Plan:
        ctx, config, op = self.ctx, self.ctx.config, self.op
        goals = disk_reach.choose_other_groups(
            config, "the instances are", [self.found.uuid], op.target_groups
        )
        name = allocator.choose_allocator(
            ctx, op.iallocator, "an allocator has to plan the way to other groups"
        )
        items = {
            item.uuid: item
            for node in config.group_nodes(self.found.uuid)
            for item in (*config.primaries[node.uuid], *config.secondaries[node.uuid])
        }
        found = sorted(items.values(), key=lambda item: item.handle)
        return _Plan(
            name,
            goals,
            instances=[item for item in found if not item.forthcoming],
            reservations=[item for item in found if item.forthcoming and not item.interrupted],
        )

    def hooks(self) -> Hooks:
        config, group = self.ctx.config, self.found
        env = {"GROUP_NAME": group.name, "TARGET_GROUPS": self.plan.goals}
        members = [node.uuid for node in config.group_nodes(group.uuid)]
        nodes = [config.cluster.master_node, *members]
        return Hooks("group-evacuate", "GROUP", env, nodes, nodes)

    def preview(self) -> JsonObject:
        return {"jobs": [], "plan": [item.describe() for item in self._departures()]}

    def run(self) -> JsonObject:
        op = self.op
        return departures.submit(self.ctx, op, self._departures(), early_release=op.early_release)

    def _departures(self) -> list[Departure]:
        # Reservations move for free, so they go first and leave room.
        found = [self._move_reservation(item) for item in self.plan.reservations]
        if self.plan.instances:
            plan = self.plan
            moves = allocator.change_group(self.ctx, plan.allocator, plan.instances, plan.goals)
            found += departures.departures(moves)
        if self.op.force_failover:
            found = [_convert_to_failover(item) for item in found]
        return _chain(found) if self.op.sequential else found

    def _move_reservation(self, item: Instance) -> Departure:
        """The move of a reservation, which copies nothing."""
        step = OpInstanceChangeGroup(
            instance_name=item.handle,
            iallocator=self.plan.allocator,
            target_groups=list(self.plan.goals),
        )
        where = f"a group that allocator {self.plan.allocator} chooses"
        return Departure(item.handle, where, [step])


def _convert_to_failover(item: Departure) -> Departure:
    """The same way with the guest stopped meanwhile."""
    return dataclasses.replace(item, steps=[_failover(step) for step in item.steps])


def _failover(step: OpCode) -> OpCode:
    if not isinstance(step, OpInstanceMigrate):
        return step
    return OpInstanceFailover(
        instance_name=step.instance_name,
        target_node=step.target_node,
        ignore_ipolicy=step.ignore_ipolicy,
    )


def _chain(found: list[Departure]) -> list[Departure]:
    """Each job begins when the one before it has ended, however that went."""
    return [
        dataclasses.replace(item, steps=[_make_dependent(item.steps[0]), *item.steps[1:]])
        if number
        else item
        for number, item in enumerate(found)
    ]


def _make_dependent(step: OpCode) -> OpCode:
    return msgspec.structs.replace(step, depends=[JobDep(-1)])

"""Submit jobs that move instances off a node."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.enums import EvacMode, ReplaceDisksMode
from ganeti.opcodes.instance_disks import OpInstanceReplaceDisks
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.opcodes.node import OpNodeEvacuate
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.ops.steps.nodes import departures
from ganeti.ops.targets.node import NodeOperation


@dataclass(frozen=True)
class _Plan:
    #: allocator that chooses the nodes; empty when one is named
    allocator: str
    #: the new secondary node that is named
    remote: Node | None
    instances: list[Instance]
    reservations: list[Instance]


class NodeEvacuate(
    NodeOperation[OpNodeEvacuate, JsonObject],
    PlannedOperation[OpNodeEvacuate, _Plan, JsonObject],
):
    """The instances are not locked: each job checks again what it finds."""

    def locks(self) -> Needs:
        yield from self.lock_node(also=self.ctx.config.nodes, shared=True)

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        remote, name = None, ""
        if op.remote_node_uuid or op.remote_node:
            remote = self._remote(op.remote_node_uuid or op.remote_node or "")
        else:
            name = allocator.choose_allocator(
                ctx, op.iallocator, "name the new secondary node with --new-secondary"
            )
        config, mode = ctx.config, op.mode
        found: dict[str, Instance] = {}
        if mode is not EvacMode.SECONDARY_ONLY:
            found.update((i.uuid, i) for i in config.primaries.get(self.node.uuid, []))
        if mode is not EvacMode.PRIMARY_ONLY:
            found.update((i.uuid, i) for i in config.secondaries.get(self.node.uuid, []))
        items = sorted(found.values(), key=lambda one: one.handle)
        return _Plan(
            name,
            remote,
            instances=[item for item in items if not item.forthcoming],
            reservations=[item for item in items if item.forthcoming and not item.interrupted],
        )

    def _remote(self, wanted: str) -> Node:
        """The named node; OpPrereqError when it cannot be the new secondary one."""
        op = self.op
        if op.iallocator is not None:
            raise errors.make_invalid_error(
                "give either a new secondary node or an allocator, not both"
            )
        remote = self.ctx.config.node(wanted)
        if remote.uuid == self.node.uuid:
            raise errors.make_invalid_error(f"{remote.name} is the node that is evacuated")
        if op.mode is not EvacMode.SECONDARY_ONLY:
            raise errors.make_invalid_error(
                "primary instances cannot move to a node that is given by name: use an"
                " allocator, or --secondary-only"
            )
        return remote

    def run(self) -> JsonObject:
        op = self.op
        return departures.submit(self.ctx, op, self._departures(), early_release=op.early_release)

    def preview(self) -> JsonObject:
        return {"jobs": [], "plan": [item.describe() for item in self._departures()]}

    def _departures(self) -> list[departures.Departure]:
        # Reservations move for free, so they go first and leave room.
        free = [self._move_reservation(item) for item in self.plan.reservations]
        return [*free, *(self._moves() if self.plan.instances else [])]

    def _move_reservation(self, item: Instance) -> departures.Departure:
        """The move of a reservation, which copies nothing."""
        if item.primary_node != self.node.uuid:
            return self._replace_secondary(item)
        step = OpInstanceFailover(instance_name=item.handle, iallocator=self.plan.allocator)
        return departures.Departure(item.handle, self._target_text, [step])

    def _replace_secondary(self, item: Instance) -> departures.Departure:
        """To the node that was given, or to one that the allocator chooses when the job runs."""
        remote = None if self.plan.remote is None else self.plan.remote.name
        step = OpInstanceReplaceDisks(
            instance_name=item.handle,
            disks=[],
            mode=ReplaceDisksMode.NEW_SECONDARY,
            remote_node=remote,
            iallocator=self.plan.allocator or None,
        )
        goal = f"node {remote}" if remote else self._target_text
        return departures.Departure(item.handle, goal, [step])

    @property
    def _target_text(self) -> str:
        return f"a node that allocator {self.plan.allocator} chooses"

    def _moves(self) -> list[departures.Departure]:
        if self.plan.remote is not None:
            return [self._replace_secondary(item) for item in self.plan.instances]
        moves = allocator.evacuate(
            self.ctx,
            self.plan.allocator,
            self.plan.instances,
            str(self.op.mode),
            self.node,
            soft_errors=bool(self.op.ignore_soft_errors),
        )
        return departures.departures(moves)

"""Submit jobs that bring instances away from a node."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.enums import EvacMode, ReplaceDisksMode
from ganeti.opcodes.instance_disks import OpInstanceReplaceDisks
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.opcodes.node import OpNodeEvacuate
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.allocator import request
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.steps.nodes import departures


class NodeEvacuate(Operation[OpNodeEvacuate, dict[str, Any]]):
    """The instances are not locked: each job checks again what it finds."""

    def locks(self) -> Needs:
        self.node = self.ctx.config.node(self.op.node_uuid or self.op.node_name)
        yield Need(LockLevel.NODE, list(self.ctx.config.nodes), shared=True)

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        self.remote: Node | None = None
        self.allocator = ""
        wanted = op.remote_node_uuid or op.remote_node
        if wanted is None:
            self.allocator = allocator.chosen(
                ctx, op.iallocator, "name the new secondary node with --new-secondary"
            )
        else:
            self._check_remote(wanted)
        config, mode = ctx.config, op.mode
        found: dict[str, Instance] = {}
        if mode is not EvacMode.SECONDARY_ONLY:
            found.update((i.uuid, i) for i in config.primaries.get(self.node.uuid, []))
        if mode is not EvacMode.PRIMARY_ONLY:
            found.update((i.uuid, i) for i in config.secondaries.get(self.node.uuid, []))
        instances = sorted(found.values(), key=lambda one: one.handle)
        self.instances = [item for item in instances if not item.forthcoming]
        self.reserved = [item for item in instances if item.forthcoming and not item.interrupted]

    def _check_remote(self, wanted: str) -> None:
        op = self.op
        if op.iallocator is not None:
            raise errors.invalid("give either a new secondary node or an allocator, not both")
        self.remote = self.ctx.config.node(wanted)
        if self.remote.uuid == self.node.uuid:
            raise errors.invalid(f"{self.remote.name} is the node that instances are to leave")
        if op.mode is not EvacMode.SECONDARY_ONLY:
            raise errors.invalid(
                "primary instances cannot be brought to a node that is given by name: use an"
                " allocator, or --secondary-only"
            )

    def run(self) -> dict[str, Any]:
        op = self.op
        return departures.submit(self.ctx, op, self._plan(), early_release=op.early_release)

    def preview(self) -> dict[str, Any]:
        return {"jobs": [], "plan": [item.shown() for item in self._plan()]}

    def _plan(self) -> list[departures.Departure]:
        # Reservations move for free, so they go first and leave room.
        free = [self._free_move(item) for item in self.reserved]
        return [*free, *(self._moves() if self.instances else [])]

    def _free_move(self, item: Instance) -> departures.Departure:
        """The new place of a reservation."""
        if item.primary_node != self.node.uuid:
            return self._new_secondary(item)
        step = OpInstanceFailover(instance_name=item.handle, iallocator=self.allocator)
        return departures.Departure(item.handle, self._anywhere, [step])

    def _new_secondary(self, item: Instance) -> departures.Departure:
        """To the node that was given, or to one that the allocator chooses when the job runs."""
        remote = None if self.remote is None else self.remote.name
        step = OpInstanceReplaceDisks(
            instance_name=item.handle,
            disks=[],
            mode=ReplaceDisksMode.NEW_SECONDARY,
            remote_node=remote,
            iallocator=self.allocator or None,
        )
        goal = f"node {remote}" if remote else self._anywhere
        return departures.Departure(item.handle, goal, [step])

    @property
    def _anywhere(self) -> str:
        return f"a node that allocator {self.allocator} chooses"

    def _moves(self) -> list[departures.Departure]:
        if self.remote is not None:
            return [self._new_secondary(item) for item in self.instances]
        moves = allocator.moves(
            self.ctx,
            self.allocator,
            request.node_evacuate([item.name for item in self.instances], str(self.op.mode)),
            soft_errors=bool(self.op.ignore_soft_errors),
        )
        return departures.departures(moves)

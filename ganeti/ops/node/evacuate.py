"""Submit jobs that bring instances away from a node."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import EvacMode, ReplaceDisksMode
from ganeti.opcodes.instance_disks import OpInstanceReplaceDisks
from ganeti.opcodes.instance_move import OpInstanceFailover
from ganeti.opcodes.node import OpNodeEvacuate
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.allocator import request
from ganeti.ops.node import leaving
from ganeti.ops.operation import Needs, Operation


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
        self.reserved = [
            item for item in instances if item.forthcoming and not item.interrupted
        ]

    def _check_remote(self, wanted: str) -> None:
        op = self.op
        if op.iallocator is not None:
            raise errors.OpPrereqError(
                "give either a new secondary node or an allocator, not both",
                errors.ErrorCode.INVAL,
            )
        self.remote = self.ctx.config.node(wanted)
        if self.remote.uuid == self.node.uuid:
            raise errors.OpPrereqError(
                f"{self.remote.name} is the node that instances are to leave",
                errors.ErrorCode.INVAL,
            )
        if op.mode is not EvacMode.SECONDARY_ONLY:
            raise errors.OpPrereqError(
                "primary instances cannot be brought to a node that is given by name: use an"
                " allocator, or --secondary-only",
                errors.ErrorCode.INVAL,
            )

    def run(self) -> dict[str, Any]:
        ctx, op = self.ctx, self.op
        names = [item.name for item in self.instances]
        # they move for free, so they go first and leave room
        free = leaving.submit_all(ctx, op, [[self._free_move(item)] for item in self.reserved])
        if not names:
            return free
        return {"jobs": [*free["jobs"], *self._move(names)["jobs"]]}

    def _free_move(self, item: Instance) -> OpCode:
        """The new place of a reservation."""
        if item.primary_node == self.node.uuid:
            return OpInstanceFailover(instance_name=item.handle, iallocator=self.allocator)
        return OpInstanceReplaceDisks(
            instance_name=item.handle,
            disks=[],
            mode=ReplaceDisksMode.NEW_SECONDARY,
            remote_node=None if self.remote is None else self.remote.name,
            iallocator=self.allocator or None,
        )

    def _move(self, names: list[str]) -> dict[str, Any]:
        ctx, op = self.ctx, self.op
        if self.remote is not None:
            jobs: list[list[OpCode]] = [
                [
                    OpInstanceReplaceDisks(
                        instance_name=name,
                        disks=[],
                        mode=ReplaceDisksMode.NEW_SECONDARY,
                        remote_node=self.remote.name,
                    )
                ]
                for name in names
            ]
            return leaving.submit_all(ctx, op, jobs, early_release=op.early_release)
        moves = allocator.moves(
            ctx,
            self.allocator,
            request.node_evacuate(names, str(op.mode)),
            soft_errors=bool(op.ignore_soft_errors),
        )
        return leaving.submit(ctx, op, moves, early_release=op.early_release)

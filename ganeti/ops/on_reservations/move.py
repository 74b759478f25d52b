"""Move a reservation to other nodes; only the record changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.ids import GroupUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.enums import ReplaceDisksMode
from ganeti.opcodes.instance_disks import OpInstanceReplaceDisks
from ganeti.opcodes.instance_move import (
    OpInstanceChangeGroup,
    OpInstanceFailover,
    OpInstanceMigrate,
    OpInstanceMove,
)
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.operation import Finding, FindingOperation, PlannedOperation
from ganeti.ops.planning import disk_reach
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps.reservations import place

O = TypeVar("O", bound=OpCode)  # noqa: E741


@dataclass(frozen=True)
class _Found:
    instance: Instance
    #: where it goes
    nodes: list[Node]


class _Move(FindingOperation[O, _Found, Any], PlannedOperation[O, Drafted, Any]):
    """Base of all moves of a reservation; a subclass names the nodes."""

    def instance_of(self) -> tuple[str, str | None]:
        return getattr(self.op, "instance_name"), getattr(self.op, "instance_uuid", None)  # noqa: B009

    @abstractmethod
    def find_named_nodes(self, instance: Instance) -> list[Node] | None:
        """The nodes to go to, None when an allocator chooses. OpPrereqError."""

    def choose(self, instance: Instance) -> list[Node]:
        """Ask the allocator for another primary node, among the nodes of the same group."""
        ctx = self.ctx
        own = ctx.config.nodes.get(instance.primary_node)
        item = place.read_recorded(ctx, instance)
        groups, leave = ([own.group], {own.uuid}) if own else ([], set())
        return place.choose_nodes(
            ctx,
            self._allocator(),
            item,
            groups,
            leave=leave,
            ignore_ipolicy=bool(getattr(self.op, "ignore_ipolicy", False)),
        )

    def _allocator(self) -> str:
        return allocator.choose_allocator(
            self.ctx, getattr(self.op, "iallocator", None), "name a node with --target-node"
        )

    def find(self) -> Finding[_Found]:
        ctx = self.ctx
        instance = yield from place.forthcoming(ctx, *self.instance_of())
        nodes = self.find_named_nodes(instance)
        if nodes is not None:
            yield from place.lock_nodes(ctx, nodes)
            return _Found(instance, nodes)
        yield Need(LockLevel.NODE, list(ctx.config.nodes), shared=True)
        nodes = self.choose(instance)
        uuids = [node.uuid for node in nodes]
        ctx.release(LockLevel.NODE, keep=uuids)
        yield Need(LockLevel.NODE_RES, sorted(uuids))
        return _Found(instance, nodes)

    def decide(self) -> Drafted:
        """The reservation on its new nodes."""
        ctx, found = self.ctx, self.found
        drafted = place.place_on(ctx, place.read_recorded(ctx, found.instance), found.nodes)
        place.check(
            ctx,
            found.instance,
            drafted,
            ignore_ipolicy=bool(getattr(self.op, "ignore_ipolicy", False)),
        )
        return drafted

    def run(self) -> object:
        place.record(self.ctx, "reservation-move", self.plan)
        names = ", ".join(node.name for node in self.found.nodes)
        self.ctx.log(f"Reservation {self.found.instance.handle} is for {names} now")
        return None

    # what subclasses need ------------------------------------------------------------------

    def _nodes(self, names: str) -> list[Node]:
        """Nodes of ``primary`` or ``primary:secondary``."""
        return [self.ctx.config.node(name) for name in names.split(":")]

    def _complete_nodes(self, target: Sequence[Node], instance: Instance) -> list[Node]:
        """Both nodes when only the new primary one is named: it changes with a secondary one."""
        ctx = self.ctx
        needed = place.nodes_needed(place.template_of(ctx, instance))
        nodes = list(target)
        for uuid in ctx.config.instance_nodes(instance)[::-1]:
            if len(nodes) < needed and uuid not in {node.uuid for node in nodes}:
                nodes.append(ctx.config.nodes[uuid])
        if len(nodes) < needed:
            raise errors.make_invalid_error(
                f"{instance.handle} needs {needed} nodes; name them as in --target-node node1:node2"
            )
        return nodes

    def _find_target(
        self, instance: Instance, name: str | None, iallocator: str | None
    ) -> list[Node] | None:
        """By name, by allocator, or else to the secondary node."""
        if name and iallocator:
            raise errors.make_invalid_error("give either a target node or an allocator, not both")
        if name:
            return self._complete_nodes(self._nodes(name), instance)
        nodes = self.ctx.config.instance_nodes(instance)
        if iallocator or len(nodes) < 2:
            return None
        return [self.ctx.config.nodes[uuid] for uuid in nodes[::-1]]


class ReservationFailover(_Move[OpInstanceFailover]):
    """To the secondary node; or to any node, or pair ``node1:node2``, that is named."""

    def find_named_nodes(self, instance: Instance) -> list[Node] | None:
        op = self.op
        return self._find_target(instance, op.target_node_uuid or op.target_node, op.iallocator)


class ReservationMigrate(_Move[OpInstanceMigrate]):
    """The same as a failover: there is no guest to interrupt."""

    def find_named_nodes(self, instance: Instance) -> list[Node] | None:
        op = self.op
        return self._find_target(instance, op.target_node_uuid or op.target_node, op.iallocator)


class ReservationMove(_Move[OpInstanceMove]):
    """To the node that is named; there is nothing to copy."""

    def find_named_nodes(self, instance: Instance) -> list[Node] | None:
        return self._complete_nodes(
            self._nodes(self.op.target_node_uuid or self.op.target_node), instance
        )


class ReservationReplaceDisks(_Move[OpInstanceReplaceDisks]):
    """Another secondary node; there are no disks yet that could be replaced in their place."""

    def find_named_nodes(self, instance: Instance) -> list[Node] | None:
        op, ctx = self.op, self.ctx
        if op.mode is not ReplaceDisksMode.NEW_SECONDARY:
            raise errors.make_state_error(
                f"{instance.handle} is forthcoming and has no disks that could be replaced;"
                f" gnt-instance replace-disks --new-secondary NODE {instance.handle} changes its"
                " secondary node"
            )
        nodes = ctx.config.instance_nodes(instance)
        if len(nodes) < 2:
            raise errors.make_invalid_error(
                f"{instance.handle} has no secondary node: its disks have template"
                f" {place.template_of(ctx, instance)}"
            )
        name = op.remote_node_uuid or op.remote_node
        if not name:
            return None
        return [ctx.config.nodes[nodes[0]], ctx.config.node(name)]

    def choose(self, instance: Instance) -> list[Node]:
        """The primary node stays."""
        config = self.ctx.config
        name = self._allocator()
        primary = config.instance_nodes(instance)[0]
        template = str(place.template_of(self.ctx, instance))
        found = allocator.replace_secondary(self.ctx, name, instance, template)
        return [config.nodes[primary], found]


class ReservationChangeGroup(_Move[OpInstanceChangeGroup]):
    """To any node of another node group; returns no jobs, as it is done at once."""

    def find_named_nodes(self, instance: Instance) -> list[Node] | None:
        self._groups(instance)
        return None

    def _groups(self, instance: Instance) -> list[GroupUuid]:
        """The node groups (uuids) that it may go to; OpPrereqError."""
        config = self.ctx.config
        node = config.nodes.get(instance.primary_node)
        own = set() if node is None else {node.group}
        subject = f"instance {instance.handle} is"
        return disk_reach.choose_other_groups(config, subject, own, self.op.target_groups)

    def choose(self, instance: Instance) -> list[Node]:
        item = place.read_recorded(self.ctx, instance)
        return place.choose_nodes(self.ctx, self._allocator(), item, self._groups(instance))

    def run(self) -> object:
        super().run()
        return {"jobs": []}

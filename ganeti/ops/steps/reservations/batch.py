"""Reserve capacity for several instances: for all of them, or none."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Sequence
from dataclasses import dataclass, field

from ganeti import errors
from ganeti.base.text import plural
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.ids import InstanceUuid, NodeUuid
from ganeti.model.instance import Reservation
from ganeti.model.node import Node
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.allocator.answers import Refused
from ganeti.ops.allocator.new_place import describe_instance
from ganeti.ops.operation import Context, Needs
from ganeti.ops.planning import checks, disk_layout, nics, reservation_draft
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps.reservations import drafts

#: How many reasons an error shows.
_SHOWN = 3


@dataclass
class _Item:
    """One reservation, and the nodes that it gets."""

    op: OpInstanceCreate
    uuid: InstanceUuid
    name: str
    nodes: list[Node] = field(default_factory=list)

    @property
    def handle(self) -> str:
        return self.name or self.uuid


class Batch:
    """One request; :meth:`locks`, :meth:`check` and :meth:`record` in this order."""

    def __init__(
        self,
        ctx: Context,
        wanted: Sequence[OpInstanceCreate],
        reservation: Reservation,
        *,
        iallocator: str | None,
        opportunistic: bool = False,
    ) -> None:
        """OpPrereqError when it cannot be reserved whatever is free."""
        self._ctx = ctx
        self._reservation = reservation
        self._opportunistic = opportunistic
        self._items = [_item(op) for op in wanted]
        self._check_names()
        self._named = [item for item in self._items if item.op.pnode or item.op.pnode_uuid]
        self._open = [item for item in self._items if item not in self._named]
        self._allocator = self._choose_allocator(iallocator)

    def _check_names(self) -> None:
        seen: set[str] = set()
        for item in self._items:
            reservation_draft.check_request(item.op)
            if not item.name:
                continue
            exists = self._ctx.config.has_instance_name(item.name)
            if exists or item.name in seen:
                text = "exists already" if exists else "is in the list twice"
                raise errors.make_exists_error(f"instance '{item.name}' {text}")
            seen.add(item.name)
        if not self._items:
            raise errors.make_invalid_error("there is nothing to reserve")

    def _choose_allocator(self, given: str | None) -> str:
        """Name of the allocator for those that name no node; empty: they get no place."""
        own = {item.op.iallocator for item in self._open if item.op.iallocator}
        if given is not None and own:
            raise errors.make_invalid_error(
                "nodes are chosen for all instances together; name no allocator for single ones"
            )
        if len(own) > 1:
            raise errors.make_invalid_error(
                f"several allocators are named: {', '.join(sorted(own))}"
            )
        for item in self._named:
            if item.op.iallocator:
                raise errors.make_invalid_error("give either nodes or an allocator, not both")
        named = given or next(iter(own), None)
        if not self._open or (named is None and not self._ctx.config.cluster.default_iallocator):
            return ""
        return allocator.choose_allocator(self._ctx, named, "name a node")

    # locks and places --------------------------------------------------------------------

    def locks(self) -> Needs:
        ctx = self._ctx
        yield Need(LockLevel.INSTANCE, (), new=[item.handle for item in self._items])
        for item in self._named:
            item.nodes = _find_named_nodes(ctx, item.op)
        fixed = {node.uuid for item in self._named for node in item.nodes}
        if self._allocator:
            yield Need(
                LockLevel.NODE,
                list(ctx.config.nodes),
                shared=True,
                opportunistic=self._opportunistic and not fixed,
            )
            self._allocate()
        elif fixed:
            yield Need(LockLevel.NODE, sorted(fixed), shared=True)
        used = {node.uuid for item in self._items for node in item.nodes}
        if used:
            ctx.release(LockLevel.NODE, keep=used)
            # what is free stays free until it is recorded
            yield Need(LockLevel.NODE_RES, sorted(used))

    def _allocate(self) -> None:
        """Choose nodes for all that named none; OpPrereqError when one has no place."""
        ctx = self._ctx
        new = [describe_instance(ctx, item.op, item.handle) for item in self._open]
        if len(new) == 1:
            free = None
            if self._opportunistic:
                held = ctx.list_held(LockLevel.NODE)
                free = sorted(ctx.config.nodes[NodeUuid(uuid)].name for uuid in held)
            self._open[0].nodes = allocator.place(ctx, self._allocator, new[0], free)
            return
        found, missing = allocator.place_many(ctx, self._allocator, new)
        if missing:
            raise errors.make_resources_error(
                f"there is room for {len(found)} of {plural(len(new), 'instance')}, so none is"
                f" reserved; {_reasons(missing)}",
                {
                    handle: reason.data
                    for handle, reason in missing.items()
                    if reason.data is not None
                },
            )
        for item in self._open:
            item.nodes = found[item.handle]

    # check and record --------------------------------------------------------------------

    def check(self) -> list[Drafted]:
        """Draft the reservations; OpPrereqError, ReservationError, ParameterError: no fit."""
        ctx = self._ctx
        found = [
            reservation_draft.draft(ctx, item.op, item.uuid, item.nodes, self._reservation)
            for item in self._items
        ]
        nics.refuse_twice(nic for item in found for nic in item.instance.nics)
        drafts.check_room(ctx, found)
        return found

    def record(self, items: Sequence[Drafted]) -> list[str]:
        """Record all in one change; returns their UUIDs."""
        ctx = self._ctx
        drafts.record(ctx, items)
        ctx.locks.keep(ctx.job.job_id, LockLevel.INSTANCE, [item.handle for item in self._items])
        for item in self._items:
            where = ", ".join(node.name for node in item.nodes)
            if where:
                ctx.log(f"Reserved {item.handle} on {where}")
            else:
                ctx.log(
                    f"Reserved {item.handle} without a node: its name and addresses are kept, but"
                    " neither memory nor disk space; gnt-instance failover --target-node NODE"
                    f" {item.handle} reserves them"
                )
        return [item.uuid for item in self._items]


def _item(op: OpInstanceCreate) -> _Item:
    name = checks.host_name(op.instance_name, "an instance") if op.instance_name else ""
    return _Item(op, InstanceUuid(str(uuids.uuid4())), name)


def _find_named_nodes(ctx: Context, op: OpInstanceCreate) -> list[Node]:
    """The nodes that a request names; OpPrereqError if there are none of these names."""
    config = ctx.config
    names = [op.pnode_uuid or op.pnode, op.snode_uuid or op.snode]
    found = [config.node(name) for name in names if name]
    disk_layout.layout(ctx, "", disk_layout.template(ctx, op), [node.uuid for node in found])
    return found


def _reasons(missing: dict[str, Refused]) -> str:
    """Why there is no place; each reason is reported once."""
    reasons = list(dict.fromkeys(reason.text for reason in missing.values() if reason.text))
    return " | ".join(reasons[:_SHOWN]) or "the allocator gives no reason"

"""The nodes that an operation is about: their locks, and the base of operations on one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.ids import NodeUuid
from ganeti.model.node import Node
from ganeti.ops import locks
from ganeti.ops.operation import Context, Finding, Needs, O, Operation, R


class _NamesNode(Protocol):
    node_name: str
    node_uuid: str | None


def lock_several(ctx: Context, names: Iterable[str], *, shared: bool) -> Finding[list[NodeUuid]]:
    """Lock nodes by name or uuid; returns their uuids, each once.

    Raises:
        OpPrereqError: there is no such node, or it was removed while the job waited.
    """
    found = {node.uuid: node for node in map(ctx.config.node, names)}
    yield Need(LockLevel.NODE, list(found), shared=shared)
    for uuid, node in found.items():
        locks.read_again("node", node, ctx.config.nodes.get(uuid))
    return list(found)


class NodeOperation(Operation[O, R]):
    """An operation on one node, which it locks."""

    #: as it was when its lock was granted
    node: Node

    def locks(self) -> Needs:
        yield from self.lock_node()

    def lock_node(self, *, also: Iterable[NodeUuid] = (), shared: bool = False) -> Needs:
        """Lock the node and others, and note it.

        Raises:
            OpPrereqError: there is none, or it was removed while the job waited.
        """
        target = cast(_NamesNode, self.op)
        found = self.ctx.config.node(target.node_uuid or target.node_name)
        yield Need(LockLevel.NODE, list(dict.fromkeys([found.uuid, *also])), shared=shared)
        self.node = locks.read_again("node", found, self.ctx.config.nodes.get(found.uuid))

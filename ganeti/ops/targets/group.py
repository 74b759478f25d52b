"""The lock of the node group that an operation means."""

from __future__ import annotations

from typing import Protocol, cast

from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.group import NodeGroup
from ganeti.ops import locks
from ganeti.ops.operation import Context, Finding, Needs, O, Operation, R


def lock(ctx: Context, name: str, *, shared: bool = False) -> Finding[NodeGroup]:
    """Lock a group; returns it as it is once the lock is held.

    Raises:
        OpPrereqError: there is none, or it was removed or renamed while the job waited.
    """
    found = ctx.config.group(name)
    yield Need(LockLevel.NODEGROUP, [found.uuid], shared=shared)
    return locks.read_again("node group", found, ctx.config.groups.get(found.uuid))


class _NamesGroup(Protocol):
    group_name: str


class GroupOperation(Operation[O, R]):
    """An operation on one node group, which it locks."""

    #: as it was when its lock was granted; nobody else changes it after that
    group: NodeGroup

    def locks(self) -> Needs:
        self.group = yield from lock(self.ctx, cast(_NamesGroup, self.op).group_name)

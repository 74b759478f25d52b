"""The lock of the node group that an operation means."""

from __future__ import annotations

from collections.abc import Generator

from ganeti.jobs.execution import Need
from ganeti.model.group import NodeGroup
from ganeti.model.names import LockLevel
from ganeti.ops import locks
from ganeti.ops.operation import Context


def lock(ctx: Context, name: str) -> Generator[Need, None, NodeGroup]:
    """Lock a group exclusively; gives it as it is once the lock is held.

    Raises:
        OpPrereqError: there is none, or it was removed or renamed while the job waited.
    """
    found = ctx.config.group(name)
    yield Need(LockLevel.NODEGROUP, [found.uuid])
    return locks.still("node group", found, ctx.config.groups)

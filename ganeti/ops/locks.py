"""The lock needs that many operations share."""

from __future__ import annotations

from collections.abc import Generator

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.config import Config
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel
from ganeti.ops.operation import Context


def instance(
    ctx: Context, name: str, uuid: str | None = None, *, shared: bool = False
) -> Generator[Need, None, Instance]:
    """Lock an existing instance; gives it as it is once the lock is held.

    Raises:
        OpPrereqError: there is none, or it was removed or renamed while the job waited.
    """
    found = ctx.config.instance(uuid or name)
    yield Need(LockLevel.INSTANCE, [found.name], shared=shared)
    current = ctx.config.instances.get(found.uuid)
    if current is None or current.name != found.name:
        raise errors.OpPrereqError(
            f"instance '{found.name}' was removed or renamed while this job waited for it",
            errors.ErrorCode.NOENT,
        )
    return current


def real_instance(
    ctx: Context, name: str, uuid: str | None = None
) -> Generator[Need, None, Instance]:
    """Lock an instance that exists as more than a promise; see :func:`instance`."""
    found = yield from instance(ctx, name, uuid)
    if found.forthcoming:
        raise errors.OpPrereqError(
            f"instance '{found.name}' is forthcoming: it was reserved, or its creation did not"
            " end; it can only be removed",
            errors.ErrorCode.STATE,
        )
    return found


def with_disks(
    ctx: Context, name: str, uuid: str | None = None, *, storage: bool = True
) -> Generator[Need, None, Instance]:
    """Lock a real instance with all nodes that hold its disks; gives the instance.

    The nodes are locked shared. With ``storage`` what they store is locked too, exclusively:
    for operations that make, grow or destroy disks.
    """
    found = yield from real_instance(ctx, name, uuid)
    nodes = storage_nodes(ctx.config, found)
    yield Need(LockLevel.NODE, nodes, shared=True)
    if storage:
        yield Need(LockLevel.NODE_RES, nodes)
    return found


def storage_nodes(config: Config, item: Instance) -> list[str]:
    """The primary node and all that hold disks of an instance; forthcoming ones may lack any."""
    found: dict[str, None] = {item.primary_node: None} if item.primary_node else {}
    for uuid in item.disks:
        if uuid in config.disks:
            found.update(dict.fromkeys(config.disks[uuid].nodes))
    return [uuid for uuid in found if uuid in config.nodes]

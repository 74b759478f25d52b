"""The lock needs that many operations share."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TypeVar, cast

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.manager import SET_NAME, LockManager
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.group import NodeGroup
from ganeti.model.instance import Instance
from ganeti.model.names import BGL, LockLevel, NodeUuid
from ganeti.model.network import Network
from ganeti.ops.operation import Context
from ganeti.ops.planning import missing_attributes

U = TypeVar("U", bound=str)
S = TypeVar("S", Instance, Network, NodeGroup)


def create(manager: LockManager, config: Config) -> None:
    """Make the locks of everything in a configuration, and the cluster's."""
    manager.create(LockLevel.CLUSTER, [BGL])
    manager.create(LockLevel.INSTANCE, [i.handle for i in config.instances.values()])
    manager.create(LockLevel.DISK, config.disks)
    manager.create(LockLevel.NODEGROUP, config.groups)
    manager.create(LockLevel.NODE, config.nodes)
    manager.create(LockLevel.NODE_RES, config.nodes)
    manager.create(LockLevel.NETWORK, config.networks)


def follow(manager: LockManager, before: Config, after: Config) -> None:
    """Locks of disks come and go with them; those of other objects are their operations' work."""
    if before.disks is not after.disks:
        manager.create(LockLevel.DISK, after.disks.keys() - before.disks.keys())
        manager.forget(LockLevel.DISK, before.disks.keys() - after.disks.keys())


def still(
    what: str, found: S, now: Mapping[U, S], name: Callable[[S], str] = lambda item: item.name
) -> S:
    """An object as it is now that its lock is held; ``what`` is the word for error texts.

    Raises:
        OpPrereqError: it was removed or renamed while the job waited.
    """
    current = now.get(cast(U, found.uuid))
    if current is None or name(current) != name(found):
        raise errors.not_known(
            f"{what} '{name(found)}' was removed or renamed while this job waited for it"
        )
    return current


def instance(
    ctx: Context, name: str, uuid: str | None = None, *, shared: bool = False
) -> Generator[Need, None, Instance]:
    """Lock an existing instance; gives it as it is once the lock is held.

    Raises:
        OpPrereqError: there is none, or it was removed or renamed while the job waited.
    """
    found = ctx.config.instance(uuid or name)
    yield Need(LockLevel.INSTANCE, [found.handle], shared=shared)
    return still("instance", found, ctx.config.instances, lambda item: item.handle)


def real_instance(
    ctx: Context, name: str, uuid: str | None = None
) -> Generator[Need, None, Instance]:
    """Lock an instance that exists as more than a promise; see :func:`instance`."""
    found = yield from instance(ctx, name, uuid)
    real(ctx.config, found)
    return found


def real(config: Config, found: Instance) -> None:
    """Refuse an instance that is only reserved, or whose creation did not end; OpPrereqError."""
    if found.forthcoming:
        raise errors.wrong_state(missing_attributes.refusal(config, found))


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


def disk(ctx: Context, name: str, *, forthcoming: bool = False) -> Generator[Need, None, Disk]:
    """Lock an existing disk (by uuid, name or ``instance/index``); gives it as it is then.

    The rule for disks: an attached one is guarded by the lock of its instance, a detached one by
    its own, and whoever attaches, detaches, removes, grows or renames one by itself holds both.
    So its instance cannot change while this holds the locks; if it changed while the job waited,
    the locks are asked for again.

    Raises:
        OpPrereqError: there is none, it was removed meanwhile, or it is only a promise (unless
            ``forthcoming``).
    """
    found = ctx.config.disk(name)
    while True:
        owner = ctx.config.owner(found.uuid)
        if owner is not None:
            yield Need(LockLevel.INSTANCE, [owner.handle])
        yield Need(LockLevel.DISK, [found.uuid])
        current, now = ctx.config.disks.get(found.uuid), ctx.config.owner(found.uuid)
        if current is None:
            raise errors.not_known(f"disk '{name}' was removed while this job waited for it")
        if (owner and owner.handle) == (now and now.handle):
            break
        ctx.release(LockLevel.DISK)
        ctx.release(LockLevel.INSTANCE)
    if now is not None:
        real(ctx.config, now)
    if current.forthcoming and not forthcoming:
        end = "" if now else "; gnt-disk remove takes away what there is of it"
        raise errors.wrong_state(
            f"disk '{name}' is forthcoming: it was reserved, or its creation did not end{end}"
        )
    return current


def taken(ctx: Context, level: LockLevel) -> frozenset[str]:
    """Names of a level that a job holds exclusively now: what it may be changing."""
    views = {
        view.name.partition("/")[2]: view.mode == "exclusive"
        for view in ctx.locks.snapshot()
        if view.name.startswith(f"{level.label}/")
    }
    everything = views.pop(SET_NAME, False)
    return frozenset(name for name, exclusive in views.items() if exclusive or everything)


def storage_nodes(config: Config, item: Instance) -> list[NodeUuid]:
    """The primary node and all that hold disks of an instance; forthcoming ones may lack any."""
    found: dict[NodeUuid, None] = {item.primary_node: None} if item.primary_node else {}
    for uuid in item.disks:
        if uuid in config.disks:
            found.update(dict.fromkeys(config.disks[uuid].nodes))
    return [uuid for uuid in found if uuid in config.nodes]

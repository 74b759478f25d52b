"""The lock needs that many operations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ganeti import errors
from ganeti.locking.levels import BGL, LockLevel
from ganeti.locking.manager import LockManager
from ganeti.locking.views import SET_NAME
from ganeti.model.config import Config
from ganeti.model.group import NodeGroup
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.network import Network
from ganeti.model.node import Node
from ganeti.ops.operation import Context

S = TypeVar("S", Instance, Network, Node, NodeGroup)


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


def name_objects(config: Config, lock: str) -> str:
    """``level/name`` of a lock, with the name of the object where the lock has its UUID."""
    level, _, uuid = lock.partition("/")
    kinds: tuple[Mapping[Any, Any], ...] = (
        config.nodes,
        config.groups,
        config.networks,
        config.disks,
    )
    found = next((objects[uuid] for objects in kinds if uuid in objects), None)
    return f"{level}/{found.name}" if found is not None and found.name else lock


def read_again(
    what: str, found: S, current: S | None, name: Callable[[S], str] = lambda item: item.name
) -> S:
    """An object as it is now that its lock is held; ``what`` is the word for error texts.

    ``current`` is what the configuration has under its UUID now.

    Raises:
        OpPrereqError: it was removed or renamed while the job waited.
    """
    if current is None or name(current) != name(found):
        raise errors.make_unknown_error(
            f"{what} '{name(found)}' was removed or renamed while this job waited for it"
        )
    return current


def locked_names(ctx: Context, level: LockLevel) -> frozenset[str]:
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

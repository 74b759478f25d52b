"""The object that a tag operation means, and its lock."""

from __future__ import annotations

from collections.abc import Callable

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.base import Tagged
from ganeti.model.config import Config
from ganeti.model.enums import TagKind
from ganeti.model.instance import Instance
from ganeti.ops.operation import Context, Needs
from ganeti.ops.targets import disk as disk_target


def find(config: Config, kind: str, name: str | None) -> Tagged:
    """The tagged object; OpPrereqError when there is none."""
    if kind == TagKind.CLUSTER:
        return config.cluster
    look_up: dict[TagKind, Callable[[str], Tagged]] = {
        TagKind.DISK: config.disk,
        TagKind.INSTANCE: config.instance,
        TagKind.NODE: config.node,
        TagKind.NODEGROUP: config.group,
        TagKind.NETWORK: config.network,
    }
    if not name:
        raise errors.make_invalid_error(f"a {kind} name is needed")
    return look_up[TagKind(kind)](name)


def lock(ctx: Context, kind: str, name: str | None) -> Needs:
    """The lock of the object, exclusively; none for the cluster, whose changes the store orders."""
    if kind == TagKind.DISK:
        target = find(ctx.config, kind, name)
        yield from disk_target.lock(ctx, target.uuid)
        return
    levels = {
        TagKind.INSTANCE: LockLevel.INSTANCE,
        TagKind.NODE: LockLevel.NODE,
        TagKind.NODEGROUP: LockLevel.NODEGROUP,
        TagKind.NETWORK: LockLevel.NETWORK,
    }
    level = levels.get(TagKind(kind))
    if level is None:
        return
    target = find(ctx.config, kind, name)
    yield Need(level, [target.handle if isinstance(target, Instance) else target.uuid])

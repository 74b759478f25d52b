"""The instance that an operation is about: its lock, and the base of such operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, Protocol, cast

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.opcodes.base import OpCode
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.operation import (
    Context,
    Finding,
    Hooks,
    Needs,
    O,
    Operation,
    P,
    PlannedOperation,
    R,
)
from ganeti.ops.planning import missing_attributes


class _NamesInstance(Protocol):
    instance_name: str
    instance_uuid: str | None


def _target(op: OpCode) -> _NamesInstance:
    """An opcode as one that names an instance."""
    return cast(_NamesInstance, op)


def lock(
    ctx: Context,
    name: str,
    uuid: str | None = None,
    *,
    shared: bool = False,
    new: Iterable[str] = (),
) -> Finding[Instance]:
    """Lock an existing instance, and new names; returns it as it is once the lock is held.

    Raises:
        OpPrereqError: there is none, or it was removed or renamed while the job waited.
    """
    found = ctx.config.instance(uuid or name)
    yield Need(LockLevel.INSTANCE, [found.handle], shared=shared, new=new)
    return locks.read_again(
        "instance", found, ctx.config.instances.get(found.uuid), lambda item: item.handle
    )


def lock_real(
    ctx: Context, name: str, uuid: str | None = None, *, shared: bool = False
) -> Finding[Instance]:
    """Lock an instance that exists as more than a reservation; see :func:`lock`."""
    found = yield from lock(ctx, name, uuid, shared=shared)
    check_real(ctx.config, found)
    return found


def check_real(config: Config, found: Instance) -> None:
    """Refuse an instance that is only reserved, or whose creation did not end; OpPrereqError."""
    if found.forthcoming:
        raise errors.make_state_error(missing_attributes.refusal(config, found))


def lock_with_disks(
    ctx: Context, name: str, uuid: str | None = None, *, storage: bool = True
) -> Finding[Instance]:
    """Lock a real instance with all nodes that hold its disks; returns the instance.

    The nodes are locked shared. With ``storage`` what they store is locked too, exclusively:
    for operations that make, grow or destroy disks.
    """
    found = yield from lock_real(ctx, name, uuid)
    nodes = locks.storage_nodes(ctx.config, found)
    yield Need(LockLevel.NODE, nodes, shared=True)
    if storage:
        yield Need(LockLevel.NODE_RES, nodes)
    return found


class InstanceOperation(Operation[O, R]):
    """An operation on one instance: locks it and its nodes, and runs hooks there."""

    #: operation for an instance that is a reservation; None: the opcode is refused for one
    for_reservation: ClassVar[type[Operation[Any, Any]] | None] = None

    #: as it was when its lock was granted; nobody else changes it after that
    instance: Instance

    @classmethod
    def variant(cls, op: O, ctx: Context) -> type[Operation[O, Any]]:
        if cls.for_reservation is None:
            return cls
        target = _target(op)
        found = ctx.config.find_instance(target.instance_uuid or target.instance_name)
        reserved = found is not None and found.forthcoming and not found.interrupted
        return cls.for_reservation if reserved else cls

    @property
    def now(self) -> Instance:
        """The instance as the configuration has it now: with what the operation changed."""
        return self.ctx.config.instances[self.instance.uuid]

    def locks(self) -> Needs:
        """The instance, and shared the nodes that have its disks."""
        yield from self.lock_instance()
        yield from self.lock_nodes(locks.storage_nodes(self.ctx.config, self.instance))

    def lock_instance(
        self, *, shared: bool = False, new: Iterable[str] = (), forthcoming: bool = False
    ) -> Needs:
        """Lock the instance, and new names, and note it.

        Raises:
            OpPrereqError: there is none, or it does not exist yet (unless ``forthcoming``).
        """
        target = _target(self.op)
        self.instance = yield from lock(
            self.ctx, target.instance_name, target.instance_uuid, shared=shared, new=new
        )
        if not forthcoming:
            check_real(self.ctx.config, self.instance)

    def lock_nodes(self, uuids: Iterable[NodeUuid], *, storage: bool = False) -> Needs:
        """Lock nodes shared; with ``storage`` also, exclusively, what they store."""
        wanted = sorted(set(uuids))
        yield Need(LockLevel.NODE, wanted, shared=True)
        if storage:
            yield Need(LockLevel.NODE_RES, wanted)

    def instance_hooks(self, path: str, env: Mapping[str, object] | None = None) -> Hooks:
        """Hooks on the master and the nodes of the instance, with its variables and ``env``."""
        config, instance = self.ctx.config, self.now
        values = {**hook_env.instance_env(config, instance), **(env or {})}
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        return Hooks(path, "INSTANCE", values, nodes, nodes)


class PlannedInstanceOperation(
    InstanceOperation[O, R], PlannedOperation[O, P, R], Generic[O, P, R]
):
    """An operation on one instance whose checks decide what it does."""

"""The locks of networks: exclusive to change a network, shared to take addresses of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.group import NodeGroup
from ganeti.model.network import Network
from ganeti.model.params import VALUE_NONE
from ganeti.ops import locks
from ganeti.ops.operation import (
    Context,
    Finding,
    FindingOperation,
    Hooks,
    Needs,
    O,
    Operation,
    R,
)
from ganeti.ops.targets import group as group_target


def lock(ctx: Context, name: str) -> Finding[Network]:
    """Lock a network exclusively; returns it as it is once the lock is held.

    Raises:
        OpPrereqError: there is none, or it was removed or renamed while the job waited.
    """
    found = ctx.config.network(name)
    yield Need(LockLevel.NETWORK, [found.uuid])
    return locks.read_again("network", found, ctx.config.networks.get(found.uuid))


def lock_used(ctx: Context, names: Iterable[str | None]) -> Needs:
    """Lock networks that NICs are put into, shared: they stay, and stay connected.

    Raises:
        OpPrereqError: there is no such network.
    """
    given = [name for name in names if name and name != VALUE_NONE]
    uuids = sorted({ctx.config.network(name).uuid for name in given})
    if uuids:
        yield Need(LockLevel.NETWORK, uuids, shared=True)


def group_hooks(ctx: Context, path: str, group: NodeGroup, params: Mapping[str, str]) -> Hooks:
    """Hooks on the nodes of a group, with how the network is connected to it."""
    env = {"GROUP_NAME": group.name}
    env |= {f"GROUP_NETWORK_{key.upper()}": value for key, value in params.items()}
    nodes = [node.uuid for node in ctx.config.group_nodes(group.uuid)]
    return Hooks(path, "NETWORK", env, nodes, nodes)


class _NamesNetwork(Protocol):
    network_name: str


class NetworkOperation(Operation[O, R]):
    """An operation on one network, which it locks."""

    #: as it was when its lock was granted; nobody else changes it after that
    network: Network

    def locks(self) -> Needs:
        self.network = yield from lock(self.ctx, cast(_NamesNetwork, self.op).network_name)


@dataclass(frozen=True)
class Connection:
    """A network, and a node group that it is or will be usable in."""

    network: Network
    group: NodeGroup


class _NamesConnection(_NamesNetwork, Protocol):
    group_name: str


class ConnectionOperation(FindingOperation[O, Connection, R]):
    """An operation on a network and a node group, which it locks."""

    def find(self) -> Finding[Connection]:
        ctx, op = self.ctx, cast(_NamesConnection, self.op)
        ctx.config.network(op.network_name)
        yield from group_target.lock(ctx, op.group_name)
        network = yield from lock(ctx, op.network_name)
        return Connection(network, ctx.config.group(op.group_name))

    @property
    def network(self) -> Network:
        return self.found.network

    @property
    def group(self) -> NodeGroup:
        return self.found.group

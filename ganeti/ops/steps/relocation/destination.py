"""Common parts of moves to another node: the choice of the node, its checks, the record."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base, ipolicy
from ganeti.model.config import Config
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, disk_reach, policy
from ganeti.ops.steps import node_checks
from ganeti.ops.steps.relocation import primary_change
from ganeti.ops.steps.running import bridges


class Request(Protocol):
    """The parameters of an opcode that say where to."""

    @property
    def target_node(self) -> str | None: ...
    @property
    def target_node_uuid(self) -> str | None: ...
    @property
    def iallocator(self) -> str | None: ...


class Destination:
    """New node of an instance: known from the start, or chosen by an allocator once locked."""

    def __init__(
        self, ctx: Context, instance: Instance, request: Request, *, sends_disks: bool = False
    ) -> None:
        """OpPrereqError when the disks do not allow it, or nothing says where to.

        ``sends_disks``: whether disks that are on one node only can go with it.
        """
        self._ctx = ctx
        self._instance = instance
        wanted = None
        if request.target_node_uuid or request.target_node:
            wanted = ctx.config.node(request.target_node_uuid or request.target_node or "")
        if wanted is not None and request.iallocator is not None:
            raise errors.make_invalid_error("give either a target node or an allocator, not both")
        sends_disks = sends_disks and HYPERVISORS.get(instance.real_hypervisor).traits.sends_disks
        found = disk_reach.target(ctx.config, instance, wanted, sends_disks=sends_disks)
        self._makes_disks = disk_reach.reach(ctx.config, instance) is disk_reach.Reach.FIXED
        self._uuid = None if found is None else found.uuid
        self._allocator = ""
        if found is None:
            self._allocator = allocator.choose_allocator(
                ctx, request.iallocator, "name a node with --target-node"
            )

    def locks(self) -> Generator[Need, None, None]:
        """Node locks: of both nodes, or of all that an allocator may choose from."""
        if self._uuid is None:
            # By name, so that those that are not chosen can be released.
            yield Need(LockLevel.NODE, list(self._ctx.config.nodes), shared=True)
        else:
            nodes = sorted({self._instance.primary_node, self._uuid})
            yield Need(LockLevel.NODE, nodes, shared=True)
            if self._makes_disks:
                yield Need(LockLevel.NODE_RES, nodes)

    def node(self) -> Node:
        """The node; asks the allocator at the first call, and releases what is not needed.

        Raises:
            OpPrereqError: the allocator finds no place, or cannot be asked.
        """
        ctx = self._ctx
        if self._uuid is None:
            self._uuid = allocator.relocate(ctx, self._allocator, self._instance).uuid
            ctx.release(LockLevel.NODE, keep=[self._instance.primary_node, self._uuid])
        return ctx.config.nodes[self._uuid]


def check_target(ctx: Context, instance: Instance, node: Node, *, ignore_ipolicy: bool) -> None:
    """Refuse a node that must not or cannot take the instance; OpPrereqError."""
    checks.check_usable(node, f"for instance {instance.name}")
    config = ctx.config
    broken = ipolicy.violations(config.ipolicy(node.group), policy.shape(config, instance))
    if broken:
        text = f"instance policy of the group of node {node.name}: {'; '.join(broken)}"
        if not ignore_ipolicy:
            raise errors.make_invalid_error(f"{text} (--ignore-ipolicy allows it)")
        ctx.warn(text)
    _check_networks(config, instance, node)
    bridges.check(ctx, instance, node)


def _check_networks(config: Config, instance: Instance, node: Node) -> None:
    """Refuse a node whose group is not connected to a network of the instance; OpPrereqError."""
    group = config.groups[node.group]
    uuids = {nic.network for nic in instance.nics if nic.network} - group.networks.keys()
    names = sorted(config.networks[uuid].name for uuid in uuids if uuid in config.networks)
    if names:
        raise errors.make_state_error(
            f"instance {instance.name} needs network {', '.join(names)}, which is not connected to"
            f" node group {group.name} of node {node.name}; see gnt-network connect"
        )


def check_memory(ctx: Context, instance: Instance, node: Node, memory: int) -> None:
    """Refuse a node without so many MiB of free memory; OpPrereqError."""
    node_checks.resources(
        ctx, node, f"instance {instance.name}", memory=(str(instance.real_hypervisor), memory)
    )


def record(ctx: Context, change: str, instance: Instance, node: Node) -> Instance:
    """Make a node the primary one, durably; returns the instance as it is then."""

    def edit(draft: Draft) -> None:
        primary_change.record(draft, instance, node)
        draft.update(instance, primary_node=NodeUuid(node.uuid))

    ctx.store.change(change, ctx.author, edit)
    return ctx.config.instances[instance.uuid]


def place_on_node(instance: Instance, node: Node) -> Instance:
    """The instance as it will be on another node; for calls to that node before the change."""
    return base.replace(instance, primary_node=NodeUuid(node.uuid))

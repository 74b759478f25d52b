"""Find the disks of a node group that are not active or missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.group import OpGroupVerifyDisks
from ganeti.ops import annotate
from ganeti.ops.operation import Finding, FindingOperation
from ganeti.ops.steps.storage.disks import nodes_of
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import Answer
from ganeti.storage.registry import traits_of

T = TypeVar("T")

#: Node -> why it could not be asked; instances to activate; instance -> [node, volume] missing.
Findings = tuple[dict[str, str], list[str], dict[str, list[list[str]]]]


class GroupVerifyDisks(FindingOperation[OpGroupVerifyDisks, GroupUuid, Findings]):
    """Looks at instances whose disks should be active and whose primary node is in the group."""

    def find(self) -> Finding[GroupUuid]:
        """The group; it is not locked, but its instances are."""
        config = self.ctx.config
        group = config.group(self.op.group_name).uuid
        names = [item.name for item in _list_watched(config, group)]
        yield Need(LockLevel.INSTANCE, names, shared=True)
        return group

    def run(self) -> Findings:
        config = self.ctx.config
        held = self.ctx.list_held(LockLevel.INSTANCE)
        instances = [item for item in _list_watched(config, self.found) if item.name in held]
        parts: dict[NodeUuid, list[tuple[Instance, Disk]]] = {}
        mirrors: dict[NodeUuid, list[tuple[Instance, Disk]]] = {}
        for instance in instances:
            for disk in config.disks_of(instance):
                for node in nodes_of(config, disk, instance.primary_node):
                    for part in _leaves(disk):
                        parts.setdefault(node.uuid, []).append((instance, part))
                    if traits_of(disk.dev_type).mirrored:
                        mirrors.setdefault(node.uuid, []).append((instance, disk))
        unreachable: dict[str, str] = {}
        missing = self._find_missing(parts, unreachable)
        inactive = self._inactive(mirrors, unreachable)
        return unreachable, sorted(inactive), missing

    def _find_missing(
        self, parts: dict[NodeUuid, list[tuple[Instance, Disk]]], unreachable: dict[str, str]
    ) -> dict[str, list[list[str]]]:
        found: dict[str, list[list[str]]] = {}
        for uuid, answer in self._ask(NodeCalls.blockdev_getdimensions, parts).items():
            sizes = self._value(answer, unreachable)
            if sizes is None:
                continue
            for (instance, part), size in zip(parts[uuid], sizes):
                if size is None:
                    where = "/".join(str(word) for word in part.logical_id)
                    if not traits_of(part.dev_type).is_volume:
                        where = str(part.logical_id[-1])
                    found.setdefault(instance.name, []).append([answer.node.name, where])
        return found

    def _inactive(
        self, mirrors: dict[NodeUuid, list[tuple[Instance, Disk]]], unreachable: dict[str, str]
    ) -> set[str]:
        found: set[str] = set()
        for uuid, answer in self._ask(NodeCalls.drbd_needs_activation, mirrors).items():
            uuids = set(self._value(answer, unreachable) or ())
            found.update(item.name for item, disk in mirrors[uuid] if disk.uuid in uuids)
        return found

    def _ask(
        self, call: Callable[..., T], wanted: dict[NodeUuid, list[tuple[Instance, Disk]]]
    ) -> dict[NodeUuid, Answer[T]]:
        config = self.ctx.config
        arguments: dict[NodeUuid, tuple[Node, tuple[object, ...]]] = {}
        for uuid, items in wanted.items():
            node = config.nodes[uuid]
            if node.offline:
                continue
            wire = [annotate.disk(config, disk, node.group) for _instance, disk in items]
            arguments[uuid] = (node, (wire,))
        return self.ctx.rpc.call_each(call, arguments)

    def _value(self, answer: Answer[T], unreachable: dict[str, str]) -> T | None:
        """The value, None for a node without answer, which is noted if that counts."""
        if answer.error is None:
            return answer.get()
        text = errors.text(answer.error)
        if self.op.is_strict:
            unreachable[answer.node.name] = text
        else:
            self.ctx.warn(f"not checked: {text}")
        return None


def _list_watched(config: Config, group: GroupUuid) -> Iterator[Instance]:
    """Instances of a group whose disks should be active."""
    for instance in config.instances.values():
        if instance.forthcoming or not instance.disks_active:
            continue
        node = config.nodes.get(instance.primary_node)
        if node is not None and node.group == group:
            yield instance


def _leaves(disk: Disk) -> Iterator[Disk]:
    """The devices that hold the data."""
    if not disk.children:
        yield disk
    for child in disk.children:
        yield from _leaves(child)

"""Correct recorded disk sizes that differ from the real ones."""

from __future__ import annotations

from collections.abc import Iterator

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.ids import InstanceUuid, NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.cluster import OpClusterRepairDiskSizes
from ganeti.ops import annotate, locks
from ganeti.ops.operation import Finding, FindingOperation
from ganeti.rpc.calls import NodeCalls

#: (instance, index of the disk, what, new value), as clients get it.
Change = tuple[str, int, str, int]
_MIB = 1024 * 1024


class ClusterRepairDiskSizes(
    FindingOperation[OpClusterRepairDiskSizes, list[InstanceUuid], list[Change]]
):
    """Asks the primary nodes; disks that cannot be measured stay as they are."""

    def find(self) -> Finding[list[InstanceUuid]]:
        """Lock the real ones of the instances; some may not exist any more then."""
        config = self.ctx.config
        wanted = [config.instance(name) for name in self.op.instances]
        if not self.op.instances:
            wanted = list(config.instances.values())
        real = [item for item in wanted if not item.forthcoming]
        yield Need(LockLevel.INSTANCE, [item.name for item in real])
        uuids = [item.uuid for item in real]
        current = self.ctx.config
        found = [current.instances[uuid] for uuid in uuids if uuid in current.instances]
        nodes = {uuid for item in found for uuid in locks.storage_nodes(current, item)}
        yield Need(LockLevel.NODE, sorted(nodes), shared=True)
        yield Need(LockLevel.NODE_RES, sorted(nodes), shared=True)
        return uuids

    def run(self) -> list[Change]:
        config = self.ctx.config
        #: nodes that did not measure their disks
        failed: list[str] = []
        changes: list[Change] = []
        by_node: dict[NodeUuid, list[tuple[Instance, int, Disk]]] = {}
        for uuid in self.found:
            instance = config.instances.get(uuid)
            if instance is None:
                continue
            for index, disk in enumerate(config.disks_of(instance)):
                by_node.setdefault(instance.primary_node, []).append((instance, index, disk))
        for node_uuid, items in by_node.items():
            node = config.nodes[node_uuid]
            if node.offline:
                self.ctx.warn(f"node {node.name} is offline; its disks are not measured")
                continue
            found = self._repair(node, items)
            if found is None:
                failed.append(node.name)
            changes += found or []
        if failed:
            raise errors.OpExecError(
                f"disks on {join_names(failed)} were not measured;"
                f" {len(changes)} recorded sizes of others were corrected"
            )
        return changes

    def _repair(self, node: Node, items: list[tuple[Instance, int, Disk]]) -> list[Change] | None:
        """Record the real sizes of disks on a node; None when it did not measure them."""
        config = self.ctx.config
        wire = [annotate.disk(config, disk, node.group) for _instance, _index, disk in items]
        try:
            answers = self.ctx.rpc.call_one(node, NodeCalls.blockdev_getdimensions, wire)
        except errors.GanetiError as err:
            self.ctx.warn(f"the disks of node {node.name} are not measured: {errors.text(err)}")
            return None
        changes: list[Change] = []
        for (instance, index, disk), found in zip(items, answers):
            if found is None:
                self.ctx.warn(f"disk {index} of instance {instance.name} cannot be measured")
                continue
            fixed = correct(disk, found[0] // _MIB, found[1])
            if fixed != disk:
                self._record(disk, fixed)
                changes += [
                    (instance.name, index, what, new) for what, new in _find_changes(disk, fixed)
                ]
        return changes

    def _record(self, disk: Disk, fixed: Disk) -> None:
        def edit(draft: Draft) -> None:
            draft.update(disk, size=fixed.size, spindles=fixed.spindles, children=fixed.children)

        self.ctx.store.change("disk-repair-size", self.ctx.author, edit)


def correct(disk: Disk, size: int, spindles: int | None) -> Disk:
    """The disk with its real size (MiB), its data at least as large. Pure."""
    children = disk.children
    if children and children[0].size < size:
        children = (base.replace(children[0], size=size), *children[1:])
    known = disk.spindles if disk.spindles is None or spindles is None else spindles
    return base.replace(disk, size=size, spindles=known, children=children)


def _find_changes(old: Disk, new: Disk) -> Iterator[tuple[str, int]]:
    if old.size != new.size:
        yield "size", new.size
    if new.spindles is not None and old.spindles != new.spindles:
        yield "spindles", new.spindles

"""Create a disk that belongs to no instance.

Until its parts are made it is in the configuration as *forthcoming*, so that whatever a crash
leaves behind is on record and ``gnt-disk remove`` removes it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.ids import DiskUuid
from ganeti.model.node import Node
from ganeti.opcodes.disk import OpDiskCreate
from ganeti.ops.allocator import ask
from ganeti.ops.allocator.request import NewInstance
from ganeti.ops.operation import Finding, FindingOperation, PlannedOperation
from ganeti.ops.planning import checks, disk_bearer, disk_layout, disk_names
from ganeti.ops.planning import tags as tag_rules
from ganeti.ops.steps.storage import disks, space, sync
from ganeti.storage.registry import TEMPLATES


@dataclass(frozen=True)
class _Found:
    uuid: DiskUuid
    template: DiskTemplate
    #: the primary one first
    nodes: list[Node]


class DiskCreate(
    FindingOperation[OpDiskCreate, _Found, str], PlannedOperation[OpDiskCreate, Disk, str]
):
    """Returns the UUID of the disk. It is detached and active nowhere afterwards."""

    def find(self) -> Finding[_Found]:
        ctx = self.ctx
        new = DiskUuid(str(uuid.uuid4()))
        template = disk_layout.template_of_disk(ctx, str(self.op.disk_template), "a disk")
        yield Need(LockLevel.DISK, (), new=[new])
        named = self.op.node_uuids or self.op.nodes
        if named and self.op.iallocator is not None:
            raise errors.make_invalid_error("give either nodes or an allocator, not both")
        if named or TEMPLATES.get(template).traits.shared:
            nodes = self._find_named_nodes(template)
            yield Need(LockLevel.NODE, sorted({n.uuid for n in nodes}), shared=True)
            nodes = self._find_named_nodes(template)
        else:
            name = ask.choose_allocator(
                ctx, self.op.iallocator, "say where to make the disk with --node NAME"
            )
            yield Need(LockLevel.NODE, None, shared=True)
            nodes = ask.place(ctx, name, self._describe(template))
        yield Need(LockLevel.NODE_RES, sorted({node.uuid for node in nodes}))
        return _Found(new, template, nodes)

    def _find_named_nodes(self, template: DiskTemplate) -> list[Node]:
        config = self.ctx.config
        given = [config.node(name) for name in self.op.node_uuids or self.op.nodes]
        return given or [disk_bearer.choose_any_node(config, template)]

    def _describe(self, template: DiskTemplate) -> NewInstance:
        """The disk for an allocator: the smallest instance of the policy, with this disk."""
        item = self.op.disk
        least = self.ctx.config.cluster.ipolicy["minmax"][0]["min"]
        return NewInstance(
            name=item.name or disk_bearer.DIRECTORY,
            template=str(template),
            memory=int(least["memory-size"]),
            vcpus=int(least["cpu-count"]),
            spindle_use=int(least["spindle-use"]),
            disks=[
                {
                    "size": item.size or 0,
                    "mode": str(item.mode or "rw"),
                    "dev_type": str(template),
                }
            ],
            nics=[],
            hypervisor=str(self.ctx.config.cluster.enabled_hypervisors[0]),
            tags=self.op.tags,
            nodes=TEMPLATES.get(template).traits.nodes_needed,
            ignore_policy=True,
        )

    def decide(self) -> Disk:
        """The disk, still without minors."""
        ctx, op, found = self.ctx, self.op, self.found
        tag_rules.check(op.tags)
        name = disk_names.check(ctx.config, op.disk.name)
        for node in found.nodes:
            checks.check_usable(node, "for a new disk")
        if op.disk.adopt is not None:
            raise errors.make_invalid_error(
                "what exists can only be adopted by a new instance (gnt-instance add)"
            )
        layout = disk_layout.layout(
            ctx,
            disk_bearer.DIRECTORY,
            found.template,
            [node.uuid for node in found.nodes],
            file_driver=op.file_driver,
            file_storage_dir=op.file_storage_dir,
        )
        disk = disk_layout.disk(ctx, layout, 0, op.disk)
        tags = tuple(sorted(set(op.tags)))
        disk = base.replace(disk, uuid=found.uuid, name=name, tags=tags)
        space.check(ctx, [disk], found.nodes[0].uuid, "a new disk")
        return disk

    def run(self) -> str:
        ctx = self.ctx
        disk = self._reserve()
        home = disk_bearer.make_bearer(ctx.config, disk)
        disks.create(ctx, home, [disk])
        if disks.traits(disk).mirrored:
            ctx.undo.callback(disks.shutdown, ctx, home, [disk])
            if sync.wait(ctx, home, [disk]) is sync.Outcome.DEGRADED:
                raise errors.OpExecError("the new disk is degraded, so it is removed again")
            disks.shutdown(ctx, home, [disk])

        def edit(draft: Draft) -> None:
            draft.update(disk, forthcoming=None)

        ctx.store.change("disk-ready", ctx.author, edit)
        ctx.undo.pop_all()
        ctx.locks.keep(ctx.job.job_id, LockLevel.DISK, [disk.uuid])
        return disk.uuid

    def _reserve(self) -> Disk:
        """Put the disk into the configuration as forthcoming; undone on failure."""
        ctx, planned = self.ctx, self.plan

        def edit(draft: Draft) -> Disk:
            disk_names.check(draft.config, planned.name)
            disk = draft.number_disk(planned)
            draft.add_disk(base.replace(disk, forthcoming=True))
            return disk

        def undo(draft: Draft) -> None:
            draft.remove_disk(disk)

        disk = ctx.store.change("disk-add", ctx.author, edit)
        ctx.undo.callback(ctx.store.change, "disk-add-undone", ctx.author, undo)
        return disk

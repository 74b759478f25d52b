"""``gnt-instance add --commit``: make an instance out of its reservation.

Its place is its own: what it needs is free as long as nodes do not lose what they had. If it
fails, the reservation is there again as it was. If the master dies on the way,
``gnt-cluster verify`` names it, and committing it again starts over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.constants import OS_IMAGE
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import AdminState
from ganeti.model.ids import DiskUuid
from ganeti.model.instance import Instance, Reservation
from ganeti.model.node import Node
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.instance_create import OpInstanceCreate
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.operation import Finding, FindingOperation
from ganeti.ops.planning import (
    checks,
    cloud_init_settings,
    commit_request,
    disk_layout,
    images,
    missing_attributes,
    reservation_draft,
)
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps import host_names
from ganeti.ops.steps.creation import Creation, CreationPlan
from ganeti.ops.steps.reservations import place
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.ops.targets import instance as instance_target


@dataclass(frozen=True)
class _Found:
    #: the reservation as it is recorded
    reserved: Instance
    #: the reservation with what the commit adds
    whole: Drafted
    #: its nodes, the primary one first
    nodes: list[Node]


class InstanceCommit(FindingOperation[OpInstanceCreate, _Found, list[str]], Creation):
    """Makes an instance out of a reservation, on its nodes."""

    is_reserved = True

    # locks ---------------------------------------------------------------------------------

    def find(self) -> Finding[_Found]:
        op, ctx = self.op, self.ctx
        found = ctx.config.instance(op.instance_name)
        if not found.forthcoming:
            raise errors.make_exists_error(
                f"instance '{found.name}' exists already; there is nothing to commit"
            )
        reserved = yield from place.forthcoming(ctx, found.handle, found.uuid)
        if reserved.removable_only:
            instance_target.check_real(ctx.config, reserved)
        commit_request.check_place(ctx.config, reserved, op)
        whole = self._add_disks(commit_request.complete(ctx.config, reserved, op))
        self._check_complete(whole)
        if reserved.primary_node:
            config = ctx.config
            nodes = [config.nodes[uuid] for uuid in config.instance_nodes(reserved)]
            yield from place.lock_nodes(ctx, nodes)
        else:
            nodes = yield from self._find_place(whole)
        return _Found(reserved, whole, nodes)

    def _add_disks(self, instance: Instance) -> Drafted:
        """The disks that are reserved, or those that the commit adds."""
        op, config = self.op, self.ctx.config
        if instance.disks or not (op.disks or op.disk_template):
            return Drafted(instance, config.disks_of(instance))
        template = disk_layout.template(self.ctx, op)
        disk_layout.check_diskless(template, op.disks)
        disks = [
            reservation_draft.make_unplaced_disk(template, index, item)
            for index, item in enumerate(op.disks)
        ]
        reservation = base.replace(instance.reservation or Reservation(), disk_template=template)
        uuids = tuple(DiskUuid(disk.uuid) for disk in disks)
        return Drafted(base.replace(instance, disks=uuids, reservation=reservation), disks)

    def _check_complete(self, whole: Drafted) -> None:
        """Refuse when something is not known yet; the text names all of it. OpPrereqError."""
        op, config = self.op, self.ctx.config
        instance = whole.instance
        gives_node = bool(op.pnode or op.pnode_uuid or op.iallocator)
        missing = [
            item
            for item in missing_attributes.attributes(config, instance, whole.disks)
            if not (item.name == missing_attributes.NODE and gives_node)
        ]
        image = op.image or instance.osparams.get(OS_IMAGE)
        if not instance.os and not op.no_install and not image:
            missing.append(missing_attributes.find_missing_without_os(instance))
        if missing:
            raise errors.make_invalid_error(
                f"reservation '{instance.handle}' cannot become an instance yet; missing:"
                f" {', '.join(map(str, missing))}"
            )

    def _find_place(self, whole: Drafted) -> Finding[list[Node]]:
        """Nodes for one that has none: those that are named, or that an allocator chooses."""
        op, ctx = self.op, self.ctx
        if op.pnode or op.pnode_uuid:
            names = [op.pnode_uuid or op.pnode, op.snode_uuid or op.snode]
            nodes = [ctx.config.node(name) for name in names if name]
            yield from place.lock_nodes(ctx, nodes)
            return nodes
        yield Need(LockLevel.NODE, list(ctx.config.nodes), shared=True)
        name = allocator.choose_allocator(ctx, op.iallocator, "name a node")
        nodes = place.choose_nodes(ctx, name, whole, [], ignore_ipolicy=op.ignore_ipolicy)
        uuids = [node.uuid for node in nodes]
        ctx.release(LockLevel.NODE, keep=uuids)
        yield Need(LockLevel.NODE_RES, sorted(uuids))
        return nodes

    # check ---------------------------------------------------------------------------------

    def decide(self) -> CreationPlan:
        ctx, op, reserved = self.ctx, self.op, self.found.reserved
        name = reserved.name
        if op.mode is not InstCreateMode.CREATE:
            raise errors.make_invalid_error(
                f"creation mode {op.mode} is not for reservations; only create is"
            )
        host_names.choose_name(name, name_check=op.name_check, ip_check=op.ip_check)
        for node in self.found.nodes:
            checks.check_usable(node, f"for instance {name}")
        whole = self._place()
        instance = whole.instance
        hypervisor = checks.hypervisor_enabled(ctx, instance.real_hypervisor)
        made = base.replace(
            instance,
            hvparams=checks.check_hvparams(ctx, hypervisor, instance.os, {}, instance.hvparams),
            admin_state=AdminState.DOWN,
            forthcoming=None,
            creating=None,
            reservation=None,
            image=images.find_uuid(ctx.config, op),
            cloud_init=cloud_init_settings.make(op, hypervisor),
        )
        if op.image and instance.os:
            raise errors.make_invalid_error(
                f"reservation '{name}' is for OS {instance.os}; it gets no image"
            )
        image = images.choose_for(ctx.config, op, whole.disks, adopts=False)
        template = place.template_of(ctx, instance, whole.disks)
        plan = CreationPlan(made, list(whole.disks), self.found.nodes, template, False, image)
        if reserved.interrupted:
            ctx.log(
                f"Job {reserved.creating} began to make {name} and was interrupted:"
                " what it made is removed first"
            )
        else:
            self.check_node(plan)
        return plan

    def _place(self) -> Drafted:
        """With places for disks that have none; refused if not all fits. OpPrereqError."""
        found = self.found
        new = [disk for disk in found.whole.disks if not disk.logical_id]
        if found.reserved.primary_node and not new:
            return found.whole
        whole = place.place_on(self.ctx, found.whole, found.nodes)
        place.check(self.ctx, found.reserved, whole, ignore_ipolicy=self.op.ignore_ipolicy)
        return whole

    # run -----------------------------------------------------------------------------------

    def record(self) -> tuple[Instance, list[Disk]]:
        """Note that this job makes it real."""
        ctx, plan, reserved = self.ctx, self.plan, self.found.reserved
        if reserved.interrupted:
            self._remove_remains()
        old_disks = [ctx.config.disks[uuid] for uuid in reserved.disks if uuid in ctx.config.disks]
        needs_port = HYPERVISORS.get(plan.instance.real_hypervisor).traits.needs_port

        def edit(draft: Draft) -> tuple[Instance, list[Disk]]:
            instance = plan.instance
            if needs_port and instance.network_port is None:
                instance = base.replace(instance, network_port=draft.allocate_port())
            disks = [draft.number_disk(disk) for disk in plan.disks]
            for disk in disks:
                draft.put(base.replace(disk, forthcoming=True))
            draft.put(
                base.replace(
                    instance,
                    forthcoming=True,
                    creating=ctx.job.job_id,
                    reservation=reserved.reservation or Reservation(),
                )
            )
            return instance, disks

        instance, disks = ctx.store.change("reservation-commit", ctx.author, edit)
        ctx.undo.callback(self._reserve_again, old_disks, instance, disks)
        return instance, disks

    def _reserve_again(
        self, old_disks: Sequence[Disk], instance: Instance, disks: Sequence[Disk]
    ) -> None:
        """Undo of :meth:`record`."""

        reserved = self.found.reserved

        def edit(draft: Draft) -> None:
            kept = {disk.uuid for disk in old_disks}
            for disk in old_disks:
                draft.put(base.replace(disk, forthcoming=True))
            port = instance.network_port
            if port is not None and reserved.network_port is None:
                draft.release_port(port)
            draft.put(base.replace(reserved, forthcoming=True, creating=None))
            for disk in disks:
                if disk.uuid not in kept:
                    draft.remove_disk(disk)

        self.ctx.store.change("reservation-commit-undone", self.ctx.author, edit)

    def _remove_remains(self) -> None:
        """Remove what an interrupted commit left on the nodes; OpExecError when it stays."""
        ctx, plan = self.ctx, self.plan
        instance_disks.shutdown(ctx, plan.instance, plan.disks)
        failures = instance_disks.remove(ctx, plan.disks, plan.nodes[0].uuid)
        if failures:
            raise errors.OpExecError(
                f"what job {self.found.reserved.creating} left of {plan.instance.name} could not be"
                f" removed: {'; '.join(failures)}"
            )

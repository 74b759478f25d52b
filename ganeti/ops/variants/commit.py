"""``gnt-instance add --commit``: make an instance out of its reservation.

Its place is its own: what it needs is free as long as nodes do not lose what they had. If it
fails, the reservation is there again as it was. If the master dies on the way,
``gnt-cluster verify`` names it, and committing it again begins anew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.jobs.execution import Need
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance, Reservation
from ganeti.model.names import AdminState, DiskUuid, HypervisorName, LockLevel
from ganeti.model.node import Node
from ganeti.model.params import Params
from ganeti.opcodes.enums import InstCreateMode
from ganeti.opcodes.hidden import reveal_all
from ganeti.ops import locks
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.instance.create import InstanceCreate
from ganeti.ops.operation import Needs
from ganeti.ops.planning import (
    checks,
    commit_request,
    disk_layout,
    missing_attributes,
    reservation_draft,
)
from ganeti.ops.planning.reservation_draft import Drafted
from ganeti.ops.steps import host_names
from ganeti.ops.steps.reservations import place
from ganeti.ops.steps.storage import disks as instance_disks


class InstanceCommit(InstanceCreate):
    """Gives the names of the instance's nodes, the primary first."""

    without: Collection[str] | None = None

    # locks ---------------------------------------------------------------------------------

    def locks(self) -> Needs:
        op, ctx = self.op, self.ctx
        found = ctx.config.instance(op.instance_name)
        if not found.forthcoming:
            raise errors.already_exists(
                f"instance '{found.name}' exists already; there is nothing to commit"
            )
        self.reserved: Instance = yield from place.forthcoming(ctx, found.handle, found.uuid)
        if self.reserved.removable_only:
            locks.real(ctx.config, self.reserved)
        self.name = self.reserved.name
        commit_request.check_place(ctx.config, self.reserved, op)
        self.whole = self._with_disks(commit_request.completed(ctx.config, self.reserved, op))
        self._check_complete()
        if self.reserved.primary_node:
            config = ctx.config
            nodes = [config.nodes[uuid] for uuid in config.instance_nodes(self.reserved)]
            yield from place.lock_nodes(ctx, nodes)
            self.nodes = nodes
        else:
            yield from self._find_place()
        self.node = self.nodes[0]

    def _with_disks(self, instance: Instance) -> Drafted:
        """The disks that are reserved, or those that the commit adds."""
        op, config = self.op, self.ctx.config
        if instance.disks or not (op.disks or op.disk_template):
            return Drafted(instance, config.disks_of(instance))
        template = disk_layout.template(self.ctx, op)
        disk_layout.check_diskless(template, op.disks)
        disks = [
            reservation_draft.loose(template, index, item) for index, item in enumerate(op.disks)
        ]
        reservation = base.replace(instance.reservation or Reservation(), disk_template=template)
        uuids = tuple(DiskUuid(disk.uuid) for disk in disks)
        return Drafted(base.replace(instance, disks=uuids, reservation=reservation), disks)

    def _check_complete(self) -> None:
        """Refuse when something is not known yet; the text names all of it. OpPrereqError."""
        op, config = self.op, self.ctx.config
        instance = self.whole.instance
        gives_node = bool(op.pnode or op.pnode_uuid or op.iallocator)
        missing = [
            item
            for item in missing_attributes.attributes(config, instance, self.whole.disks)
            if not (item.name == missing_attributes.NODE and gives_node)
        ]
        if not instance.os and not op.no_install:
            missing.append(missing_attributes.without_os(instance))
        if missing:
            raise errors.invalid(
                f"reservation '{instance.handle}' cannot become an instance yet; it lacks"
                f" {', '.join(map(str, missing))}"
            )

    def _find_place(self) -> Needs:
        """Nodes for one that has none: those that are named, or that an allocator chooses."""
        op, ctx = self.op, self.ctx
        if op.pnode or op.pnode_uuid:
            names = [op.pnode_uuid or op.pnode, op.snode_uuid or op.snode]
            self.nodes = [ctx.config.node(name) for name in names if name]
            yield from place.lock_nodes(ctx, self.nodes)
            return
        yield Need(LockLevel.NODE, list(ctx.config.nodes), shared=True)
        name = allocator.chosen(ctx, op.iallocator, "name a node")
        self.nodes = place.chosen(ctx, name, self.whole, [])
        uuids = [node.uuid for node in self.nodes]
        ctx.release(LockLevel.NODE, keep=uuids)
        yield Need(LockLevel.NODE_RES, sorted(uuids))

    # check ---------------------------------------------------------------------------------

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        if op.mode is not InstCreateMode.CREATE:
            raise errors.invalid(f"creation mode {op.mode} is not for reservations; only create is")
        host_names.new_name(self.name, name_check=op.name_check, ip_check=op.ip_check)
        for node in self.nodes:
            checks.usable_node(node, f"for instance {self.name}")
        self._place_if_needed(self.nodes)
        instance = self.whole.instance
        assert instance.hypervisor is not None
        self.hypervisor = HypervisorName(checks.hypervisor_enabled(ctx, instance.hypervisor))
        self.template = place.template_of(ctx, instance, self.whole.disks)
        self.os = instance.os
        self.hvparams = checks.check_hvparams(ctx, self.hypervisor, self.os, {}, instance.hvparams)
        self.beparams, self.full_be = instance.beparams, ctx.config.beparams(instance)
        self.adopts = False
        self.nics, self.disks = list(instance.nics), list(self.whole.disks)
        self.instance = base.replace(
            instance,
            hvparams=self.hvparams,
            admin_state=AdminState.DOWN,
            forthcoming=None,
            creating=None,
            reservation=None,
        )
        if self.reserved.interrupted:
            ctx.log(
                f"Job {self.reserved.creating} began to make {self.name} and was interrupted:"
                " what it made is removed first"
            )
            return
        self._check_node()

    def _place_if_needed(self, nodes: Sequence[Node]) -> None:
        """Give disks without a place one, and see that all fits if it was not reserved so."""
        new = [disk for disk in self.whole.disks if not disk.logical_id]
        if self.reserved.primary_node and not new:
            return
        self.whole = place.placed(self.ctx, self.whole, nodes)
        place.check(self.ctx, self.reserved, self.whole, ignore_ipolicy=self.op.ignore_ipolicy)

    def _osparams(self) -> Params:
        instance = self.whole.instance
        result: Params = {**instance.osparams, **instance.osparams_private}
        for key, value in reveal_all(self.op.osparams_secret).items():
            if key in result:
                raise errors.invalid(f"OS parameter '{key}' is given more than once")
            result[key] = value
        return result

    # run -----------------------------------------------------------------------------------

    def _promise(self) -> None:
        """Note that this job makes it real."""
        ctx = self.ctx
        if self.reserved.interrupted:
            self._clear()
        old_disks = [
            ctx.config.disks[uuid] for uuid in self.reserved.disks if uuid in ctx.config.disks
        ]
        needs_port = HYPERVISORS.get(self.hypervisor).traits.needs_port

        def edit(draft: Draft) -> None:
            if needs_port and self.instance.network_port is None:
                self.instance = base.replace(self.instance, network_port=draft.allocate_port())
            self.disks = [draft.number_disk(disk) for disk in self.disks]
            for disk in self.disks:
                draft.put(base.replace(disk, forthcoming=True))
            reservation = self.reserved.reservation or Reservation()
            draft.put(
                base.replace(
                    self.instance,
                    forthcoming=True,
                    creating=ctx.job.job_id,
                    reservation=reservation,
                )
            )

        ctx.store.change("reservation-commit", ctx.author, edit)
        ctx.undo.callback(self._reserve_again, old_disks)

    def _reserve_again(self, disks: Sequence[Disk]) -> None:
        """Undo of :meth:`_promise`."""

        def edit(draft: Draft) -> None:
            kept = {disk.uuid for disk in disks}
            for disk in disks:
                draft.put(base.replace(disk, forthcoming=True))
            port = self.instance.network_port
            if port is not None and self.reserved.network_port is None:
                draft.release_port(port)
            draft.put(base.replace(self.reserved, forthcoming=True, creating=None))
            for disk in self.disks:
                if disk.uuid not in kept:
                    draft.remove_disk(disk)

        self.ctx.store.change("reservation-commit-undone", self.ctx.author, edit)

    def _clear(self) -> None:
        """Remove what an interrupted commit left on the nodes; OpExecError when it stays."""
        ctx = self.ctx
        instance_disks.shutdown(ctx, self.instance, self.disks)
        failures = instance_disks.remove(ctx, self.disks, self.node.uuid)
        if failures:
            raise errors.OpExecError(
                f"what job {self.reserved.creating} left of {self.name} could not be removed:"
                f" {'; '.join(failures)}"
            )

"""Change settings, disks or NICs of an instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import changes
from ganeti.opcodes.devices import NicChange
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops import annotate, locks
from ganeti.ops import hooks as hook_env
from ganeti.ops.on_reservations.modify import ReservationModify
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.planning import checks, communication_nic, policy
from ganeti.ops.steps.changes import disk_changes, nic_changes, settings_changes
from ganeti.ops.steps.changes.settings_changes import Row
from ganeti.ops.steps.relocation import primary_change
from ganeti.ops.steps.running import bridges, hotplug, live_conversion, metadata, power
from ganeti.ops.steps.storage import attachment, conversion
from ganeti.ops.targets import network as networks
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import InstanceInfo

#: Hypervisor parameters that a running guest follows at once.
_MEDIA = frozenset({"cdrom_image_path", "cdrom2_image_path", "floppy_image_path"})


@dataclass(frozen=True)
class _Plan:
    primary: Node
    #: what the guest is doing, None when it does not run
    runs: InstanceInfo | None
    settings: settings_changes.Settings
    disks: disk_changes.DiskChanges
    nics: nic_changes.NicChanges
    conversion: conversion.Conversion | None
    #: the node to record as primary one
    new_primary: Node | None
    #: whether devices of the running guest change
    plug: bool


class InstanceSetParams(
    FindingOperation[OpInstanceSetParams, Sequence[NicChange], list[Row]],
    PlannedInstanceOperation[OpInstanceSetParams, _Plan, list[Row]],
):
    """Returns (what, new value) for each change.

    Everything is recorded in one change of the configuration, after new disks are made and
    before old ones are destroyed. A conversion of disks can be canceled until then.
    """

    cancelable = True
    for_reservation = ReservationModify

    def find(self) -> Finding[Sequence[NicChange]]:
        """Changes of NICs, with that of the communication NIC."""
        op, ctx = self.op, self.ctx
        named = [op.pnode_uuid or op.pnode, op.remote_node_uuid or op.remote_node]
        yield from self.lock_instance()
        found = self.instance
        nodes = set(locks.storage_nodes(ctx.config, found))
        changes_disks = bool(op.disks or op.disk_template is not None)
        if changes_disks:
            joining = attachment.candidates(ctx.config, op.disks)
            uuids = {*found.disks, *(disk.uuid for disk in joining)} & set(ctx.config.disks)
            yield Need(LockLevel.DISK, sorted(uuids))
            for disk in attachment.candidates(ctx.config, op.disks):
                nodes.update(uuid for uuid in disk.nodes if uuid in ctx.config.nodes)
        nodes.update(ctx.config.node(name).uuid for name in named if name)
        yield from self.lock_nodes(nodes, storage=changes_disks)
        wanted = communication_nic.changes(ctx.config, found, op)
        yield from networks.lock_used(ctx, (item.params.network for item in wanted))
        return wanted

    @property
    def nic_changes(self) -> Sequence[NicChange]:
        return self.found

    @property
    def hotplug(self) -> bool:
        return self.op.hotplug or bool(self.op.hotplug_if_possible)

    # check -------------------------------------------------------------------------------

    def decide(self) -> _Plan:
        ctx, op, config, instance = self.ctx, self.op, self.ctx.config, self.instance
        if not changes(op):
            raise errors.make_invalid_error(
                "nothing to change: give at least one setting, disk or NIC"
            )
        primary = config.nodes[instance.primary_node]
        runs = None if primary.offline else power.query_running(ctx, instance)
        nodes = [config.nodes[uuid] for uuid in config.instance_nodes(instance)]
        settings = settings_changes.check(ctx, op, instance, nodes, runs)
        nics = nic_changes.check(
            ctx, instance, self.nic_changes, check_conflicts=op.conflicts_check
        )
        changed = [nic for nic in nics.result if nic not in instance.nics]
        if not primary.offline:
            bridges.check(ctx, instance, primary, changed, ignore=op.force)
        if op.disks:
            checks.all_online(nodes, f"to change disks of {instance.name}")
        disks = disk_changes.check(ctx, op, instance, op.disks)
        converted = None
        if op.disk_template is not None:
            converted = conversion.check(
                ctx, op, instance, op.disk_template, running=runs is not None
            )
        new_primary = self._find_new_primary(running=runs is not None)
        plug = runs is not None and self._can_plug(disks)
        for index in disks.list_mode_changes() if runs is not None else ():
            ctx.warn(f"the guest sees the new mode of disk {index} after its next start")
        plan = _Plan(primary, runs, settings, disks, nics, converted, new_primary, plug)
        self._check_policy(plan)
        return plan

    def _find_new_primary(self, *, running: bool) -> Node | None:
        wanted = self.op.pnode_uuid or self.op.pnode
        if wanted is None:
            return None
        node = self.ctx.config.node(wanted)
        primary_change.check(self.ctx, self.instance, node, running=running, force=self.op.force)
        return node

    def _can_plug(self, disks: disk_changes.DiskChanges) -> bool:
        """Whether devices of the running guest are changed.

        Raises:
            OpPrereqError: a disk would be removed under the guest.
        """
        if not (self.op.disks or self.nic_changes):
            return False
        reason: str | None = "--no-hotplug was given"
        if self.hotplug:
            reason = hotplug.obstacle(self.ctx, self.instance)
        if reason is None:
            return True
        if disks.devices(DdmFull.REMOVE, DdmFull.DETACH):
            raise errors.make_state_error(
                f"a disk cannot be removed or detached while instance {self.instance.name} runs"
                f" ({reason}); stop the instance first"
            )
        self.ctx.warn(f"the running guest is not changed before its next start: {reason}")
        return False

    def _check_policy(self, plan: _Plan) -> None:
        config = self.ctx.config
        before = policy.shape(config, self.instance)
        template = self.op.disk_template and str(self.op.disk_template)
        changed = _change_instance(self.instance, plan)
        after = policy.shape(config, changed, plan.disks.result, template)
        checks.shape_allowed(
            self.ctx, plan.primary.group, after, before=before, ignore=self.op.ignore_ipolicy
        )

    def hooks(self) -> Hooks:
        config, instance = self.ctx.config, self.now
        env: JsonObject = {}
        if instance is self.instance:
            env.update(hook_env.list_changed_env(config, _change_instance(instance, self.plan)))
        if self.op.disk_template is not None:
            env["NEW_DISK_TEMPLATE"] = str(self.op.disk_template)
        if self.op.runtime_mem is not None:
            env["RUNTIME_MEMORY"] = self.op.runtime_mem
        return self.instance_hooks("instance-modify", env)

    # run ---------------------------------------------------------------------------------

    def run(self) -> list[Row]:
        ctx, instance, plan = self.ctx, self.instance, self.plan
        if plan.settings.balloon is not None:
            wire = annotate.instance(ctx.config, instance)
            ctx.rpc.call_one(
                plan.primary, NodeCalls.instance_balloon_memory, wire, plan.settings.balloon
            )
        disk_changes.make(ctx, self.op, instance, self.plan.disks)
        live = None if plan.runs is None else plan.conversion
        if live is not None:
            live_conversion.make(
                ctx, instance, live, bandwidth=self.op.bandwidth, wait=self.op.wait_for_sync
            )
        elif plan.conversion is not None:
            conversion.make(ctx, instance, plan.conversion, wait=self.op.wait_for_sync)
        if self.plan.plug:
            disk_changes.unplug(ctx, instance, self.plan.disks)
        if live is not None:
            live_conversion.switch(ctx, instance, live, self._record)
        else:
            self._record()
        ctx.undo.pop_all()
        instance = self.now
        if self.op.disks:
            disk_changes.finish(ctx, instance, self.plan.disks, plug=self.plan.plug)
        if live is not None:
            live_conversion.finish(ctx, instance, live)
        elif plan.conversion is not None:
            conversion.finish(ctx, instance, plan.conversion)
        if plan.runs is not None and _may_read_other(self.instance, instance):
            metadata.change(ctx, self.instance, instance, plan.primary)
        self._plug_nics(instance)
        self._change_media(instance)
        self._change_processors(instance)
        return self._rows()

    def _record(self) -> None:
        """One change for everything."""

        def edit(draft: Draft) -> None:
            values = dict(self.plan.settings.values)
            if self.nic_changes:
                values["nics"] = self.plan.nics.result
            if self.plan.new_primary is not None:
                values["primary_node"] = NodeUuid(self.plan.new_primary.uuid)
                primary_change.record(draft, self.instance, self.plan.new_primary)
            if values:
                draft.update(self.instance, **values)
            if self.op.disks:
                disk_changes.record(draft, self.instance, self.plan.disks)
            if self.plan.conversion is not None:
                conversion.record(draft, self.plan.conversion)
                draft.update(self.instance, disks_active=self.plan.conversion.active)

        self.ctx.store.change("instance-modify", self.ctx.author, edit)

    def _plug_nics(self, instance: Instance) -> None:
        if not (self.plan.plug and self.nic_changes):
            return
        try:
            nic_changes.plug(self.ctx, instance, self.plan.nics)
        except errors.GanetiError as err:
            self.ctx.warn(
                f"the NICs of the running guest change at its next start: {errors.text(err)}"
            )

    def _change_media(self, instance: Instance) -> None:
        """Images in the drives of the running guest."""
        ctx = self.ctx
        if self.plan.runs is None or not self.hotplug or not _MEDIA & set(self.op.hvparams):
            return
        wire = annotate.instance(ctx.config, instance)
        try:
            ctx.rpc.call_one(self.plan.primary, NodeCalls.instance_change_media, wire)
        except errors.GanetiError as err:
            ctx.warn(f"the running guest gets its images at its next start: {errors.text(err)}")

    def _change_processors(self, instance: Instance) -> None:
        """As many processors for the running guest as it is going to have."""
        ctx = self.ctx
        wanted = ctx.config.beparams(instance)["vcpus"]
        if (
            self.plan.runs is None
            or "vcpus" not in self.op.beparams
            or self.plan.runs.vcpus == wanted
        ):
            return
        reason = "--no-hotplug was given"
        if self.hotplug:
            try:
                wire = annotate.instance(ctx.config, instance)
                ctx.rpc.call_one(self.plan.primary, NodeCalls.instance_set_vcpus, wire)
            except errors.GanetiError as err:
                reason = errors.text(err)
            else:
                return
        ctx.warn(f"the running guest has {wanted} processors after its next start: {reason}")

    def _rows(self) -> list[Row]:
        found = [*self.plan.settings.rows]
        if self.plan.new_primary is not None:
            found.append(("primary_node", self.plan.new_primary.name))
        if self.plan.conversion is not None:
            found.append(("disk_template", str(self.plan.conversion.template)))
        return [*found, *disk_changes.rows(self.plan.disks), *nic_changes.rows(self.plan.nics)]


def _change_instance(instance: Instance, plan: _Plan) -> Instance:
    """The instance with the parameters and NICs that it will have."""
    beparams = plan.settings.values.get("beparams", instance.beparams)
    return base.replace(instance, beparams=beparams, nics=plan.nics.result)


def _may_read_other(before: Instance, after: Instance) -> bool:
    """Whether what a guest may read of its instance is different now. Pure."""
    names = ("nics", "os", "osparams", "osparams_private")
    return any(getattr(before, name) != getattr(after, name) for name in names)

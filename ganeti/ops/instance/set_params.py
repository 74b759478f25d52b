"""Change settings, disks or network cards of an instance."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel, NodeUuid
from ganeti.model.node import Node
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops import annotate, locks
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.planning import checks, communication_nic, policy
from ganeti.ops.steps.changes import disk_changes, nic_changes, settings_changes
from ganeti.ops.steps.changes.settings_changes import Row
from ganeti.ops.steps.relocation import primary_change
from ganeti.ops.steps.running import bridges, hotplug, power
from ganeti.ops.steps.storage import attachment, conversion
from ganeti.ops.targets import network as networks
from ganeti.rpc.calls import NodeCalls

#: Hypervisor parameters that a running guest follows at once.
_MEDIA = frozenset({"cdrom_image_path", "cdrom2_image_path", "floppy_image_path"})


class InstanceSetParams(Operation[OpInstanceSetParams, list[Row]]):
    """Gives (what, new value) for each change.

    Everything is recorded in one change of the configuration, after new disks are made and
    before old ones are destroyed.
    """

    def locks(self) -> Needs:
        op, ctx = self.op, self.ctx
        wanted = [op.pnode_uuid or op.pnode, op.remote_node_uuid or op.remote_node]
        found = yield from locks.real_instance(ctx, op.instance_name, op.instance_uuid)
        self.uuid = found.uuid
        nodes = set(locks.storage_nodes(ctx.config, found))
        if op.disks or op.disk_template is not None:
            joining = attachment.meant(ctx.config, op.disks)
            uuids = {*found.disks, *(disk.uuid for disk in joining)} & set(ctx.config.disks)
            yield Need(LockLevel.DISK, sorted(uuids))
            for disk in attachment.meant(ctx.config, op.disks):
                nodes.update(uuid for uuid in disk.nodes if uuid in ctx.config.nodes)
        nodes.update(ctx.config.node(name).uuid for name in wanted if name)
        yield Need(LockLevel.NODE, sorted(nodes), shared=True)
        if op.disks or op.disk_template is not None:
            yield Need(LockLevel.NODE_RES, sorted(nodes))
        self.nic_changes = communication_nic.changes(ctx.config, found, op)
        yield from networks.lock_used(ctx, (item.params.network for item in self.nic_changes))

    # check -------------------------------------------------------------------------------

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        self.instance = ctx.config.instances[self.uuid]
        self._check_request()
        self.hotplug = op.hotplug or bool(op.hotplug_if_possible)
        self.primary = ctx.config.nodes[self.instance.primary_node]
        self.runs = None if self.primary.offline else power.running(ctx, self.instance)
        nodes = [ctx.config.nodes[uuid] for uuid in ctx.config.instance_nodes(self.instance)]
        self.settings = settings_changes.check(ctx, op, self.instance, nodes, self.runs)
        self.nics = nic_changes.check(
            ctx, self.instance, self.nic_changes, check_conflicts=op.conflicts_check
        )
        changed = [card for card in self.nics.result if card not in self.instance.nics]
        if not self.primary.offline:
            bridges.check(ctx, self.instance, self.primary, changed, ignore=op.force)
        if op.disks:
            self._check_nodes(nodes)
        self.disks = disk_changes.check(ctx, op, self.instance, op.disks)
        self.conversion: conversion.Conversion | None = None
        if op.disk_template is not None:
            self.conversion = conversion.check(
                ctx, op, self.instance, running=self.runs is not None
            )
        self.new_primary = self._new_primary()
        self.plug = self._can_plug()
        for index in self.disks.with_other_mode() if self.runs is not None else ():
            ctx.warn(f"the guest sees the new mode of disk {index} after its next start")
        self._check_policy()

    def _check_request(self) -> None:
        op = self.op
        wants = (
            op.nics,
            op.disks,
            op.beparams,
            op.hvparams,
            op.osparams,
            op.osparams_private,
            op.os_name,
            op.disk_template,
            op.pnode,
            op.pnode_uuid,
            op.runtime_mem,
        )
        if not any(wants) and op.offline is None and op.instance_communication is None:
            raise errors.invalid("nothing to change: give at least one setting, disk or NIC")

    def _check_nodes(self, nodes: list[Node]) -> None:
        checks.all_online(nodes, f"to change disks of {self.instance.name}")

    def _new_primary(self) -> Node | None:
        wanted = self.op.pnode_uuid or self.op.pnode
        if wanted is None:
            return None
        node = self.ctx.config.node(wanted)
        primary_change.check(
            self.ctx, self.instance, node, running=self.runs is not None, force=self.op.force
        )
        return node

    def _can_plug(self) -> bool:
        """Whether devices of the running guest are changed.

        Raises:
            OpPrereqError: a disk would be taken away under the guest.
        """
        if self.runs is None or not (self.op.disks or self.nic_changes):
            return False
        why: str | None = "--no-hotplug was given"
        if self.hotplug:
            why = hotplug.obstacle(self.ctx, self.instance)
        if why is None:
            return True
        if self.disks.devices(DdmFull.REMOVE, DdmFull.DETACH):
            raise errors.wrong_state(
                f"a disk cannot be taken from the running instance {self.instance.name} ({why});"
                " stop it first"
            )
        self.ctx.warn(f"the running guest is not changed before its next start: {why}")
        return False

    def _check_policy(self) -> None:
        config = self.ctx.config
        before = policy.shape(config, self.instance)
        template = self.op.disk_template and str(self.op.disk_template)
        changed = self._changed_instance(self.instance)
        after = policy.shape(config, changed, self.disks.result, template)
        checks.shape_allowed(
            self.ctx, self.primary.group, after, before=before, ignore=self.op.ignore_ipolicy
        )

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        env: dict[str, Any] = {**hook_env.instance_env(config, instance)}
        if instance is self.instance:
            env.update(hook_env.changed_env(config, self._changed_instance(instance)))
        if self.op.disk_template is not None:
            env["NEW_DISK_TEMPLATE"] = str(self.op.disk_template)
        if self.op.runtime_mem is not None:
            env["RUNTIME_MEMORY"] = self.op.runtime_mem
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        return Hooks("instance-modify", "INSTANCE", env, nodes, nodes)

    def _changed_instance(self, instance: Instance) -> Instance:
        from ganeti.model import base

        beparams = self.settings.values.get("beparams", instance.beparams)
        return base.replace(instance, beparams=beparams, nics=self.nics.result)

    # run ---------------------------------------------------------------------------------

    def run(self) -> list[Row]:
        ctx, instance = self.ctx, self.instance
        if self.settings.balloon is not None:
            wire = annotate.instance(ctx.config, instance)
            ctx.rpc.one(
                self.primary, NodeCalls.instance_balloon_memory, wire, self.settings.balloon
            )
        disk_changes.make(ctx, self.op, instance, self.disks)
        if self.conversion is not None:
            conversion.make(ctx, instance, self.conversion, wait=self.op.wait_for_sync)
        if self.plug:
            disk_changes.unplug(ctx, instance, self.disks)
        self._record()
        ctx.undo.pop_all()
        instance = ctx.config.instances[self.uuid]
        if self.op.disks:
            disk_changes.finish(ctx, instance, self.disks, plug=self.plug)
        if self.conversion is not None:
            conversion.finish(ctx, instance, self.conversion)
        self._plug_nics(instance)
        self._change_media(instance)
        self._change_processors(instance)
        return self._rows()

    def _record(self) -> None:
        """One change for everything."""

        def edit(draft: Draft) -> None:
            values = dict(self.settings.values)
            if self.nic_changes:
                values["nics"] = self.nics.result
            if self.new_primary is not None:
                values["primary_node"] = NodeUuid(self.new_primary.uuid)
                primary_change.record(draft, self.instance, self.new_primary)
            if values:
                draft.update(self.instance, **values)
            if self.op.disks:
                disk_changes.record(draft, self.instance, self.disks)
            if self.conversion is not None:
                conversion.record(draft, self.conversion)
                draft.update(self.instance, disks_active=self.conversion.active)

        self.ctx.store.change("instance-modify", self.ctx.author, edit)

    def _plug_nics(self, instance: Instance) -> None:
        if not (self.plug and self.nic_changes):
            return
        try:
            nic_changes.plug(self.ctx, instance, self.nics)
        except errors.GanetiError as err:
            self.ctx.warn(
                f"the NICs of the running guest change at its next start: {errors.text(err)}"
            )

    def _change_media(self, instance: Instance) -> None:
        """Images in the drives of the running guest."""
        ctx = self.ctx
        if self.runs is None or not self.hotplug or not _MEDIA & set(self.op.hvparams):
            return
        wire = annotate.instance(ctx.config, instance)
        try:
            ctx.rpc.one(self.primary, NodeCalls.instance_change_media, wire)
        except errors.GanetiError as err:
            ctx.warn(f"the running guest gets its images at its next start: {errors.text(err)}")

    def _change_processors(self, instance: Instance) -> None:
        """As many processors for the running guest as it is going to have."""
        ctx = self.ctx
        wanted = ctx.config.beparams(instance)["vcpus"]
        if self.runs is None or "vcpus" not in self.op.beparams or self.runs.vcpus == wanted:
            return
        why = "--no-hotplug was given"
        if self.hotplug:
            try:
                wire = annotate.instance(ctx.config, instance)
                ctx.rpc.one(self.primary, NodeCalls.instance_set_vcpus, wire)
            except errors.GanetiError as err:
                why = errors.text(err)
            else:
                return
        ctx.warn(f"the running guest has {wanted} processors after its next start: {why}")

    def _rows(self) -> list[Row]:
        found = [*self.settings.rows]
        if self.new_primary is not None:
            found.append(("primary_node", self.new_primary.name))
        if self.conversion is not None:
            found.append(("disk_template", str(self.conversion.template)))
        return [*found, *disk_changes.rows(self.disks), *nic_changes.rows(self.nics)]

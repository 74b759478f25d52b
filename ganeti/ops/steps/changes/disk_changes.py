"""Changes of the disks of an instance: add, remove, modify, attach, detach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ganeti import constants, errors
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.enums import HotplugAction
from ganeti.model.instance import Instance
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, device_changes, disk_layout, disk_settings, snapshots
from ganeti.ops.planning.device_changes import Maker, Step
from ganeti.ops.steps.changes.settings_changes import Row
from ganeti.ops.steps.running import hotplug
from ganeti.ops.steps.storage import attachment, disks, space, sync
from ganeti.storage.registry import TEMPLATES

_AWAY = (DdmFull.REMOVE, DdmFull.DETACH)


@dataclass
class DiskChanges:
    """The disks afterwards, and the steps that lead there."""

    result: list[Disk]
    steps: list[Step[Disk, DiskParams]] = field(default_factory=list)

    def devices(self, *actions: DdmFull) -> list[Disk]:
        """Disks that steps of some kinds add (as they are then) or remove."""
        return [step.device for step in self.steps if step.action in actions]

    def list_mode_changes(self) -> list[int]:
        """Places of disks whose mode changes."""
        return [
            step.index
            for step in self.steps
            if step.before and step.after and step.before.mode != step.after.mode
        ]


class _Planner:
    """Makes disks for the changes of one instance."""

    def __init__(self, ctx: Context, op: OpInstanceSetParams, instance: Instance) -> None:
        self._ctx = ctx
        self._op = op
        self._instance = instance

    def add(self, index: int, params: DiskParams) -> Disk:
        layout = choose_layout(self._ctx, self._op, self._instance, index, params.dev_type)
        disk = disk_layout.disk(self._ctx, layout, index, params)
        attachment.check_openable(self._ctx.config, self._instance, disk)
        return disk

    def modify(self, index: int, disk: Disk, params: DiskParams) -> Disk:
        given = params.to_wire()
        wrong = sorted(set(given) - set(disk_settings.KEYS))
        if wrong:
            hint = f", only {', '.join(disk_settings.KEYS)}"
            if "size" in wrong:
                hint = " (see gnt-instance grow-disk)"
            raise errors.make_invalid_error(
                f"disk {index}: {', '.join(wrong)} of an existing disk cannot be changed{hint}"
            )
        if params.spindles is not None:
            checks.spindles_count(self._ctx.config, f"disk {index}", disk.nodes)
        changed = disk_settings.change(disk, params)
        attachment.check_openable(self._ctx.config, self._instance, changed)
        return changed

    def attach(self, index: int, params: DiskParams) -> Disk:
        disk = attachment.find(self._ctx.config, self._instance, index, params)
        if disk.uuid not in self._ctx.list_held(LockLevel.DISK):
            raise errors.make_state_error(
                f"disk {disk.uuid} got its name while this job waited; try again"
            )
        attachment.check(self._ctx, self._instance, disk)
        return disk


def choose_layout(
    ctx: Context, op: OpInstanceSetParams, instance: Instance, index: int, given: str | None
) -> disk_layout.Layout:
    """How a new disk of an existing instance is stored; ``given`` is its template if one is named.

    Raises:
        OpPrereqError: no template follows from the other disks, it is not enabled, or it needs a
            secondary node and there is none.
    """
    config = ctx.config
    kind = attachment.template_of_new(config, instance, index, given)
    template = disk_layout.template_of_disk(ctx, kind, f"disk {index}")
    driver_traits = TEMPLATES.get(template).traits
    nodes = config.instance_nodes(instance)[: driver_traits.nodes_needed]
    secondary = op.remote_node_uuid or op.remote_node
    if driver_traits.mirrored and len(nodes) == 1:
        if secondary is None:
            raise errors.make_invalid_error(
                f"disk {index} of template {template} needs a secondary node, which instance"
                f" {instance.name} does not have; name it with --node"
            )
        other = config.node(secondary)
        checks.check_usable(other, f"as the secondary node of {instance.name}")
        nodes.append(other.uuid)
    result = disk_layout.layout(
        ctx,
        instance.name,
        template,
        nodes,
        file_driver=op.file_driver,
        file_storage_dir=op.file_storage_dir,
    )
    if driver_traits.file_based and op.file_storage_dir is None:
        return _use_own_directory(config, instance, result)
    return result


def _use_own_directory(
    config: Config, instance: Instance, layout: disk_layout.Layout
) -> disk_layout.Layout:
    """In the directory that the instance has for such files already, if it has one of its own."""
    same = [disk for disk in config.disks_of(instance) if disk.dev_type is layout.kind]
    for directory in disks.directories(same):
        if Path(directory).name == instance.name:
            return disk_layout.move_into_directory(layout, directory)
    return layout


def check(
    ctx: Context, op: OpInstanceSetParams, instance: Instance, changes: Sequence[DiskChange]
) -> DiskChanges:
    """Plan changes of disks.

    Raises:
        OpPrereqError: what cannot be; too little space.
    """
    current = ctx.config.disks_of(instance)
    planner = _Planner(ctx, op, instance)
    maker: Maker[Disk, DiskParams] = Maker(planner.add, planner.modify, planner.attach)
    result, steps = device_changes.apply("disk", current, changes, maker, constants.MAX_DISKS)
    planned = DiskChanges(disks.renumber(result), steps)
    for disk in planned.devices(*_AWAY):
        snapshots.check_detachable(instance, disk)
    added = planned.devices(DdmFull.ADD)
    warning = attachment.ties(ctx.config, instance, [*added, *planned.devices(DdmFull.ATTACH)])
    if warning:
        ctx.warn(warning)
    if added:
        space.check(ctx, added, instance.primary_node, f"instance {instance.name}")
    return planned


def make(ctx: Context, op: OpInstanceSetParams, instance: Instance, changes: DiskChanges) -> None:
    """Make the new disks and activate them if those of the instance are; undone on failure."""
    added = changes.devices(DdmFull.ADD)
    if not added:
        return
    # with the names that belong to their places in the end, and with ports
    fresh = {disk.uuid for disk in added}
    added = disks.assign_ports(ctx, [disk for disk in changes.result if disk.uuid in fresh])
    by_uuid = {disk.uuid: disk for disk in added}
    changes.result = [by_uuid.get(disk.uuid, disk) for disk in changes.result]
    disks.create(ctx, instance, added)
    mirrored = [disk for disk in added if disks.traits(disk).mirrored]
    if not (instance.disks_active or mirrored):
        return
    ctx.undo.callback(disks.shutdown, ctx, instance, added)
    disks.assemble(ctx, instance, added)
    outcome = sync.wait(ctx, instance, added, only_begin=not op.wait_for_sync)
    if outcome is sync.Outcome.DEGRADED:
        raise errors.OpExecError(
            f"the new disks of instance {instance.name} are degraded, so they are removed again"
        )
    if not instance.disks_active and outcome is sync.Outcome.SYNCED:
        disks.shutdown(ctx, instance, added)


def unplug(ctx: Context, instance: Instance, changes: DiskChanges) -> None:
    """Take disks that go from the running guest; they come back if the operation fails."""
    for step in changes.steps:
        if step.action in _AWAY and step.before is not None:
            disk = base.replace(step.before, iv_name=f"disk/{step.index}")
            hotplug.change_disk(ctx, instance, HotplugAction.REMOVE, disk, step.index)
            ctx.undo.callback(
                hotplug.change_disk, ctx, instance, HotplugAction.ADD, disk, step.index
            )


def record(draft: Draft, instance: Instance, changes: DiskChanges) -> None:
    """Put the disks into the configuration; all of it in one change.

    Raises:
        ConfigurationError: a disk belongs to another instance.
    """
    known = draft.config.disks
    for disk in changes.result:
        if disk.uuid not in known or disk != known[disk.uuid]:
            draft.put(disk)
    draft.set_disks(instance, [disk.uuid for disk in changes.result])
    for disk in changes.devices(DdmFull.REMOVE):
        if disk.uuid in known:
            draft.remove_disk(known[disk.uuid])


def finish(ctx: Context, instance: Instance, changes: DiskChanges, *, plug: bool) -> None:
    """After it is recorded: links, the running guest, and the end of removed disks.

    Failures are only reported: the configuration says how it shall be.
    """
    gone = changes.devices(*_AWAY)
    if gone:
        disks.shutdown(ctx, instance, gone)
    if instance.disks_active:
        # the links of disks that have another number now
        disks.assemble(ctx, instance, ignore_secondaries=True)
    disks.relabel(ctx, instance, changes.devices(DdmFull.ATTACH))
    for failure in disks.remove(ctx, changes.devices(DdmFull.REMOVE), instance.primary_node):
        ctx.warn(f"not removed: {failure}")
    for step in changes.steps:
        if step.before and step.after:
            hotplug.report_limits(ctx, instance, step.before, step.index)
    if not plug:
        return
    for step in changes.steps:
        if step.action in (DdmFull.ADD, DdmFull.ATTACH) and step.after is not None:
            try:
                index = instance.disks.index(step.after.uuid)
                disk = ctx.config.disks[step.after.uuid]
                hotplug.change_disk(ctx, instance, HotplugAction.ADD, disk, index)
            except errors.GanetiError as err:
                ctx.warn(
                    f"the running guest gets disk {step.index} at its next start:"
                    f" {errors.text(err)}"
                )


def rows(changes: DiskChanges) -> list[Row]:
    """(What, new value) of each change, for clients."""
    found: list[Row] = []
    for step in changes.steps:
        what = f"disk/{step.index}"
        if step.action in _AWAY:
            found.append((what, str(step.action)))
        elif step.action is DdmFull.MODIFY:
            given = step.params.to_wire()
            found += [(f"disk.{key}/{step.index}", str(given[key])) for key in given]
        else:
            text = f"size={step.new_device.size},mode={step.new_device.mode}"
            found.append((what, f"{step.action}:{text}"))
    return found

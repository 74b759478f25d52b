"""Changed disks of an instance: added, removed, modified, attached, detached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ganeti import constants, errors
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.names import DiskMode, DiskTemplate, HotplugAction
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskChange, DiskParams
from ganeti.opcodes.enums import DdmFull
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops import annotate
from ganeti.ops.instance import device_changes, disks, hotplug, plan, space, sync
from ganeti.ops.instance.device_changes import Maker, Step
from ganeti.ops.instance.new_settings import Row
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls

_INVAL = errors.ErrorCode.INVAL
_AWAY = (DdmFull.REMOVE, DdmFull.DETACH)
#: Keys of a disk that can be changed.
_CHANGEABLE = ("mode", "name")


@dataclass
class DiskChanges:
    """The disks afterwards, and how to get there."""

    result: list[Disk]
    steps: list[Step[Disk, DiskParams]] = field(default_factory=list)

    def devices(self, *actions: DdmFull) -> list[Disk]:
        """Disks that a kind of step brings (as they are then) or takes."""
        found = [(step.after or step.before) for step in self.steps if step.action in actions]
        return [disk for disk in found if disk is not None]


class _Planner:
    """Makes disks for the changes of one instance."""

    def __init__(self, ctx: Context, op: OpInstanceSetParams, instance: Instance) -> None:
        self._ctx = ctx
        self._op = op
        self._instance = instance

    def add(self, index: int, params: DiskParams) -> Disk:
        layout = new_layout(self._ctx, self._op, self._instance)
        return plan.disk(self._ctx, layout, index, params)

    def modify(self, index: int, disk: Disk, params: DiskParams) -> Disk:
        given = params.to_wire()
        wrong = sorted(set(given) - set(_CHANGEABLE))
        if wrong:
            hint = " (see gnt-instance grow-disk)" if "size" in wrong else ""
            raise errors.OpPrereqError(
                f"disk {index}: {', '.join(wrong)} of an existing disk cannot be changed{hint}",
                _INVAL,
            )
        name = disk.name
        if params.name is not None:
            name = None if params.name == "none" else params.name
        mode = disk.mode if params.mode is None else DiskMode(params.mode)
        return base.replace(disk, mode=mode, name=name)

    def attach(self, index: int, params: DiskParams) -> Disk:
        wanted = params.ext.get("uuid") or params.name
        if not wanted:
            raise errors.OpPrereqError(
                f"disk {index}: say which disk to attach, by uuid= or name=", _INVAL
            )
        config = self._ctx.config
        used = {uuid for item in config.instances.values() for uuid in item.disks}
        found = [
            disk for disk in config.disks.values() if wanted in (disk.uuid, disk.name)
        ]
        free = [disk for disk in found if disk.uuid not in used and not disk.forthcoming]
        if not free:
            why = "belongs to an instance" if found else "is not known"
            raise errors.OpPrereqError(
                f"disk '{wanted}' {why}, so it cannot be attached", errors.ErrorCode.NOENT
            )
        if len(free) > 1:
            raise errors.OpPrereqError(
                f"{len(free)} disks are called '{wanted}'; use the uuid",
                errors.ErrorCode.NOTUNIQUE,
            )
        return self._reachable(index, free[0])

    def _reachable(self, index: int, disk: Disk) -> Disk:
        """The disk, if the instance can use it where it is."""
        primary = self._instance.primary_node
        if disk.nodes and primary not in disk.nodes:
            names = ", ".join(self._ctx.config.nodes[uuid].name for uuid in disk.nodes)
            raise errors.OpPrereqError(
                f"disk {disk.uuid} is on {names}, but the primary node of"
                f" {self._instance.name} is {self._ctx.config.nodes[primary].name}",
                errors.ErrorCode.STATE,
            )
        self._ctx.reserve("disk", disk.uuid)
        return self._at_home(disk)

    def _at_home(self, disk: Disk) -> Disk:
        """A file disk in the directory of its new instance, which may be renamed or removed."""
        if not disks.traits(disk).file_based:
            return disk
        driver, path = disk.logical_id
        own = disks.directories(
            [item for item in self._ctx.config.disks_of(self._instance)
             if item.dev_type is disk.dev_type]
        )  # fmt: skip
        home = Path(own[0]) if own else Path(path).parent.with_name(self._instance.name)
        return base.replace(disk, logical_id=(driver, str(home / Path(path).name)))


def new_layout(ctx: Context, op: OpInstanceSetParams, instance: Instance) -> plan.Layout:
    """How new disks of an existing instance are stored: as those that it has."""
    config = ctx.config
    kind = config.disk_template(instance)
    if kind == DiskTemplate.DISKLESS:
        raise errors.OpPrereqError(
            f"instance {instance.name} is diskless; a disk cannot be added to it",
            errors.ErrorCode.STATE,
        )
    kinds = {disk.dev_type for disk in config.disks_of(instance)}
    if len(kinds) != 1:
        raise errors.OpPrereqError(
            f"the disks of instance {instance.name} have several templates; a new one has none",
            errors.ErrorCode.STATE,
        )
    template = DiskTemplate(kind)
    driver_traits = disks.traits(config.disks_of(instance)[0])
    nodes = config.instance_nodes(instance)[: driver_traits.nodes_needed]
    result = plan.layout(
        ctx,
        instance.name,
        template,
        nodes,
        file_driver=op.file_driver,
        file_storage_dir=op.file_storage_dir,
    )
    if driver_traits.file_based and op.file_storage_dir is None:
        # beside the disks that are there
        path = disks.directories(config.disks_of(instance))[0]
        return plan.in_directory(result, path)
    return result


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
    planned = DiskChanges(disks.renumbered(result), steps)
    added = planned.devices(DdmFull.ADD)
    if added:
        space.check(ctx, added, instance.primary_node, f"instance {instance.name}")
    return planned


def make(ctx: Context, op: OpInstanceSetParams, instance: Instance, changes: DiskChanges) -> None:
    """Make the new disks and activate them if those of the instance are; undone on failure."""
    _move_attached(ctx, instance, changes)
    added = changes.devices(DdmFull.ADD)
    if not added:
        return
    # with the names that belong to their places in the end, and with ports
    fresh = {disk.uuid for disk in added}
    added = disks.with_ports(ctx, [disk for disk in changes.result if disk.uuid in fresh])
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


def _move_attached(ctx: Context, instance: Instance, changes: DiskChanges) -> None:
    """Move files of attached disks to where they belong; moved back on failure."""
    node = ctx.config.nodes[instance.primary_node]
    for disk in changes.devices(DdmFull.ATTACH):
        old = ctx.config.disks[disk.uuid]
        if old.logical_id != disk.logical_id:
            disks.make_directories(ctx, instance, [disk])
            _rename(ctx, node, old, disk)
            ctx.undo.callback(_rename, ctx, node, disk, old)


def _rename(ctx: Context, node: Node, before: Disk, after: Disk) -> None:
    wire = annotate.disk(ctx.config, before, node.group)
    ctx.rpc.one(node, NodeCalls.blockdev_rename, [(wire, list(after.logical_id))])


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
    """Put the disks into the configuration.

    Raises:
        OpPrereqError: a disk that was to be attached belongs to an instance now.
    """
    owners = {
        uuid: item.name
        for item in draft.config.instances.values()
        for uuid in item.disks
        if item.uuid != instance.uuid
    }
    for disk in changes.devices(DdmFull.ATTACH):
        if disk.uuid in owners or disk.uuid not in draft.config.disks:
            raise errors.OpPrereqError(
                f"disk {disk.uuid} cannot be attached any more", errors.ErrorCode.STATE
            )
    known = draft.config.disks
    for disk in changes.result:
        if disk.uuid not in known or disk != known[disk.uuid]:
            draft.put(disk)
    for disk in changes.devices(DdmFull.REMOVE):
        if disk.uuid in known:
            draft.remove_disk(known[disk.uuid])
    draft.update(instance, disks=tuple(disk.uuid for disk in changes.result))


def finish(
    ctx: Context, instance: Instance, changes: DiskChanges, *, plug: bool
) -> None:
    """After it is recorded: links, the running guest, and the end of removed disks.

    Failures are only reported: the configuration says how it shall be.
    """
    gone = changes.devices(*_AWAY)
    if gone:
        disks.shutdown(ctx, instance, gone)
    if instance.disks_active:
        # the links of disks that have another number now
        disks.assemble(ctx, instance, ignore_secondaries=True)
    for failure in disks.remove(ctx, changes.devices(DdmFull.REMOVE), instance.primary_node):
        ctx.warn(f"not removed: {failure}")
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
    """What clients are told."""
    found: list[Row] = []
    for step in changes.steps:
        what = f"disk/{step.index}"
        if step.action in _AWAY:
            found.append((what, str(step.action)))
        elif step.action is DdmFull.MODIFY:
            given = step.params.to_wire()
            found += [(f"disk.{key}/{step.index}", str(given[key])) for key in given]
        else:
            assert step.after is not None
            text = f"size={step.after.size},mode={step.after.mode}"
            found.append((what, f"{step.action}:{text}"))
    return found

"""Converting the disks of an instance to another template, whatever they have each.

Between plain volumes and DRBD disks the data stays where it is: a DRBD disk is built on the volume,
or taken off it. A disk that has the template already stays as it is. In all other cases data is
copied on the primary node, and the old disks go only when the new ones are recorded. While the
instance runs, data is always copied: :mod:`ganeti.ops.steps.running.live_conversion` does that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config import drbd
from ganeti.config.changes import Draft
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import checks, disk_layout, snapshots
from ganeti.ops.steps.storage import attachment, copy_progress, disks, space, sync
from ganeti.rpc.calls import NodeCalls
from ganeti.storage.registry import traits_of


class Way(Enum):
    """How a disk becomes one of another template."""

    STAY = "has it already"
    PUT_ON = "a mirror is built on its volume"
    TAKE_OFF = "its volume is taken from under the mirror"
    COPY = "its content is copied"


@dataclass
class Part:
    """One disk before and after; its uuid stays."""

    way: Way
    old: Disk
    new: Disk


@dataclass
class Conversion:
    """The new disks of an instance, in their order."""

    template: DiskTemplate
    parts: list[Part]
    #: whether the disks stay active, because new ones are still being synchronised
    active: bool = False

    def select(self, *ways: Way) -> list[Part]:
        return [part for part in self.parts if part.way in ways]

    @property
    def new_disks(self) -> list[Disk]:
        """All disks as they are going to be."""
        return [part.new for part in self.parts]


def way_of(old: DiskTemplate | None, template: DiskTemplate, *, running: bool = False) -> Way:
    """How a disk of one template becomes one of another. Pure."""
    if old is template:
        return Way.STAY
    if running:
        return Way.COPY
    if old is not None and traits_of(template).built_on == old:
        return Way.PUT_ON
    return Way.TAKE_OFF if traits_of(old).built_on == template else Way.COPY


def nodes_for(
    ctx: Context, op: OpInstanceSetParams, instance: Instance, template: DiskTemplate
) -> list[Node]:
    """The nodes of the converted disks, the primary one first; OpPrereqError."""
    config = ctx.config
    primary = config.nodes[instance.primary_node]
    named = op.remote_node_uuid or op.remote_node
    wanted = None if named is None else config.node(named)
    if op.iallocator is not None:
        raise errors.make_invalid_error(
            "name the secondary node with --node: allocators do not choose it"
        )
    if not traits_of(template).mirrored:
        if wanted is not None:
            raise errors.make_invalid_error(
                f"disk template {template} needs no secondary node; omit --node"
            )
        return [primary]
    known = [config.nodes[uuid] for uuid in config.secondary_nodes(instance)]
    if known and wanted not in (None, *known):
        raise errors.make_invalid_error(
            f"the secondary node of {instance.name} is {known[0].name} already; omit --node"
        )
    if wanted is None and not known:
        raise errors.make_invalid_error(
            f"disk template {template} needs a secondary node; name it with --node"
        )
    return [primary, wanted or known[0]]


def check(
    ctx: Context,
    op: OpInstanceSetParams,
    instance: Instance,
    template: DiskTemplate,
    *,
    running: bool,
) -> Conversion:
    """Plan the conversion to a template; minors are reserved for the job.

    Raises:
        OpPrereqError: the instance has the template already, its hypervisor cannot convert while
            it runs, or the nodes have no room.
    """
    config = ctx.config
    disk_layout.enabled_template(ctx, str(template))
    _check_possible(op, instance, config.disk_template(instance), template, running=running)
    nodes = nodes_for(ctx, op, instance, template)
    for node in nodes[1:]:
        checks.check_usable(node, f"as the secondary node of {instance.name}")
    checks.all_online(
        [config.nodes[uuid] for uuid in config.instance_nodes(instance)],
        f"to convert the disks of {instance.name}",
    )
    layout = disk_layout.layout(
        ctx,
        instance.name,
        template,
        [node.uuid for node in nodes],
        file_driver=op.file_driver,
        file_storage_dir=op.file_storage_dir,
    )
    parts = [
        _plan_part(ctx, layout, index, disk, instance.primary_node, op.ext_params, running=running)
        for index, disk in enumerate(config.disks_of(instance))
    ]
    for part in parts:
        attachment.check_openable(config, instance, part.new)
    result = Conversion(template, parts)
    space.check(
        ctx, _list_disks_to_make(result), instance.primary_node, f"instance {instance.name}"
    )
    return result


def _check_possible(
    op: OpInstanceSetParams,
    instance: Instance,
    current: str,
    template: DiskTemplate,
    *,
    running: bool,
) -> None:
    if op.disks:
        raise errors.make_invalid_error("disks cannot be changed and converted at the same time")
    if current == template:
        raise errors.make_invalid_error(
            f"instance {instance.name} already has disk template {template}"
        )
    if DiskTemplate.DISKLESS in (current, template):
        raise errors.make_invalid_error(
            f"disks cannot be converted from {current} to {template}: one of them has no disks"
        )
    if op.ext_params and not traits_of(template).takes_options:
        raise errors.make_invalid_error(
            f"disk template {template} has no parameters of a provider; omit --ext-params"
        )
    snapshots.check_none(instance, "before the disks are converted")
    if running and not HYPERVISORS.get(instance.real_hypervisor).traits.converts_disks:
        raise errors.make_state_error(
            f"instance {instance.name} is running; stop it before its disks are converted, as"
            f" hypervisor {instance.hypervisor} cannot do that meanwhile"
        )


def _plan_part(
    ctx: Context,
    layout: disk_layout.Layout,
    index: int,
    old: Disk,
    primary: NodeUuid,
    options: JsonObject,
    *,
    running: bool,
) -> Part:
    """Plan the disk that replaces another one: with its uuid, name and tags."""
    way = way_of(old.dev_type, layout.kind, running=running)
    if way is Way.STAY:
        return Part(way, old, old)
    if way is Way.TAKE_OFF:
        return Part(way, old, _extract_data(old, primary))
    params = DiskParams.from_wire({**options, "size": old.size})
    new = base.replace(
        disk_layout.disk(ctx, layout, index, params),
        uuid=old.uuid,
        name=old.name,
        mode=old.mode,
        spindles=old.spindles,
        max_iops=old.max_iops,
        max_bandwidth=old.max_bandwidth,
        tags=old.tags,
        ctime=old.ctime,
    )
    return Part(way, old, _build_on_volume(new, old) if way is Way.PUT_ON else new)


def _build_on_volume(new: Disk, volume: Disk) -> Disk:
    """A DRBD disk whose data is on an existing volume. Pure."""
    data, meta = new.children
    data = base.replace(data, logical_id=volume.logical_id, size=volume.size)
    return base.replace(new, children=(data, meta))


def _extract_data(old: Disk, primary: NodeUuid) -> Disk:
    """The data volume of a DRBD disk as a disk of its own. Pure."""
    data = old.children[0]
    return base.replace(
        old,
        dev_type=data.dev_type,
        logical_id=data.logical_id,
        children=(),
        nodes=(primary,),
        params={},
    )


def _list_disks_to_make(conversion: Conversion) -> list[Disk]:
    """List the parts of the new disks that take space. Pure."""
    built = [child for part in conversion.select(Way.PUT_ON) for child in part.new.children[1:]]
    return [*built, *_list_new_disks(conversion.select(Way.COPY))]


def _list_old_disks(parts: Iterable[Part]) -> list[Disk]:
    return [part.old for part in parts]


def _list_new_disks(parts: Iterable[Part]) -> list[Disk]:
    return [part.new for part in parts]


# doing it ------------------------------------------------------------------------------------


def make(ctx: Context, instance: Instance, conversion: Conversion, *, wait: bool) -> None:
    """Make the new disks with the content of the old ones; undone on failure.

    The old disks are not active afterwards. The new ones are complete then.
    """
    fresh = conversion.select(Way.PUT_ON, Way.COPY)
    for part, disk in zip(fresh, disks.assign_ports(ctx, _list_new_disks(fresh))):
        part.new = disk
    # what only reads comes first: it is what fails most
    if conversion.select(Way.TAKE_OFF):
        _take_off(ctx, instance, _list_old_disks(conversion.select(Way.TAKE_OFF)))
    if conversion.select(Way.PUT_ON):
        _put_on(ctx, instance, conversion.select(Way.PUT_ON))
    if conversion.select(Way.COPY):
        _copy(ctx, instance, conversion.select(Way.COPY))
    _begin_sync(ctx, instance, conversion, wait=wait)


def _take_off(ctx: Context, instance: Instance, mirrors: list[Disk]) -> None:
    """From DRBD to plain: the data of the primary node counts, so it must be good."""
    with disks.activate_for_use(ctx, instance, mirrors):
        state = sync.query_state(ctx, instance, mirrors)
    if state.faulty:
        raise errors.OpExecError(
            f"{', '.join(state.faulty)} of {instance.name} has no good data on its primary node;"
            " see gnt-instance replace-disks --on-primary"
        )
    if state.running:
        raise errors.OpExecError(
            f"the disks of {instance.name} are being synchronised; wait until that has ended"
        )
    disks.shutdown(ctx, instance, mirrors)
    ctx.log("The mirrors are taken off; the data stays on the primary node")


def _put_on(ctx: Context, instance: Instance, parts: list[Part]) -> None:
    """From plain to DRBD, on the same volume of the primary node."""
    disks.shutdown(ctx, instance, _list_old_disks(parts))
    ctx.log("Creating volumes on the secondary node and metadata on both...")
    for disk in _list_new_disks(parts):
        for node in disks.nodes_of(ctx.config, disk, instance.primary_node):
            data, meta = disk.children
            there = node.uuid == instance.primary_node
            for part in (meta, disk) if there else (data, meta, disk):
                disks.create_part(ctx, instance, part, node, name=disk.iv_name)


def _copy(ctx: Context, instance: Instance, parts: list[Part]) -> None:
    node = ctx.config.nodes[instance.primary_node]
    new = _list_new_disks(parts)
    ctx.log(f"Creating disks of template {new[0].dev_type}...")
    disks.create(ctx, instance, new)
    ctx.undo.callback(disks.shutdown, ctx, instance, new)
    disks.assemble(ctx, instance, new)
    disks.assemble(ctx, instance, _list_old_disks(parts))
    for part in parts:
        ctx.log(f" - converting {part.old.iv_name} ({part.old.size} MiB)")
        copy = ctx.rpc.call_one(
            node,
            NodeCalls.disk_convert,
            annotate.disk(ctx.config, part.old, node.group),
            annotate.disk(ctx.config, part.new, node.group),
        )
        copy_progress.follow(ctx, node, copy, part.old.iv_name)
    disks.shutdown(ctx, instance, _list_old_disks(parts))


def _begin_sync(ctx: Context, instance: Instance, conversion: Conversion, *, wait: bool) -> None:
    """See that new mirrors have, or get, their second copy; then deactivate what is complete."""
    new = _list_new_disks(conversion.select(Way.PUT_ON, Way.COPY))
    outcome = sync.wait(ctx, instance, new, only_begin=not wait)
    if outcome is sync.Outcome.DEGRADED:
        raise errors.OpExecError(
            f"the new disks of instance {instance.name} are degraded; the conversion is undone"
        )
    conversion.active = outcome is sync.Outcome.LEFT
    others = _list_old_disks(conversion.select(Way.STAY))
    if conversion.active:
        disks.assemble(ctx, instance, others)
    else:
        disks.shutdown(ctx, instance, [*new, *others])


def record(draft: Draft, conversion: Conversion) -> None:
    """Replace the disks in the configuration; ports of DRBD disks that go are free again."""
    for part in conversion.select(Way.PUT_ON, Way.TAKE_OFF, Way.COPY):
        _replace(draft, part.old, part.new)


def restore(draft: Draft, conversion: Conversion) -> None:
    """Undo :func:`record`."""
    for part in conversion.select(Way.PUT_ON, Way.TAKE_OFF, Way.COPY):
        _replace(draft, part.new, part.old)
        port = drbd.port(part.old)
        if port is not None:
            draft.retake_port(port)


def _replace(draft: Draft, old: Disk, new: Disk) -> None:
    port = drbd.port(old)
    if port is not None:
        draft.release_port(port)
    draft.put(new)


def finish(ctx: Context, instance: Instance, conversion: Conversion) -> None:
    """Destroy what is left of the old disks; failures are only reported."""
    primary = instance.primary_node
    failures = disks.remove(ctx, _list_old_disks(conversion.select(Way.COPY)), primary)
    for part in conversion.select(Way.TAKE_OFF):
        data, meta = part.old.children
        for uuid in part.old.nodes:
            node = ctx.config.nodes[uuid]
            for volume in [meta] if uuid == primary else [meta, data]:
                failures += disks.remove_from(ctx, volume, [node], name=part.old.iv_name)
    for failure in failures:
        ctx.warn(f"left over: {failure}")

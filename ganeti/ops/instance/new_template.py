"""Converting the disks of a stopped instance to another template.

Between plain volumes and DRBD disks the data stays where it is: a DRBD disk is built on the volume,
or taken off it. In all other cases it is copied on the primary node, and the old disks go only
when the new ones are recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.config import drbd
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.names import DiskTemplate
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskParams
from ganeti.opcodes.instance import OpInstanceSetParams
from ganeti.ops import annotate, checks
from ganeti.ops.instance import disks, plan, space, sync
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls
from ganeti.storage.registry import TEMPLATES

_INVAL = errors.ErrorCode.INVAL


@dataclass
class Conversion:
    """Old and new disks, in the same order and with the same uuids."""

    template: DiskTemplate
    old: list[Disk]
    new: list[Disk]
    #: whether the new disks stay active, because they are still being synchronised
    active: bool = False


def nodes_for(ctx: Context, op: OpInstanceSetParams, instance: Instance) -> list[Node]:
    """The nodes of the converted disks, the primary one first; OpPrereqError."""
    config = ctx.config
    assert op.disk_template is not None
    primary = config.nodes[instance.primary_node]
    wanted = op.remote_node_uuid or op.remote_node
    if op.iallocator is not None:
        raise errors.OpPrereqError(
            "name the secondary node with --node: allocators do not choose it", _INVAL
        )
    mirrored = op.disk_template in TEMPLATES and TEMPLATES.get(op.disk_template).traits.mirrored
    if not mirrored:
        if wanted is not None:
            raise errors.OpPrereqError(
                f"disk template {op.disk_template} needs no secondary node; leave --node away",
                _INVAL,
            )
        return [primary]
    if wanted is None:
        raise errors.OpPrereqError(
            f"disk template {op.disk_template} needs a secondary node; name it with --node", _INVAL
        )
    return [primary, config.node(wanted)]


def check(
    ctx: Context, op: OpInstanceSetParams, instance: Instance, *, running: bool
) -> Conversion:
    """Plan the conversion; minors are reserved for the job.

    Raises:
        OpPrereqError: the instance runs, has the template already, or the nodes have no room.
    """
    assert op.disk_template is not None
    config = ctx.config
    template = plan.enabled_template(ctx, str(op.disk_template))
    current = config.disk_template(instance)
    _check_possible(op, instance, current, template, running=running)
    nodes = nodes_for(ctx, op, instance)
    for node in nodes[1:]:
        checks.usable_node(node, f"as the secondary node of {instance.name}")
    checks.all_online(
        [config.nodes[uuid] for uuid in config.instance_nodes(instance)],
        f"to convert the disks of {instance.name}",
    )
    layout = plan.layout(
        ctx,
        instance.name,
        template,
        [node.uuid for node in nodes],
        file_driver=op.file_driver,
        file_storage_dir=op.file_storage_dir,
    )
    old = config.disks_of(instance)
    new = [_planned(ctx, layout, index, disk) for index, disk in enumerate(old)]
    result = Conversion(template, old, new)
    if current == DiskTemplate.PLAIN and template is DiskTemplate.DRBD:
        result.new = [_on_volume(disk, volume) for disk, volume in zip(new, old)]
    elif current == DiskTemplate.DRBD and template is DiskTemplate.PLAIN:
        result.new = [_bare(disk, instance.primary_node) for disk in old]
    space.check(ctx, _to_make(result), instance.primary_node, f"instance {instance.name}")
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
        raise errors.OpPrereqError(
            "disks cannot be changed and converted at the same time", _INVAL
        )
    if current == template:
        raise errors.OpPrereqError(
            f"instance {instance.name} already has disk template {template}",
            errors.ErrorCode.INVAL,
        )
    if DiskTemplate.DISKLESS in (current, template):
        raise errors.OpPrereqError(
            f"disks cannot be converted from {current} to {template}: one of them has no disks",
            _INVAL,
        )
    if op.ext_params:
        raise errors.OpPrereqError(
            f"disk template {template} has no parameters of a provider; leave --ext-params away",
            _INVAL,
        )
    if running:
        raise errors.OpPrereqError(
            f"instance {instance.name} is running; stop it before its disks are converted",
            errors.ErrorCode.STATE,
        )


def _planned(ctx: Context, layout: plan.Layout, index: int, old: Disk) -> Disk:
    """A new disk that takes the place of an old one."""
    params = DiskParams(size=old.size, mode=old.mode, name=old.name, spindles=old.spindles)
    return base.replace(plan.disk(ctx, layout, index, params), uuid=old.uuid)


def _on_volume(new: Disk, volume: Disk) -> Disk:
    """A DRBD disk whose data is on an existing volume. Pure."""
    data, meta = new.children
    data = base.replace(data, logical_id=volume.logical_id, size=volume.size)
    return base.replace(new, children=(data, meta))


def _bare(old: Disk, primary: str) -> Disk:
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


def _stays(conversion: Conversion) -> bool:
    """Whether the data stays where it is."""
    kinds = {conversion.old[0].dev_type, conversion.template}
    return kinds == {DiskTemplate.PLAIN, DiskTemplate.DRBD}


def _to_make(conversion: Conversion) -> list[Disk]:
    """What is really new of the new disks, for the question of space. Pure."""
    if not _stays(conversion):
        return conversion.new
    return [child for disk in conversion.new for child in disk.children[1:]]


# doing it ------------------------------------------------------------------------------------


def make(ctx: Context, instance: Instance, conversion: Conversion, *, wait: bool) -> None:
    """Make the new disks with the content of the old ones; undone on failure.

    The old disks are not active afterwards. ``conversion.new`` is complete then.
    """
    if conversion.template is DiskTemplate.DRBD:
        conversion.new = disks.with_ports(ctx, conversion.new)
    if _stays(conversion) and conversion.template is DiskTemplate.PLAIN:
        _take_off(ctx, instance, conversion)
    elif _stays(conversion):
        _put_on(ctx, instance, conversion, wait=wait)
    else:
        _copy(ctx, instance, conversion, wait=wait)


def _take_off(ctx: Context, instance: Instance, conversion: Conversion) -> None:
    """From DRBD to plain: the data of the primary node counts, so it must be good."""
    with disks.activated(ctx, instance, conversion.old):
        state = sync.look(ctx, instance, conversion.old)
    if state.faulty:
        raise errors.OpExecError(
            f"{', '.join(state.faulty)} of {instance.name} has no good data on its primary node;"
            " see gnt-instance replace-disks --on-primary"
        )
    if state.running:
        raise errors.OpExecError(
            f"the disks of {instance.name} are being synchronised; wait until that has ended"
        )
    disks.shutdown(ctx, instance, conversion.old)
    ctx.log("The mirrors are taken off; the data stays on the primary node")


def _put_on(
    ctx: Context, instance: Instance, conversion: Conversion, *, wait: bool
) -> None:
    """From plain to DRBD, on the same volume of the primary node."""
    disks.shutdown(ctx, instance, conversion.old)
    ctx.log("Creating volumes on the secondary node and metadata on both...")
    for disk in conversion.new:
        for node in disks.nodes_of(ctx.config, disk, instance.primary_node):
            data, meta = disk.children
            there = node.uuid == instance.primary_node
            for part in (meta, disk) if there else (data, meta, disk):
                disks.create_part(ctx, instance, part, node, name=disk.iv_name)
    _begin_sync(ctx, instance, conversion, wait=wait)


def _copy(ctx: Context, instance: Instance, conversion: Conversion, *, wait: bool) -> None:
    node = ctx.config.nodes[instance.primary_node]
    ctx.log(f"Creating disks of template {conversion.template}...")
    disks.create(ctx, instance, conversion.new)
    ctx.undo.callback(disks.shutdown, ctx, instance, conversion.new)
    disks.assemble(ctx, instance, conversion.new)
    disks.assemble(ctx, instance, conversion.old)
    for index, (old, new) in enumerate(zip(conversion.old, conversion.new)):
        ctx.log(f" - converting disk {index} ({old.size} MiB)")
        ctx.rpc.one(
            node,
            NodeCalls.blockdev_convert,
            annotate.disk(ctx.config, old, node.group),
            annotate.disk(ctx.config, new, node.group),
        )
    disks.shutdown(ctx, instance, conversion.old)
    _begin_sync(ctx, instance, conversion, wait=wait)


def _begin_sync(
    ctx: Context, instance: Instance, conversion: Conversion, *, wait: bool
) -> None:
    """See that new mirrors have, or get, their second copy; then deactivate what is complete."""
    if conversion.template is not DiskTemplate.DRBD:
        disks.shutdown(ctx, instance, conversion.new)
        return
    outcome = sync.wait(ctx, instance, conversion.new, only_begin=not wait)
    if outcome is sync.Outcome.DEGRADED:
        raise errors.OpExecError(
            f"the new disks of instance {instance.name} are degraded; the conversion is undone"
        )
    conversion.active = outcome is sync.Outcome.LEFT
    if not conversion.active:
        disks.shutdown(ctx, instance, conversion.new)


def record(draft: Draft, conversion: Conversion) -> None:
    """Replace the disks in the configuration; ports of DRBD disks that go are free again."""
    for old, new in zip(conversion.old, conversion.new):
        port = drbd.port(old)
        if port is not None:
            draft.release_port(port)
        draft.put(new)


def finish(ctx: Context, instance: Instance, conversion: Conversion) -> None:
    """Destroy what is left of the old disks; failures are only reported."""
    primary = instance.primary_node
    if not _stays(conversion):
        failures = disks.remove(ctx, conversion.old, primary)
    elif conversion.template is DiskTemplate.PLAIN:
        failures = []
        for disk in conversion.old:
            data, meta = disk.children
            for uuid in disk.nodes:
                node = ctx.config.nodes[uuid]
                for part in [meta] if uuid == primary else [meta, data]:
                    failures += disks.remove_from(ctx, part, [node], name=disk.iv_name)
    else:
        failures = []
    for failure in failures:
        ctx.warn(f"left over: {failure}")

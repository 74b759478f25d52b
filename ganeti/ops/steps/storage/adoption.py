"""Disks that exist already and become those of a new instance, with their content."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ganeti import errors
from ganeti.config import volumes
from ganeti.model.disk import Disk
from ganeti.model.enums import DiskTemplate
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskParams
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.steps.storage import disks as instance_disks
from ganeti.rpc.calls import NodeCalls
from ganeti.storage.registry import traits_of


def is_asked_for(wanted: Sequence[DiskParams]) -> bool:
    """Whether disks are adopted and not made. OpPrereqError when some are and some are not."""
    adopting = [item.adopt is not None for item in wanted]
    if any(adopting) and not all(adopting):
        raise errors.make_invalid_error("either all disks of an instance are adopted or none is")
    return any(adopting)


def read_sizes(
    ctx: Context, node: Node, kind: DiskTemplate, wanted: Sequence[DiskParams]
) -> list[DiskParams]:
    """The disks with the sizes that they really have on the node.

    Raises:
        OpPrereqError: one cannot be adopted: the template does not allow it, it is not there, in
            use, or a disk of an instance already.
    """
    if not traits_of(kind).may_adopt:
        raise errors.make_invalid_error(f"disks of template {kind} cannot be adopted")
    names = [_name(ctx, kind, item) for item in wanted]
    for name in names:
        if names.count(name) > 1:
            raise errors.make_invalid_error(f"{name} is to be adopted twice")
    if traits_of(kind).is_volume:
        sizes = _volumes(ctx, node, names)
    else:
        sizes = _devices(ctx, node, names)
    return [_set_size(item, size) for item, size in zip(wanted, sizes)]


def run(
    ctx: Context, instance: Instance, disks: Sequence[Disk], wanted: Sequence[DiskParams]
) -> None:
    """Make them the instance's: volumes get their names. Undone on failure.

    Raises: what the node says.
    """
    node = ctx.config.nodes[instance.primary_node]
    for disk, item in zip(disks, wanted):
        wire = annotate.disk(ctx.config, disk, node.group)
        info = instance_disks.label(instance)
        if instance_disks.traits(disk).must_adopt:
            ctx.rpc.call_one(
                node, NodeCalls.blockdev_create, wire, disk.size, instance.name, True, info, False
            )
            continue
        group, new = disk.logical_id
        ctx.undo.callback(_rename, ctx, node, disk, (group, new), (group, item.adopt))
        _rename(ctx, node, disk, (group, item.adopt), (group, new))
        ctx.rpc.call_one(node, NodeCalls.blockdev_setinfo, wire, info)


def _rename(
    ctx: Context, node: Node, disk: Disk, old: tuple[object, ...], new: tuple[object, ...]
) -> None:
    wire = annotate.disk(ctx.config, disk, node.group)
    wire = msgspec.structs.replace(wire, logical_id=old)
    ctx.rpc.call_one(node, NodeCalls.blockdev_rename, [(wire, list(new))])


def _name(ctx: Context, kind: DiskTemplate, item: DiskParams) -> str:
    if not traits_of(kind).is_volume:
        return str(item.adopt)
    group = item.vg or ctx.config.cluster.volume_group_name or ""
    return f"{group}/{item.adopt}"


def _volumes(ctx: Context, node: Node, names: Sequence[str]) -> list[int]:
    groups = sorted({name.partition("/")[0] for name in names})
    found = ctx.rpc.call_one(node, NodeCalls.lv_list, groups)
    config = ctx.config
    owned = volumes.list_expected(config).get(node.uuid, {})
    sizes: list[int] = []
    for name in names:
        if name not in found:
            raise errors.make_invalid_error(
                f"there is no logical volume {name} on node {node.name}"
            )
        if name in owned:
            raise errors.make_state_error(f"logical volume {name} belongs to {owned[name].owner}")
        size, _inactive, in_use = found[name]
        if in_use:
            raise errors.make_state_error(f"logical volume {name} on node {node.name} is in use")
        sizes.append(int(float(size)))
    return sizes


def _devices(ctx: Context, node: Node, names: Sequence[str]) -> list[int]:
    config = ctx.config
    owned = {
        str(disk.logical_id[1]): instance
        for instance in config.instances.values()
        for disk in config.disks_of(instance)
        if traits_of(disk.dev_type).must_adopt
    }
    found = ctx.rpc.call_one(node, NodeCalls.bdev_sizes, list(names))
    for name in names:
        if name in owned:
            raise errors.make_state_error(f"device {name} belongs to instance {owned[name].name}")
        if name not in found:
            raise errors.make_invalid_error(f"there is no block device {name} on node {node.name}")
    return [found[name] for name in names]


def _set_size(item: DiskParams, size: int) -> DiskParams:
    return DiskParams.from_wire({**item.to_wire(), "size": size})

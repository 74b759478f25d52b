"""Making disks of an instance usable on its nodes, and what is checked before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ganeti import errors
from ganeti.model.disk import Disk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.rpc.calls import NodeCalls


def assemble(ctx: Context, instance: Instance, disks: Sequence[Disk] | None = None) -> None:
    """Activate the disks on the primary node.

    Raises: whatever the node says; nothing is deactivated again.
    """
    config = ctx.config
    node = config.nodes[instance.primary_node]
    wanted = list(config.disks_of(instance) if disks is None else disks)
    wire = annotate.instance(config, instance, disks=wanted)
    for index, item in enumerate(wire.disks_info):
        ctx.rpc.one(node, NodeCalls.blockdev_assemble, item, wire, True, index)


def shutdown(ctx: Context, instance: Instance, disks: Sequence[Disk] | None = None) -> None:
    """Deactivate the disks on the primary node; a failure is only reported."""
    config = ctx.config
    node = config.nodes[instance.primary_node]
    for item in config.disks_of(instance) if disks is None else disks:
        try:
            ctx.rpc.one(node, NodeCalls.blockdev_shutdown, annotate.disk(config, item, node.group))
        except errors.GanetiError as err:
            ctx.warn(f"disk {item.iv_name} could not be deactivated: {errors.text(err)}")


def remove(ctx: Context, disks: Sequence[Disk]) -> list[str]:
    """Destroy disks on all nodes that hold them; gives a text for each failure.

    Idempotent: what is gone already is no failure.
    """
    config = ctx.config
    failures: list[str] = []
    for item in disks:
        if item.dev_type is None or not item.logical_id:
            continue
        for uuid in item.nodes:
            node = config.nodes.get(uuid)
            if node is None:
                continue
            try:
                ctx.rpc.one(
                    node, NodeCalls.blockdev_remove, annotate.disk(config, item, node.group)
                )
            except errors.GanetiError as err:
                failures.append(f"disk {item.iv_name}: {errors.text(err)}")
    return failures


def directories(disks: Sequence[Disk]) -> list[str]:
    """Directories of file disks."""
    from ganeti.storage.registry import TEMPLATES

    found = {
        str(Path(item.logical_id[1]).parent): None
        for item in disks
        if item.dev_type is not None
        and item.logical_id
        and TEMPLATES.get(item.dev_type).traits.file_based
    }
    return list(found)


def remove_directories(ctx: Context, node: Node, disks: Sequence[Disk]) -> None:
    """Remove the instance's directories for file disks; a failure is only reported."""
    for directory in directories(disks):
        try:
            ctx.rpc.one(node, NodeCalls.file_storage_dir_remove, directory)
        except errors.GanetiError as err:
            ctx.warn(f"directory {directory} was not removed: {errors.text(err)}")

"""Disks of an instance on its nodes: make, activate, deactivate, remove.

A disk that is kept on several nodes is handled on the others before the primary, and taken down
in the opposite order: the node that may write is the last to get the disk
and the first to lose it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ganeti import errors
from ganeti.config import drbd, volumes
from ganeti.config.changes import Draft
from ganeti.model import base
from ganeti.model.config import Config
from ganeti.model.disk import Disk
from ganeti.model.ids import NodeUuid
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.steps.storage import wipe
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import BATCH, NodeDisk
from ganeti.storage.interface import Traits
from ganeti.storage.registry import TEMPLATES

#: (node name, name of the disk, device there), as clients get it.
Device = tuple[str, str, str]


def traits(disk: Disk) -> Traits:
    """Return the traits of the template of a disk."""
    return TEMPLATES.get(disk.real_template).traits


def nodes_of(config: Config, disk: Disk, primary: NodeUuid | None) -> list[Node]:
    """Nodes that hold a disk, the primary one last; for a disk of all nodes the primary alone.

    ``primary`` is the uuid of the node that writes to the disk.
    """
    uuids = list(disk.nodes) or ([primary] if primary else [])
    ordered = [uuid for uuid in uuids if uuid != primary]
    if primary in uuids:
        ordered.append(primary)
    return [config.nodes[uuid] for uuid in ordered if uuid in config.nodes]


def find_by_index(config: Config, instance: Instance, index: int) -> Disk:
    """A disk by its place in the instance; OpPrereqError when there is none."""
    found = config.disks_of(instance)
    if 0 <= index < len(found):
        return found[index]
    count = f"disks 0 to {len(found) - 1}" if found else "no disks"
    raise errors.make_unknown_error(f"instance {instance.name} has no disk {index}; it has {count}")


def larger_disk(disk: Disk, amount: int) -> Disk:
    """The disk and what holds its data, ``amount`` MiB larger. Pure."""
    children = disk.children
    if children:
        children = (larger_disk(children[0], amount), *children[1:])
    return base.replace(disk, size=disk.size + amount, children=children)


# making ------------------------------------------------------------------------------------


def create(ctx: Context, instance: Instance, disks: Sequence[Disk]) -> None:
    """Make disks on all their nodes. What is made is removed again if the operation fails later.

    Mirrored ones are active then, and their first synchronisation has begun. They are wiped if the
    cluster wants it, which takes as long as writing them does.

    Raises:
        OpExecError: a node could not make its part, or a disk could not be wiped; the text says
            which and why.
    """
    make_directories(ctx, instance, disks)
    for index, disk in enumerate(disks):
        for node in nodes_of(ctx.config, disk, instance.primary_node):
            later = [each for each in disks[index + 1 :] if node.uuid in each.nodes]
            whole = annotate.disk(ctx.config, disk, node.group)
            for part, wire in zip((*disk.children, disk), (*whole.children, whole)):
                if part in volumes.list_volumes(disk):
                    batch = {BATCH: volumes.list_coming([disk, *later], part)}
                    wire = msgspec.structs.replace(wire, dynamic_params=batch)
                create_part(ctx, instance, part, node, name=disk.iv_name, wire=wire)
        wipe.wipe_whole(ctx, instance, disk)


def assign_ports(ctx: Context, disks: Sequence[Disk]) -> list[Disk]:
    """Disks with the TCP ports that they need; released if the operation fails later."""
    if not any(traits(disk).mirrored for disk in disks):
        return list(disks)

    def edit(draft: Draft) -> list[Disk]:
        return [draft.number_disk(disk) for disk in disks]

    numbered_disks = ctx.store.change("disk-ports", ctx.author, edit)

    def undo(draft: Draft) -> None:
        for port in map(drbd.port, numbered_disks):
            if port is not None:
                draft.release_port(port)

    ctx.undo.callback(ctx.store.change, "disk-ports-undone", ctx.author, undo)
    return numbered_disks


def create_part(
    ctx: Context,
    instance: Instance,
    part: Disk,
    node: Node,
    *,
    name: str,
    wire: NodeDisk | None = None,
) -> None:
    """Make one layer of a disk (called ``name``) on one node; what it stands on is there.

    ``wire``: the layer as the node gets it, when it differs from what the layer alone would be.
    Removed again, without what it stands on, if the operation fails later. OpExecError.
    """
    ctx.undo.callback(_remove_again, ctx, part, node, name)
    try:
        ctx.rpc.call_one(
            node,
            NodeCalls.blockdev_create,
            wire or annotate.disk(ctx.config, part, node.group),
            part.size,
            instance.name,
            node.uuid == instance.primary_node,
            label(instance),
            bool(ctx.config.ndparams(node).get("exclusive_storage")),
        )
    except errors.GanetiError as err:
        raise errors.OpExecError(
            f"{name} of {instance.name} could not be made: {errors.text(err)}"
        ) from err


def label(instance: Instance) -> str:
    """Return the tag that marks the volumes of an instance's disks."""
    return f"originstname+{instance.name}"


def relabel(ctx: Context, instance: Instance, disks: Sequence[Disk] | None = None) -> None:
    """Note the name of an instance beside the data of its disks; a failure is only reported."""
    text, config = label(instance), ctx.config
    for disk in config.disks_of(instance) if disks is None else disks:
        for node in nodes_of(config, disk, instance.primary_node):
            # A mirrored disk may be inactive; the names are beside its volumes.
            for part in disk.children or (disk,):
                try:
                    wire = annotate.disk(config, part, node.group)
                    ctx.rpc.call_one(node, NodeCalls.blockdev_setinfo, wire, text)
                except errors.GanetiError as err:
                    ctx.warn(f"the old name stays on {disk.iv_name}: {errors.text(err)}")


def _remove_again(ctx: Context, part: Disk, node: Node, name: str) -> None:
    """Undo of :func:`create_part`: of a layer that stands on others these are left alone."""
    if part.children:
        shutdown_on(ctx, part, node)
        return
    for failure in remove_from(ctx, part, [node], name=name):
        ctx.warn(failure)


def make_directories(ctx: Context, instance: Instance, disks: Sequence[Disk]) -> None:
    """Make the directories of file disks; an empty one goes with its last disk."""
    node = ctx.config.nodes[instance.primary_node]
    for directory in directories(disks):
        ctx.rpc.call_one(node, NodeCalls.file_storage_dir_create, directory)


# use ---------------------------------------------------------------------------------------


def assemble(
    ctx: Context,
    instance: Instance,
    disks: Sequence[Disk] | None = None,
    *,
    ignore_secondaries: bool = False,
    ignore_size: bool = False,
) -> list[Device]:
    """Activate disks: on all their nodes without write access, then on the primary with it.

    A secondary node that is marked offline is only reported; with ``ignore_secondaries`` so is
    one that fails. With ``ignore_size`` the drivers do not compare with the recorded size.

    Raises: whatever a node says; nothing is deactivated again.
    """
    config = ctx.config
    wanted = list(config.disks_of(instance) if disks is None else disks)
    if ignore_size:
        wanted = [_clear_size(disk) for disk in wanted]
    primary = config.nodes[instance.primary_node]
    wire = annotate.instance(config, instance, disks=wanted)
    for index, disk in enumerate(wanted):
        if not traits(disk).mirrored:
            continue
        for node in nodes_of(config, disk, primary.uuid):
            item = wire.disks_info[index]
            try:
                ctx.rpc.call_one(node, NodeCalls.blockdev_assemble, item, wire, False, index)
            except errors.GanetiError as err:
                if node.uuid == primary.uuid or not (ignore_secondaries or node.offline):
                    raise
                ctx.warn(f"{disk.iv_name} is not active on {node.name}: {errors.text(err)}")
    found: list[Device] = []
    for index, item in enumerate(wire.disks_info):
        path, _link, _uri = ctx.rpc.call_one(
            primary, NodeCalls.blockdev_assemble, item, wire, True, index
        )
        found.append((primary.name, item.iv_name, path))
    return found


def _clear_size(disk: Disk) -> Disk:
    return base.replace(disk, size=0, children=tuple(_clear_size(child) for child in disk.children))


def shutdown(
    ctx: Context,
    instance: Instance,
    disks: Sequence[Disk] | None = None,
) -> list[str]:
    """Deactivate disks, on the primary node first; returns a text for each failure.

    Failures are also shown to the user. An offline node is left alone.
    """
    config = ctx.config
    failures: list[str] = []
    for disk in config.disks_of(instance) if disks is None else disks:
        for node in reversed(nodes_of(config, disk, instance.primary_node)):
            if node.offline:
                continue
            failures += shutdown_on(ctx, disk, node)
    return failures


def shutdown_on(ctx: Context, disk: Disk, node: Node) -> list[str]:
    """Deactivate a disk on one node; gives, and shows, a text when that fails."""
    wire = annotate.disk(ctx.config, disk, node.group)
    try:
        ctx.rpc.call_one(node, NodeCalls.blockdev_shutdown, wire)
    except errors.GanetiError as err:
        text = f"disk {disk.iv_name} could not be deactivated: {errors.text(err)}"
        ctx.warn(text)
        return [text]
    return []


@contextmanager
def activate_for_use(ctx: Context, instance: Instance, disks: Sequence[Disk]) -> Iterator[None]:
    """Disks that can be used; deactivated again afterwards if they were not active before."""
    if instance.disks_active:
        yield
        return
    try:
        assemble(ctx, instance, disks)
        yield
    finally:
        shutdown(ctx, instance, disks)


# remove ------------------------------------------------------------------------------------


def remove(ctx: Context, disks: Sequence[Disk], primary: NodeUuid | None = None) -> list[str]:
    """Destroy disks on all nodes that hold them; returns a text for each failure.

    ``primary`` (uuid) is asked for disks that belong to no node of their own. Idempotent: what is
    missing already is not a failure. An offline node is a failure: what it holds stays there.
    """
    failures: list[str] = []
    for disk in disks:
        if disk.dev_type is not None and disk.logical_id:
            nodes = nodes_of(ctx.config, disk, primary)
            failures += remove_from(ctx, disk, list(reversed(nodes)))
    return failures


def remove_from(ctx: Context, disk: Disk, nodes: Sequence[Node], *, name: str = "") -> list[str]:
    """Destroy a disk on some nodes only; see :func:`remove`."""
    failures: list[str] = []
    for node in nodes:
        wire = annotate.disk(ctx.config, disk, node.group)
        try:
            ctx.rpc.call_one(node, NodeCalls.blockdev_remove, wire)
        except errors.GanetiError as err:
            failures.append(f"disk {name or disk.iv_name}: {errors.text(err)}")
    return failures


def directories(disks: Sequence[Disk]) -> list[str]:
    """Directories of file disks."""
    found = {
        str(Path(item.logical_id[1]).parent): None
        for item in disks
        if item.dev_type is not None and item.logical_id and traits(item).file_based
    }
    return list(found)


def directories_of_others(config: Config, disks: Sequence[Disk]) -> set[str]:
    """Directories of file disks in which there are (or are to be) others than these. Pure."""
    own = {disk.uuid for disk in disks}
    return set(directories([disk for disk in config.disks.values() if disk.uuid not in own]))


def remove_directories(ctx: Context, node: Node, disks: Sequence[Disk]) -> None:
    """Remove directories of file disks that no other disk needs; a failure is only reported."""
    others = directories_of_others(ctx.config, disks)
    for directory in directories(disks):
        if directory in others:
            continue
        try:
            ctx.rpc.call_one(node, NodeCalls.file_storage_dir_remove, directory)
        except errors.GanetiError as err:
            ctx.warn(f"directory {directory} was not removed: {errors.text(err)}")


# order -------------------------------------------------------------------------------------


def renumber(disks: Sequence[Disk]) -> list[Disk]:
    """Disks with the names that belong to their places in the list."""
    return [
        disk if disk.iv_name == f"disk/{index}" else base.replace(disk, iv_name=f"disk/{index}")
        for index, disk in enumerate(disks)
    ]

"""Files of images on nodes: copies on the master candidates, and writing to disks of instances.

Each master candidate keeps the file of each image, so a new master has them all. Other nodes fetch
what they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import msgspec

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.images import source
from ganeti.model import base
from ganeti.model.disk import Disk
from ganeti.model.ids import ImageUuid, NodeUuid
from ganeti.model.image import Image
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.devices import DiskSource
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning import images as image_rules
from ganeti.ops.steps.storage import copy_progress
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.images import NodeImage


def describe(ctx: Context, image: Image, *, first: Sequence[NodeUuid] = ()) -> NodeImage:
    """An image as nodes get it, with the nodes that have it, ``first`` ones first."""
    config = ctx.config
    order = dict.fromkeys([*first, config.cluster.master_node, *image.nodes])
    having = [config.nodes[uuid] for uuid in order if uuid in image.nodes and uuid in config.nodes]
    return NodeImage(
        uuid=image.uuid,
        name=image.name,
        size=image.file_size,
        sha256=image.sha256 or "",
        disk_size=image.disk_size,
        sources=tuple((node.name, node.primary_ip) for node in having if not node.offline),
    )


def spread(ctx: Context, image: Image, nodes: Sequence[Node]) -> list[NodeUuid]:
    """Copy an image to nodes, all at the same time; returns those that have it, warns of others.

    Blocks until all copies have ended. JobCanceled when the user cancels the job.
    """
    wire = describe(ctx, image)
    begun = ctx.rpc.call_many(nodes, NodeCalls.image_keep, wire)
    done = []
    for node in nodes:
        try:
            copy = begun[node.uuid].get()
            copy_progress.follow(ctx, node, copy, f"{image.name} to {node.name}")
        except errors.JobCanceled:
            raise
        except errors.GanetiError as err:
            ctx.warn(
                f"node {node.name} has no copy of image {image.name}: {errors.text(err)};"
                " gnt-cluster redist-conf makes it once the node can hold it"
            )
            continue
        done.append(node.uuid)
    return done


def distribute(ctx: Context) -> None:
    """Give each candidate that answers its copy of each image, then remove what is not needed.

    Not needed are files of removed images, and files on nodes that are not candidates any more.
    Blocks until all copies are made. A cluster without images and without such files stays as is.
    """
    config = ctx.config
    answers = ctx.rpc.call_many(config.online_nodes(), NodeCalls.image_list)
    found = {uuid: answer.get() for uuid, answer in answers.items() if answer.ok}
    candidates = [node for node in config.candidates() if node.uuid in found]
    for image in config.images.values():
        if image.ready:
            _distribute_one(ctx, image, candidates, found)
    wanted = {node.uuid for node in config.candidates()}
    for uuid, having in found.items():
        images = ctx.config.images
        extra = [
            name
            for name in having
            if name not in images
            or (uuid not in wanted and wanted.intersection(images[name].nodes))
        ]
        if extra:
            forget(ctx, extra, [config.nodes[uuid]])


def _distribute_one(
    ctx: Context,
    image: Image,
    candidates: Sequence[Node],
    found: dict[NodeUuid, dict[ImageUuid, int]],
) -> None:
    having = [uuid for uuid, sizes in found.items() if sizes.get(image.uuid) == image.file_size]
    if set(having) != set(image.nodes):
        image = _note(ctx, image, having)
    missing = [node for node in candidates if node.uuid not in having]
    added = spread(ctx, image, missing)
    keep = {node.uuid for node in ctx.config.candidates()}
    after = [uuid for uuid in (*having, *added) if uuid in keep] or having
    if set(after) != set(image.nodes):
        _note(ctx, image, after)


def _note(ctx: Context, image: Image, nodes: Sequence[NodeUuid]) -> Image:
    def edit(draft: Draft) -> None:
        if image.uuid in draft.config.images:
            draft.update(image, nodes=tuple(sorted(nodes)))

    ctx.store.change("image-copies", ctx.author, edit)
    return ctx.config.images.get(image.uuid, image)


def record(ctx: Context, image: Image) -> None:
    """Record that the job makes an image; undone on failure, also what nodes have of it then.

    Raises:
        OpPrereqError: another image has the name.
    """

    def edit(draft: Draft) -> None:
        image_rules.check_new_name(draft.config, image.name)
        draft.put(image)

    def undo(draft: Draft) -> None:
        if image.uuid in draft.config.images:
            draft.delete(image)

    candidates = ctx.config.candidates()
    ctx.store.change("image-promise", ctx.author, edit)
    ctx.undo.callback(ctx.store.change, "image-add-undone", ctx.author, undo)
    ctx.undo.callback(forget, ctx, [image.uuid], candidates)


def make(
    ctx: Context, image: Image, given: str, sha256: str | None, format: str | None
) -> JsonObject:
    """Let the master make the file of an image; blocks until its end, returns what is known of it.

    Raises:
        OpPrereqError: the source is refused.
        GanetiError: the file cannot be made or the job is canceled.
    """
    master = ctx.config.master
    copy = ctx.rpc.call_one(master, NodeCalls.image_make, image.uuid, given, sha256, format)
    copy_progress.follow(ctx, master, copy, image.name)
    facts = ctx.rpc.call_one(master, NodeCalls.image_facts, image.uuid)
    return {**msgspec.structs.asdict(facts), "nodes": (master.uuid,)}


def remove(ctx: Context, image: Image, nodes: Sequence[Node]) -> None:
    """Remove an image from the configuration, then its files from nodes."""

    def edit(draft: Draft) -> None:
        if image.uuid in draft.config.images:
            draft.delete(image)

    ctx.store.change("image-remove", ctx.author, edit)
    forget(ctx, [image.uuid], nodes)


def forget(ctx: Context, uuids: Sequence[ImageUuid], nodes: Sequence[Node]) -> None:
    """Remove files of images from nodes; a failure is only reported."""
    for answer in ctx.rpc.call_many(nodes, NodeCalls.image_remove, list(uuids)).values():
        if answer.error is not None and not answer.offline:
            ctx.warn(
                f"files of an image stay on node {answer.node.name}: {errors.text(answer.error)};"
                " gnt-cluster redist-conf removes them"
            )


def write(ctx: Context, instance: Instance, disk: Disk, image: Image) -> None:
    """Write an image to an active disk of an instance, on its primary node; blocks until its end.

    Raises:
        GanetiError: the node cannot fetch or write the image, or does not answer any more.
    """
    node = ctx.config.nodes[instance.primary_node]
    wire = annotate.disk(ctx.config, disk, node.group)
    copy = ctx.rpc.call_one(node, NodeCalls.image_write, describe(ctx, image), wire)
    copy_progress.follow(ctx, node, copy, f"image {image.name}")


def fill(
    ctx: Context, instance: Instance, disks: Sequence[Disk], sources: Sequence[DiskSource]
) -> None:
    """Write each source to its disk, which is active; blocks until its end.

    The master makes an image of each source, which is removed as soon as its disk has it. A job
    that is killed leaves at most one, which is on record as incomplete.

    Raises:
        GanetiError: a source is refused or larger than its disk, or a node failed.
    """
    nodes = {ctx.config.master.uuid, instance.primary_node}
    for index, (disk, each) in enumerate(zip(disks, sources, strict=False)):
        name = f"import-{ctx.job.job_id}-disk{index}"
        ctx.claim(image_rules.NAMES, name)
        image = Image(
            uuid=ImageUuid(str(uuid4())),
            name=name,
            source=source.describe(each.source),
            creating=ctx.job.job_id,
        )
        record(ctx, image)
        made = base.replace(image, **make(ctx, image, each.source, None, each.format))
        if made.disk_size > disk.size:
            raise errors.make_invalid_error(
                f"{made.source} holds a disk of {made.disk_size} MiB, disk {index} of instance"
                f" {instance.name} has {disk.size} MiB"
            )
        ctx.log(f"* writing {made.source} to disk {index}...")
        write(ctx, instance, disk, made)
        remove(ctx, image, [ctx.config.nodes[node] for node in sorted(nodes)])

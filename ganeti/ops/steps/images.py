"""Files of images on nodes: copies on the master candidates, and writing to disks of instances.

Each master candidate keeps the file of each image, so a new master has them all. Other nodes fetch
what they need.
"""

from __future__ import annotations

from collections.abc import Sequence

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.disk import Disk
from ganeti.model.ids import ImageUuid, NodeUuid
from ganeti.model.image import Image
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.ops import annotate
from ganeti.ops.operation import Context
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

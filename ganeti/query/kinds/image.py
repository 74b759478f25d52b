"""Images and where copies of them are. Rows are image objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganeti.filters.answer import FieldKind
from ganeti.filters.compile import Column
from ganeti.model.image import Image
from ganeti.query.field import Context, Kind
from ganeti.query.kinds import stamps

TEXT, NUMBER, UNIT, OTHER = FieldKind.TEXT, FieldKind.NUMBER, FieldKind.UNIT, FieldKind.OTHER
_MIB = 1024 * 1024


class ImageKind(Kind[Image]):
    name = "image"
    index_fields = frozenset({"name", "uuid"})

    def rows(self, ctx: Context) -> Sequence[Image]:
        return ctx.tables.images

    def lookup(self, ctx: Context, names: Sequence[Any]) -> Sequence[Image]:
        found, exact = ctx.tables.image_index.find_one, ctx.config.image
        return [found(name) or exact(name) for name in names]

    def candidates(self, ctx: Context, values: set[object]) -> Sequence[Image]:
        return ctx.tables.image_index.find(values)


KIND = ImageKind()

stamps.add_fields(KIND, "image")
KIND.attribute("name", "Image", TEXT, "Name of the image", "name")
KIND.attribute("disk_size", "DiskSize", UNIT, "Smallest disk that the image fits on", "disk_size")
KIND.value("file_size", "FileSize", UNIT, "Size of the file that is kept, rounded up")(
    lambda image: -(-image.file_size // _MIB)
)
KIND.value("description", "Description", TEXT, "What is in the image")(
    lambda image: image.description
)
KIND.attribute("source", "Source", TEXT, "File or URL that the image was made from", "source")
KIND.value("source_format", "SourceFormat", TEXT, "Format of the file it was made from")(
    lambda image: image.source_format
)
KIND.value("source_sha256", "SourceSHA256", TEXT, "SHA-256 of the file it was made from")(
    lambda image: image.source_sha256
)
KIND.value("sha256", "SHA256", TEXT, "SHA-256 of the file that is kept")(lambda image: image.sha256)
KIND.value("status", "Status", TEXT, "Whether it is ready, or incomplete (a job makes it)")(
    lambda image: "ready" if image.ready else "incomplete"
)


@KIND.field("nodes", "Nodes", OTHER, "Nodes with the whole file")
def _nodes(ctx: Context) -> Column[Image]:
    names = ctx.tables.node_names
    return lambda image: (0, sorted(names[uuid] for uuid in image.nodes if uuid in names))


@KIND.field("copies", "Copies", NUMBER, "Number of nodes with the whole file")
def _copies(ctx: Context) -> Column[Image]:
    names = ctx.tables.node_names
    return lambda image: (0, sum(uuid in names for uuid in image.nodes))


@KIND.field("inst_list", "InstanceList", OTHER, "Instances that were made from the image")
def _inst_list(ctx: Context) -> Column[Image]:
    instances = ctx.tables.instances
    return lambda image: (0, [item.handle for item in instances if item.image == image.uuid])


@KIND.field("inst_cnt", "Instances", NUMBER, "Number of instances that were made from the image")
def _inst_cnt(ctx: Context) -> Column[Image]:
    instances = ctx.tables.instances
    return lambda image: (0, sum(item.image == image.uuid for item in instances))

"""Add an image."""

from __future__ import annotations

import uuid

from ganeti.config.changes import Draft
from ganeti.images import source
from ganeti.model import base
from ganeti.model.ids import ImageUuid
from ganeti.model.image import Image
from ganeti.opcodes.image import OpImageAdd
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import images as image_rules
from ganeti.ops.steps import images


class ImageAdd(PlannedOperation[OpImageAdd, Image, str]):
    """Returns the UUID. The record comes first: all that an interrupted job leaves is on record."""

    cancelable = True

    @classmethod
    def check_submission(cls, op: OpImageAdd) -> None:
        image_rules.check_name(op.image_name)
        source.check(op.source)
        image_rules.check_sha256(op.sha256)

    def decide(self) -> Image:
        op, ctx = self.op, self.ctx
        image_rules.check_new_name(ctx.config, op.image_name)
        ctx.claim(image_rules.NAMES, op.image_name)
        return Image(
            uuid=ImageUuid(str(uuid.uuid4())),
            name=op.image_name,
            description=op.description or None,
            source=source.describe(op.source),
            creating=ctx.job.job_id,
        )

    def hooks(self) -> Hooks:
        return image_rules.hooks(self.ctx.config, "image-add", self.plan)

    def run(self) -> str:
        ctx, op, image = self.ctx, self.op, self.plan
        config = ctx.config
        images.record(ctx, image)
        values = images.make(ctx, image, op.source, op.sha256, op.format)
        master = config.master
        others = [node for node in config.candidates() if node.uuid != master.uuid]
        nodes = [master.uuid, *images.spread(ctx, base.replace(image, **values), others)]
        values.update(nodes=tuple(sorted(nodes)), creating=None)

        def finish(draft: Draft) -> None:
            draft.update(image, **values)

        ctx.store.change("image-add", ctx.author, finish)
        return image.uuid

"""Remove an image."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.model.image import Image
from ganeti.opcodes.image import OpImageRemove
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import images as image_rules
from ganeti.ops.steps import images


class ImageRemove(PlannedOperation[OpImageRemove, Image, None]):
    """The record goes first; files that a node keeps in spite of that are removed later."""

    def decide(self) -> Image:
        return self.ctx.config.image(self.op.image_name)

    def hooks(self) -> Hooks:
        return image_rules.hooks(self.ctx.config, "image-remove", self.plan)

    def run(self) -> None:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            if self.plan.uuid in draft.config.images:
                draft.delete(self.plan)

        ctx.store.change("image-remove", ctx.author, edit)
        images.forget(ctx, [self.plan.uuid], ctx.config.online_nodes())

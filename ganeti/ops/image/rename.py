"""Rename an image."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.model.image import Image
from ganeti.opcodes.image import OpImageRename
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import images as image_rules


class ImageRename(PlannedOperation[OpImageRename, Image, str]):
    """Returns the new name."""

    def decide(self) -> Image:
        ctx = self.ctx
        image = image_rules.choose(ctx.config, self.op.image_name)
        image_rules.check_new_name(ctx.config, self.op.new_name)
        ctx.claim(image_rules.NAMES, self.op.new_name)
        return image

    def hooks(self) -> Hooks:
        return image_rules.hooks(
            self.ctx.config, "image-rename", self.plan, IMAGE_NEW_NAME=self.op.new_name
        )

    def run(self) -> str:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            image_rules.check_new_name(draft.config, self.op.new_name)
            draft.update(self.plan, name=self.op.new_name)

        ctx.store.change("image-rename", ctx.author, edit)
        return self.op.new_name

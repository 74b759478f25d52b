"""Change the description of an image."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.model.image import Image
from ganeti.opcodes.image import OpImageSetParams
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import images as image_rules


class ImageSetParams(PlannedOperation[OpImageSetParams, Image, None]):
    def decide(self) -> Image:
        return image_rules.choose(self.ctx.config, self.op.image_name)

    def hooks(self) -> Hooks:
        return image_rules.hooks(self.ctx.config, "image-modify", self.plan)

    def run(self) -> None:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            draft.update(self.plan, description=self.op.description or None)

        ctx.store.change("image-modify", ctx.author, edit)

"""Remove an image."""

from __future__ import annotations

from ganeti.model.image import Image
from ganeti.opcodes.image import OpImageRemove
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import images as image_rules
from ganeti.ops.steps import images


class ImageRemove(PlannedOperation[OpImageRemove, Image, None]):
    """The record goes first. A later gnt-cluster redist-conf removes files that stay on a node."""

    def decide(self) -> Image:
        ctx = self.ctx
        image = ctx.config.image(self.op.image_name)
        image_rules.check_removable(image, ctx.claims.list_jobs(image_rules.NAMES))
        return image

    def hooks(self) -> Hooks:
        return image_rules.hooks(self.ctx.config, "image-remove", self.plan)

    def run(self) -> None:
        images.remove(self.ctx, self.plan, self.ctx.config.online_nodes())

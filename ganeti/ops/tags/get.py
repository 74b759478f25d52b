"""Read the tags of an object."""

from __future__ import annotations

from ganeti.opcodes.tags import OpTagsGet
from ganeti.ops.operation import Operation
from ganeti.ops.targets import tags


class TagsGet(Operation[OpTagsGet, list[str]]):
    def run(self) -> list[str]:
        return sorted(tags.find(self.ctx.config, self.op.kind, self.op.name).tags)

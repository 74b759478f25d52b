"""Add tags to an object."""

from __future__ import annotations

from ganeti import constants, errors
from ganeti.config.changes import Draft
from ganeti.model.cluster import Cluster
from ganeti.opcodes.tags import OpTagsSet
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.planning import tags as tag_rules
from ganeti.ops.targets import tags


class TagsSet(Operation[OpTagsSet, None]):
    def locks(self) -> Needs:
        yield from tags.lock(self.ctx, self.op.kind, self.op.name)

    def check(self) -> None:
        tag_rules.check(self.op.tags)
        self.target = tags.find(self.ctx.config, self.op.kind, self.op.name)
        self.wanted = tuple(sorted({*self.target.tags, *self.op.tags}))
        if len(self.wanted) > constants.MAX_TAGS_PER_OBJ:
            raise errors.TagError(
                f"an object has at most {constants.MAX_TAGS_PER_OBJ} tags,"
                f" this one would have {len(self.wanted)}"
            )

    def run(self) -> None:
        def edit(draft: Draft) -> None:
            if isinstance(self.target, Cluster):
                draft.update_cluster(tags=tuple(sorted({*draft.cluster.tags, *self.op.tags})))
            else:
                draft.update(self.target, tags=self.wanted)

        self.ctx.store.change("tags-add", self.ctx.author, edit)

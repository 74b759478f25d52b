"""Add tags to an object."""

from __future__ import annotations

from ganeti import constants, errors
from ganeti.config.changes import Draft
from ganeti.model.base import Tagged
from ganeti.model.cluster import Cluster
from ganeti.opcodes.tags import OpTagsSet
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.ops.planning import tags as tag_rules
from ganeti.ops.targets import tags


class TagsSet(PlannedOperation[OpTagsSet, Tagged, None]):
    def locks(self) -> Needs:
        yield from tags.lock(self.ctx, self.op.kind, self.op.name)

    def decide(self) -> Tagged:
        """The object that gets the tags."""
        tag_rules.check(self.op.tags)
        target = tags.find(self.ctx.config, self.op.kind, self.op.name)
        count = len({*target.tags, *self.op.tags})
        if count > constants.MAX_TAGS_PER_OBJ:
            raise errors.TagError(
                f"an object has at most {constants.MAX_TAGS_PER_OBJ} tags,"
                f" this one would have {count}"
            )
        return target

    def run(self) -> None:
        def edit(draft: Draft) -> None:
            if isinstance(self.plan, Cluster):
                draft.update_cluster(tags=tuple(sorted({*draft.cluster.tags, *self.op.tags})))
            else:
                draft.update(self.plan, tags=tuple(sorted({*self.plan.tags, *self.op.tags})))

        self.ctx.store.change("tags-add", self.ctx.author, edit)

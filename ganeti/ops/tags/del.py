"""Remove tags from an object."""  # noqa: N999 - named by the opcode, found by its name

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.base import Tagged
from ganeti.model.cluster import Cluster
from ganeti.opcodes.tags import OpTagsDel
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.ops.planning import tags as tag_rules
from ganeti.ops.targets import tags


class TagsDel(PlannedOperation[OpTagsDel, Tagged, None]):
    def locks(self) -> Needs:
        yield from tags.lock(self.ctx, self.op.kind, self.op.name)

    def decide(self) -> Tagged:
        """The object that loses the tags."""
        tag_rules.check(self.op.tags)
        target = tags.find(self.ctx.config, self.op.kind, self.op.name)
        missing = sorted(set(self.op.tags) - set(target.tags))
        if missing:
            raise errors.make_unknown_error(f"tags not found: {', '.join(missing)}")
        return target

    def run(self) -> None:
        gone = set(self.op.tags)

        def edit(draft: Draft) -> None:
            if isinstance(self.plan, Cluster):
                draft.update_cluster(tags=tuple(t for t in draft.cluster.tags if t not in gone))
            else:
                draft.update(self.plan, tags=tuple(t for t in self.plan.tags if t not in gone))

        self.ctx.store.change("tags-remove", self.ctx.author, edit)

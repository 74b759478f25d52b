"""Remove a node group that has no nodes."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.opcodes.group import OpGroupRemove
from ganeti.ops.operation import Hooks
from ganeti.ops.targets.group import GroupOperation


class GroupRemove(GroupOperation[OpGroupRemove, None]):
    def check(self) -> None:
        self._check(self.ctx.config)

    def _check(self, config: Config) -> None:
        members = config.group_nodes(self.group.uuid)
        if members:
            raise errors.make_state_error(
                f"node group '{self.group.name}' still has {len(members)} nodes"
                f" ({join_names(node.name for node in members)}); move them to another group"
                " first (gnt-group assign-nodes)"
            )
        if len(config.groups) == 1:
            raise errors.make_state_error(
                f"node group '{self.group.name}' is the only one and cannot be removed"
            )

    def hooks(self) -> Hooks:
        nodes = [self.ctx.config.cluster.master_node]
        return Hooks("group-remove", "GROUP", {"GROUP_NAME": self.group.name}, nodes, nodes)

    def run(self) -> None:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            self._check(draft.config)
            draft.delete(self.group)

        ctx.store.change("group-remove", ctx.author, edit)
        ctx.locks.remove(ctx.job.job_id, LockLevel.NODEGROUP, self.group.uuid)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)

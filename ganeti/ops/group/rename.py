"""Rename a node group."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.opcodes.group import OpGroupRename
from ganeti.ops.operation import Hooks
from ganeti.ops.planning import group_settings
from ganeti.ops.targets.group import GroupOperation


class GroupRename(GroupOperation[OpGroupRename, str]):
    """Returns the new name."""

    def check(self) -> None:
        group_settings.check_name(self.ctx.config, self.op.new_name)
        self.ctx.claim("node group name", self.op.new_name)

    def hooks(self) -> Hooks:
        config = self.ctx.config
        env = {"OLD_NAME": self.group.name, "NEW_NAME": self.op.new_name}
        members = [node.uuid for node in config.group_nodes(self.group.uuid)]
        nodes = list(dict.fromkeys([config.cluster.master_node, *members]))
        return Hooks("group-rename", "GROUP", env, nodes, nodes)

    def run(self) -> str:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            group_settings.check_name(draft.config, self.op.new_name)
            draft.update(self.group, name=self.op.new_name)

        ctx.store.change("group-rename", ctx.author, edit)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        return self.op.new_name

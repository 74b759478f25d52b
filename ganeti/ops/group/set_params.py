"""Change settings of a node group."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.opcodes.group import OpGroupSetParams
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.planning import group_settings, policy
from ganeti.ops.targets import group

_SHOWN = {"hv_state_static": "hv_state", "disk_state_static": "disk_state"}


class GroupSetParams(Operation[OpGroupSetParams, list[tuple[str, Any]]]):
    """Gives ``(name, new value)`` of what changed; parameter sets as the group's own values."""

    def locks(self) -> Needs:
        self.group = yield from group.lock(self.ctx, self.op.group_name)

    def check(self) -> None:
        if not group_settings.given(self.op):
            raise errors.invalid("nothing to change: give at least one parameter")
        self.values = group_settings.values(self.ctx.config, self.group, self.op)

    def hooks(self) -> Hooks:
        env = {"GROUP_NAME": self.group.name, "NEW_ALLOC_POLICY": self._policy()}
        nodes = [self.ctx.config.cluster.master_node]
        return Hooks("group-modify", "GROUP", env, nodes, nodes)

    def _policy(self) -> str:
        return "None" if self.op.alloc_policy is None else str(self.op.alloc_policy)

    def preview(self) -> list[tuple[str, Any]]:
        return []

    def run(self) -> list[tuple[str, Any]]:
        ctx, before = self.ctx, self.ctx.config

        def edit(draft: Draft) -> None:
            if self.values:
                draft.update(self.group, **self.values)

        ctx.store.change("group-modify", ctx.author, edit)
        after = ctx.config
        if "ipolicy" in self.values:
            members = after.group_nodes(self.group.uuid)
            instances = [item for node in members for item in after.primaries[node.uuid]]
            for text in policy.new_violations(before, after, instances):
                ctx.warn(text)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        return [(_SHOWN.get(name, name), value) for name, value in self.values.items()]

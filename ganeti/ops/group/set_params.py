"""Change settings of a node group."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.opcodes.base import changes
from ganeti.opcodes.group import OpGroupSetParams
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import group_settings, policy
from ganeti.ops.steps.nodes import switches
from ganeti.ops.targets.group import GroupOperation

_SHOWN = {"hv_state_static": "hv_state", "disk_state_static": "disk_state"}


class GroupSetParams(
    GroupOperation[OpGroupSetParams, list[tuple[str, Any]]],
    PlannedOperation[OpGroupSetParams, JsonObject, list[tuple[str, Any]]],
):
    """Returns ``(name, new value)`` of what changed; parameter sets as the group's own values."""

    def decide(self) -> JsonObject:
        """New values of the fields of the group."""
        if not changes(self.op):
            raise errors.make_invalid_error("nothing to change: give at least one parameter")
        return group_settings.values(self.ctx.config, self.group, self.op)

    def hooks(self) -> Hooks:
        env = {"GROUP_NAME": self.group.name, "NEW_ALLOC_POLICY": self._policy()}
        nodes = [self.ctx.config.cluster.master_node]
        return Hooks("group-modify", "GROUP", env, nodes, nodes)

    def _policy(self) -> str:
        return "None" if self.op.alloc_policy is None else str(self.op.alloc_policy)

    def preview(self) -> list[tuple[str, object]]:
        return []

    def run(self) -> list[tuple[str, object]]:
        ctx, before = self.ctx, self.ctx.config

        def edit(draft: Draft) -> None:
            if self.plan:
                draft.update(self.group, **self.plan)

        ctx.store.change("group-modify", ctx.author, edit)
        after = ctx.config
        if "ipolicy" in self.plan:
            members = after.group_nodes(self.group.uuid)
            instances = [item for node in members for item in after.primaries[node.uuid]]
            for text in policy.find_new_violations(before, after, instances):
                ctx.warn(text)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        switches.configure(ctx, switches.find_changed(before, after))
        return [(_SHOWN.get(name, name), value) for name, value in self.plan.items()]

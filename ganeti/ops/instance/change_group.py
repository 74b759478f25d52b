"""Submit jobs that bring an instance to another node group."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.names import LockLevel
from ganeti.opcodes.instance_move import OpInstanceChangeGroup
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.allocator import ask as allocator
from ganeti.ops.allocator import request
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.steps.nodes import departures


class InstanceChangeGroup(Operation[OpInstanceChangeGroup, dict[str, Any]]):
    """The allocator plans how; the instance is free again before its jobs begin."""

    def locks(self) -> Needs:
        found = yield from locks.real_instance(
            self.ctx, self.op.instance_name, self.op.instance_uuid
        )
        self.uuid = found.uuid
        yield Need(LockLevel.NODE, list(self.ctx.config.nodes), shared=True)

    def check(self) -> None:
        ctx, config, op = self.ctx, self.ctx.config, self.op
        self.instance = config.instances[self.uuid]
        own = {config.nodes[uuid].group for uuid in config.instance_nodes(self.instance)}
        wanted = [config.group(name) for name in op.target_groups or ()]
        inside = [group.name for group in wanted if group.uuid in own]
        if inside:
            raise errors.invalid(
                f"instance {self.instance.name} is in group {', '.join(inside)} already"
            )
        self.groups = [group.uuid for group in wanted] or sorted(set(config.groups) - own)
        if not self.groups:
            raise errors.wrong_state("there is no other node group; gnt-group add makes one")
        self.allocator = allocator.chosen(
            ctx, op.iallocator, "an allocator has to plan the way to another group"
        )

    def hooks(self) -> Hooks:
        config = self.ctx.config
        env = hook_env.instance_env(config, config.instances[self.uuid])
        env["TARGET_GROUPS"] = self.groups
        master = [config.cluster.master_node]
        return Hooks("instance-change-group", "INSTANCE", env, master, master)

    def run(self) -> dict[str, Any]:
        ctx, op = self.ctx, self.op
        question = request.change_group([self.instance.name], self.groups)
        moves = allocator.moves(ctx, self.allocator, question)
        return departures.submit(
            ctx, op, departures.departures(moves), early_release=op.early_release
        )

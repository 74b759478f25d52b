"""Create a node group without nodes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model import base
from ganeti.model.group import NodeGroup
from ganeti.model.ids import GroupUuid
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.group import OpGroupAdd
from ganeti.ops.operation import Finding, FindingOperation, Hooks, PlannedOperation
from ganeti.ops.planning import communication_network, group_settings


@dataclass(frozen=True)
class _Plan:
    group: NodeGroup
    #: what connects it to the communication network
    jobs: list[list[OpCode]]


class GroupAdd(
    FindingOperation[OpGroupAdd, GroupUuid, JsonObject | None],
    PlannedOperation[OpGroupAdd, _Plan, JsonObject | None],
):
    """Returns null, or the job that connects the group to the communication network."""

    def find(self) -> Finding[GroupUuid]:
        """Lock the new group; its name is reserved for this job."""
        new = GroupUuid(str(uuid.uuid4()))
        yield Need(LockLevel.NODEGROUP, (), new=[new])
        return new

    def decide(self) -> _Plan:
        op, config = self.op, self.ctx.config
        group_settings.check_name(config, op.group_name)
        self.ctx.claim("node group name", op.group_name)
        new_group = NodeGroup(uuid=self.found, name=op.group_name)
        group = base.replace(new_group, **group_settings.values(config, new_group, op))
        network = config.cluster.instance_communication_network
        jobs: list[list[OpCode]] = []
        if network:
            jobs = communication_network.jobs(config, network, [op.group_name], op.priority)
        return _Plan(group, jobs)

    def hooks(self) -> Hooks:
        nodes = [self.ctx.config.cluster.master_node]
        return Hooks("group-add", "GROUP", {"GROUP_NAME": self.op.group_name}, nodes, nodes)

    def run(self) -> JsonObject | None:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            group_settings.check_name(draft.config, self.plan.group.name)
            draft.put(self.plan.group)

        ctx.store.change("group-add", ctx.author, edit)
        ctx.locks.keep(ctx.job.job_id, LockLevel.NODEGROUP, [self.plan.group.uuid])
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        if not self.plan.jobs:
            return None
        return {"jobs": [[True, job_id] for job_id in ctx.job.submit(self.plan.jobs)]}

"""Make a node group without nodes."""

from __future__ import annotations

import uuid
from typing import Any

from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.model import base
from ganeti.model.group import NodeGroup
from ganeti.model.names import GroupUuid, LockLevel
from ganeti.opcodes.group import OpGroupAdd
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.planning import communication_network, group_settings


class GroupAdd(Operation[OpGroupAdd, dict[str, Any] | None]):
    """Gives null, or the job that connects the group to the communication network."""

    def locks(self) -> Needs:
        """Only the new group; its name is promised to this job."""
        self.group = NodeGroup(uuid=GroupUuid(str(uuid.uuid4())), name=self.op.group_name)
        yield Need(LockLevel.NODEGROUP, (), new=[self.group.uuid])

    def check(self) -> None:
        op, config = self.op, self.ctx.config
        group_settings.check_name(config, op.group_name)
        self.ctx.reserve("node group name", op.group_name)
        self.group = base.replace(self.group, **group_settings.values(config, self.group, op))
        network = config.cluster.instance_communication_network
        self.jobs = (
            communication_network.jobs(config, network, [op.group_name], op.priority)
            if network
            else []
        )

    def hooks(self) -> Hooks:
        nodes = [self.ctx.config.cluster.master_node]
        return Hooks("group-add", "GROUP", {"GROUP_NAME": self.op.group_name}, nodes, nodes)

    def run(self) -> dict[str, Any] | None:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            group_settings.check_name(draft.config, self.group.name)
            draft.put(self.group)

        ctx.store.change("group-add", ctx.author, edit)
        ctx.locks.keep(ctx.job.job_id, LockLevel.NODEGROUP, [self.group.uuid])
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        if not self.jobs:
            return None
        return {"jobs": [[True, job_id] for job_id in ctx.job.submit(self.jobs)]}

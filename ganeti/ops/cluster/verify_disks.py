"""Find disks that are not active or missing: a job for each node group."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.model.group import NodeGroup
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.cluster import OpClusterVerifyDisks
from ganeti.opcodes.group import OpGroupVerifyDisks
from ganeti.ops.operation import PlannedOperation


class ClusterVerifyDisks(PlannedOperation[OpClusterVerifyDisks, list[NodeGroup], JsonObject]):
    """Returns ``{"jobs": [[true, id], ...]}``; each job returns what is missing in its group."""

    def decide(self) -> list[NodeGroup]:
        """The node groups to verify, by name."""
        config = self.ctx.config
        if self.op.group_name is not None:
            return [config.group(self.op.group_name)]
        return sorted(config.groups.values(), key=lambda group: group.name)

    def run(self) -> JsonObject:
        op = self.op
        jobs: list[list[OpCode]] = [
            [
                OpGroupVerifyDisks(
                    group_name=group.name, is_strict=op.is_strict, priority=op.priority
                )
            ]
            for group in self.plan
        ]
        return {"jobs": [[True, job_id] for job_id in self.ctx.job.submit(jobs)]}

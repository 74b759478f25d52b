"""Look for disks that are not active or missing: a job for each node group."""

from __future__ import annotations

from typing import Any

from ganeti.opcodes.base import OpCode
from ganeti.opcodes.cluster import OpClusterVerifyDisks
from ganeti.opcodes.group import OpGroupVerifyDisks
from ganeti.ops.operation import Operation


class ClusterVerifyDisks(Operation[OpClusterVerifyDisks, dict[str, Any]]):
    """Gives ``{"jobs": [[true, id], ...]}``; each job's result is what its group lacks."""

    def check(self) -> None:
        config = self.ctx.config
        if self.op.group_name is not None:
            self.groups = [config.group(self.op.group_name)]
        else:
            self.groups = sorted(config.groups.values(), key=lambda group: group.name)

    def run(self) -> dict[str, Any]:
        op = self.op
        jobs: list[list[OpCode]] = [
            [
                OpGroupVerifyDisks(
                    group_name=group.name, is_strict=op.is_strict, priority=op.priority
                )
            ]
            for group in self.groups
        ]
        return {"jobs": [[True, job_id] for job_id in self.ctx.job.submit(jobs)]}

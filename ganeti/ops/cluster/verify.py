"""Verify the cluster: a job for the configuration, then one for each node group."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.model.group import NodeGroup
from ganeti.opcodes.base import OpCode
from ganeti.opcodes.cluster import OpClusterVerify, OpClusterVerifyConfig, OpClusterVerifyGroup
from ganeti.opcodes.values import JobDep
from ganeti.ops.operation import PlannedOperation


class ClusterVerify(PlannedOperation[OpClusterVerify, list[NodeGroup], JsonObject]):
    """Returns ``{"jobs": [[true, id], ...]}``; the findings are in the logs of those jobs."""

    def decide(self) -> list[NodeGroup]:
        """The node groups to verify, by name."""
        config = self.ctx.config
        if self.op.group_name is not None:
            return [config.group(self.op.group_name)]
        return sorted(config.groups.values(), key=lambda group: group.name)

    def run(self) -> JsonObject:
        op = self.op
        jobs: list[list[OpCode]] = []
        if op.group_name is None:
            jobs.append(
                [
                    OpClusterVerifyConfig(
                        error_codes=op.error_codes,
                        ignore_errors=op.ignore_errors,
                        verbose=op.verbose,
                        debug_simulate_errors=op.debug_simulate_errors,
                        priority=op.priority,
                    )
                ]
            )
        for number, group in enumerate(self.plan, 1):
            after = [JobDep(-number)] if op.group_name is None else None
            jobs.append(
                [
                    OpClusterVerifyGroup(
                        group_name=group.name,
                        error_codes=op.error_codes,
                        ignore_errors=op.ignore_errors,
                        skip_checks=op.skip_checks,
                        verbose=op.verbose,
                        debug_simulate_errors=op.debug_simulate_errors,
                        verify_clutter=op.verify_clutter,
                        priority=op.priority,
                        depends=after,
                    )
                ]
            )
        return {"jobs": [[True, job_id] for job_id in self.ctx.job.submit(jobs)]}

"""Send what every node should have to every node again."""

from __future__ import annotations

from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.opcodes.cluster import OpClusterRedistConf
from ganeti.ops.operation import Needs, Operation
from ganeti.ops.steps import images
from ganeti.ops.steps.nodes import hosts_files, shared_files, ssh_keys


class ClusterRedistConf(Operation[OpClusterRedistConf, None]):
    def locks(self) -> Needs:
        """All nodes, shared: none may be drained or removed while it is being served."""
        yield Need(LockLevel.NODE, None, shared=True)

    def run(self) -> None:
        ctx = self.ctx
        config = ctx.config
        failures = ctx.services.distribute_ssconf()
        failures += shared_files.send(
            ctx, config.online_nodes(), shared_files.list_for_all(ctx.paths)
        )
        failures += shared_files.send(
            ctx, config.candidates(), shared_files.list_for_candidates(ctx.paths)
        )
        for failure in failures:
            ctx.warn(failure)
        ssh_keys.bring_up_to_date(ctx)
        hosts_files.bring_up_to_date(ctx)
        images.distribute(ctx)

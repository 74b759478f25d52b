"""Pause automatic fencing of nodes and failover of the master, or continue it."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.opcodes.cluster import OpClusterPauseRecovery
from ganeti.ops.operation import Operation

#: Longest pause in seconds: a forgotten one leaves the cluster without recovery.
LONGEST = 30 * 86400


class ClusterPauseRecovery(Operation[OpClusterPauseRecovery, float | None]):
    """Returns the end of the pause, None without one."""

    def check(self) -> None:
        if self.op.duration > LONGEST:
            raise errors.make_invalid_error(
                f"recovery cannot pause for more than {LONGEST // 86400} days; to switch it off,"
                " use gnt-cluster modify --auto-fence-after=0 --auto-failover-after=0"
            )

    def run(self) -> float | None:
        ctx = self.ctx
        until = ctx.clock.now() + self.op.duration if self.op.duration else None

        def edit(draft: Draft) -> None:
            draft.update_cluster(recovery_paused_until=until)

        ctx.store.change("pause-recovery", ctx.author, edit)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(f"{failure}; it does not know of the pause, and goes on needing a lease")
        return until

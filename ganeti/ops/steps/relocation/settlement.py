"""Bring a migration that did not end to exactly one end, and put that on record.

``planning.migration_verdict`` decides; here the nodes are asked and told. All may be
repeated: a settlement that is interrupted is settled by the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.base.json_types import JsonObject
from ganeti.base.text import join_names
from ganeti.model.enums import AdminState, MigrationState, RunState
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.base import OpCode
from ganeti.ops import annotate
from ganeti.ops.operation import Context
from ganeti.ops.planning.migration_verdict import Source, Target, Verdict, verdict
from ganeti.ops.steps.relocation import destination, local_disks, migration_disks
from ganeti.ops.steps.running import power, run_rights
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import NodeInstance, RightState, RunRight

#: Seconds to wait for a source whose target does not answer to notice that.
PATIENCE = 60.0


@dataclass
class Settlement:
    """One migration from ``source`` to ``target``, whose locks the operation holds."""

    ctx: Context
    instance: Instance
    source: Node
    target: Node
    op: OpCode
    #: what the source told the target, when it is still known
    info: JsonObject = field(default_factory=dict)
    live: bool = True
    patience: float = PATIENCE
    #: go on at the source although the target may have run the guest on disks of its own
    gives_up_target: bool = False

    def run(self) -> Verdict:
        """Settle it; returns where the instance is.

        Raises:
            OpExecError: a node that may run it does not answer, or both run it.
        """
        target = self._settle_target()
        if target is Target.OFFLINE:
            self._refuse_lost_disks()
        source = self._settle_source(target)
        found = verdict(target, source)
        self._refuse(found, target, source)
        winner = self._winner(found)
        self._record(winner)
        proven = found in (Verdict.SOURCE, Verdict.TARGET) or not self._has_own_disks
        if self._end_loser(found) and proven:
            self._release_loser(found)
        if not winner.offline:
            run_rights.record(self.ctx, winner, self.instance, RightState.HERE)
        migration_disks.leave(self.ctx, self.instance, winner=winner, loser=self._loser(found))
        return found

    def restart(self, found: Verdict) -> None:
        """Start an instance again that ended during its migration, if it is marked as running."""
        if found not in (Verdict.ENDED_SOURCE, Verdict.ENDED_TARGET):
            return
        ctx, winner = self.ctx, self._winner(found)
        current = ctx.config.instances[self.instance.uuid]
        ctx.log(f"* instance {current.name} ended on its way; it belongs to node {winner.name}")
        if current.admin_state is AdminState.UP and not winner.offline:
            ctx.log(f"* starting it again on node {winner.name}")
            power.start(ctx, current, self.op)
        if self._has_own_disks and self._end_loser(found):
            # Only now the disks of the winner have shown that they are good.
            self._release_loser(found)

    def _winner(self, found: Verdict) -> Node:
        at_source = found in (Verdict.SOURCE, Verdict.ENDED_SOURCE)
        return self.source if at_source else self.target

    def _loser(self, found: Verdict) -> Node:
        return self.source if self._winner(found) is self.target else self.target

    @property
    def _has_own_disks(self) -> bool:
        """Whether each node has disks of its own for the guest."""
        return bool(local_disks.find(self.ctx.config, self.instance))

    @property
    def _may_have_run(self) -> bool:
        """Whether a target that cannot be asked may have run the guest.

        Where it has disks of its own, it is the primary node before it may.
        """
        current = self.ctx.config.instances[self.instance.uuid]
        return not self._has_own_disks or current.primary_node == self.target.uuid

    @property
    def _shares_disks(self) -> bool:
        """Whether a guest of the target would write to disks that the source has as well."""
        config = self.ctx.config
        own = len(local_disks.find(config, self.instance))
        return not own or own < len(config.disks_of(self.instance))

    # what the nodes say --------------------------------------------------------------------

    def _wire(self, node: Node) -> NodeInstance:
        config = self.ctx.config
        return annotate.instance(config, destination.place_on_node(self.instance, node))

    def _runs(self, node: Node) -> bool:
        config, hypervisor = self.ctx.config, str(self.instance.real_hypervisor)
        info = self.ctx.rpc.call_one(
            node,
            NodeCalls.instance_info,
            self.instance.name,
            hypervisor,
            config.cluster.hvparams.get(hypervisor, {}),
        )
        return bool(info) and info.get("state") == RunState.RUNNING

    def _is_committed(self) -> bool:
        """Whether the target was told that the instance is its own now."""
        found: list[RunRight] = self.ctx.rpc.call_one(
            self.target, NodeCalls.run_rights, [self.instance.uuid]
        )
        return any(right.state is RightState.HERE for right in found)

    def _settle_target(self) -> Target:
        """See that the target runs the instance if it is committed, else that it never will."""
        if self.target.offline:
            return Target.OFFLINE
        wire = self._wire(self.target)
        committed = False
        try:
            committed = self._is_committed()
            self.ctx.rpc.call_one(
                self.target,
                NodeCalls.instance_finalize_migration_dst,
                wire,
                self.info,
                committed,
            )
            return Target.RUNS if committed else Target.GAVE_UP
        except errors.RpcError as err:
            self.ctx.warn(errors.text(err))
            return Target.UNKNOWN
        except errors.GanetiError as err:
            return self._judge_target(err, committed=committed)

    def _judge_target(self, reason: errors.GanetiError, *, committed: bool) -> Target:
        """The target refused: because the instance runs there, or because it lost it."""
        try:
            if self._runs(self.target):
                return Target.RUNS
        except errors.GanetiError as err:
            self.ctx.warn(errors.text(err))
            return Target.UNKNOWN
        if committed:
            return Target.LOST
        self.ctx.warn(errors.text(reason))
        return Target.UNKNOWN

    def _settle_source(self, target: Target) -> Source:
        """See that the source continues when it may, and what it does else."""
        if self.source.offline:
            return Source.OFFLINE
        try:
            if target is Target.UNKNOWN:
                found = self._await_failed_move()
                if found is Source.KEPT:
                    self._end_source(forget=False)
                return found
            if target in (Target.GAVE_UP, Target.OFFLINE):
                self._end_source(forget=target is Target.OFFLINE and self._is_out_of_date())
            return Source.RUNS if self._runs(self.source) else Source.ABSENT
        except errors.RpcError as err:
            self.ctx.warn(errors.text(err))
            return Source.UNKNOWN
        except errors.HypervisorError as err:
            return self._judge_source(err)

    def _end_source(self, *, forget: bool) -> None:
        """Let the guest on the source go on, or forget it."""
        self.ctx.rpc.call_one(
            self.source,
            NodeCalls.instance_finalize_migration_src,
            self._wire(self.source),
            forget,
            self.live,
        )

    def _is_out_of_date(self) -> bool:
        """Whether the source must not go on, as a target that cannot be asked may have run.

        It may if it has got everything; then what the source has in memory does not fit disks to
        which both write.
        """
        if not (self._may_have_run and self._shares_disks):
            return False
        found = self.ctx.rpc.call_one(
            self.source, NodeCalls.instance_get_migration_status, self._wire(self.source)
        )
        return found.status is MigrationState.COMPLETED

    def _judge_source(self, reason: errors.GanetiError) -> Source:
        """The source has nothing to go on with, or cannot be told to."""
        try:
            return Source.RUNS if self._runs(self.source) else Source.ABSENT
        except errors.GanetiError:
            self.ctx.warn(errors.text(reason))
            return Source.UNKNOWN

    def _await_failed_move(self) -> Source:
        """Whether the source has the guest for sure, although the target cannot be asked.

        That is so once its hypervisor has given the move up by itself; waits some time for that.
        """
        end = Deadline(self.patience, self.ctx.clock)
        wire = self._wire(self.source)
        while True:
            found = self.ctx.rpc.call_one(
                self.source, NodeCalls.instance_get_migration_status, wire
            )
            if found.status is not MigrationState.ACTIVE or end.has_passed:
                break
        failed = found.status in (MigrationState.FAILED, MigrationState.CANCELLED)
        return Source.KEPT if failed and self._runs(self.source) else Source.UNKNOWN

    # what follows --------------------------------------------------------------------------

    def _refuse_lost_disks(self) -> None:
        """Refuse to go on without a target that may have the newest writes on its own disks."""
        if not (self._has_own_disks and self._may_have_run):
            return
        name, source, target = self.instance.name, self.source.name, self.target.name
        back = f"gnt-node modify --offline no {target}, then gnt-instance migrate --cleanup {name}"
        if not self.gives_up_target:
            raise errors.OpExecError(
                f"instance {name} may have run on {target} since its disks were sent there, and"
                f" {target} is offline: its newest writes are only there. When {target} is back:"
                f" {back}. If it never comes back: gnt-instance failover --cleanup"
                f" --ignore-consistency {name} goes on with the disks of {source}, as they were"
                " before"
            )
        missing = local_disks.list_missing(self.ctx, self.instance, self.source)
        if missing:
            raise errors.OpExecError(
                f"{join_names(missing)} of instance {name} is removed from {source} already, so"
                f" only {target} has it. When {target} is back: {back}"
            )

    def _refuse(self, found: Verdict, target: Target, source: Source) -> None:
        name = self.instance.name
        if found is Verdict.TWICE:
            raise errors.OpExecError(
                f"instance {name} runs on {self.source.name} and on {self.target.name}. Decide"
                f" which copy is the good one; gnt-instance failover --cleanup"
                f" --ignore-consistency {name} ends all but the one on the primary node"
            )
        if found is Verdict.UNDECIDED:
            dark = self.target if target is Target.UNKNOWN else self.source
            raise errors.OpExecError(
                f"node {dark.name} does not say whether instance {name} runs there, so nothing is"
                f" started or ended (target: {target.value}, source: {source.value}). When it"
                f" answers again, or is switched off and marked with gnt-node modify --offline yes"
                f" {dark.name}: gnt-instance migrate --cleanup {name}"
            )

    def _record(self, winner: Node) -> None:
        current = self.ctx.config.instances[self.instance.uuid]
        if current.primary_node != winner.uuid:
            destination.record(self.ctx, "instance-migrate", current, winner)

    def _end_loser(self, found: Verdict) -> bool:
        """Let a source that has lost the guest forget it; False when it cannot be told."""
        if self._loser(found) is self.target or self.source.offline:
            return True
        try:
            self._end_source(forget=True)
        except errors.GanetiError as err:
            self._report_remains(self.source, err)
            return False
        return True

    def _release_loser(self, found: Verdict) -> None:
        """Remove the loser's disks of its own and close its right, in this order.

        As long as the right is open, a settlement that follows will remove what this one could not.
        """
        winner, loser = self._winner(found), self._loser(found)
        if loser.offline:
            return
        try:
            local_disks.drop(self.ctx, self.instance, winner=winner, loser=loser)
            run_rights.revoke(self.ctx, loser, self.instance)
        except errors.GanetiError as err:
            self._report_remains(loser, err)

    def _report_remains(self, node: Node, err: errors.GanetiError) -> None:
        """It cannot run there any more; only its remains are left."""
        self.ctx.warn(f"remains on node {node.name}: {errors.text(err)}")

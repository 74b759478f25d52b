"""Move a running instance to another node without stopping it."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.constants import DEFAULT_SHUTDOWN_TIMEOUT
from ganeti.locking.levels import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.ops import annotate
from ganeti.ops import hooks as hook_env
from ganeti.ops.on_reservations.move import ReservationMigrate
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.steps.relocation import cleanup, local_disks, migration, migration_checks
from ganeti.ops.steps.relocation.destination import Destination
from ganeti.ops.steps.relocation.failover import Failover
from ganeti.ops.steps.running import power
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import InstanceInfo


@dataclass(frozen=True)
class _Plan:
    #: whether the guest runs while its memory is copied
    live: bool
    #: None for a clean-up
    target: Node | None = None
    #: set when the instance is failed over instead
    failover: Failover | None = None
    #: MiB that the guest has now
    memory: int = 0
    #: MiB that the guest is shrunk to first
    balloon_to: int | None = None
    #: how disks that are on one node only go with it
    sending: local_disks.Sending | None = None


class InstanceMigrate(
    FindingOperation[OpInstanceMigrate, Destination | None, None],
    PlannedInstanceOperation[OpInstanceMigrate, _Plan, None],
):
    """Can be canceled; the instance then continues where it was."""

    cancelable = True
    for_reservation = ReservationMigrate

    def find(self) -> Finding[Destination | None]:
        """How the node is found, None for a clean-up."""
        yield from self.lock_instance()
        if self.op.cleanup:
            yield from cleanup.locks(self.ctx, self.instance, force=False)
            return None
        way = Destination(self.ctx, self.instance, self.op, sends_disks=True)
        yield from way.locks()
        return way

    @property
    def source(self) -> Node:
        return self.ctx.config.nodes[self.instance.primary_node]

    # check -------------------------------------------------------------------------------

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        if op.mode is not None and op.live is not None:
            raise errors.make_invalid_error("give either mode or live, not both")
        params = ctx.config.hvparams(self.instance)
        mode = None if op.mode is None else str(op.mode)
        live = migration.is_live(mode, op.live, str(params.get("migration_mode", "live")))
        if self.found is None:
            return _Plan(live)
        power.primary(ctx, self.instance)
        target = self.found.node()
        info = power.query_running(ctx, self.instance)
        reason = self._explain_refusal(info, live=live)
        if info is not None and reason is None:
            return self._plan_migration(live, target, info.memory)
        self._refuse_failover(
            f"{reason}", target, always=info is not None and self._always_fails_over
        )
        ctx.log(f"Failing over instead of migrating: {reason}")
        failover = Failover(
            ctx,
            self.instance,
            target,
            op,
            shutdown_timeout=DEFAULT_SHUTDOWN_TIMEOUT,
            ignore_consistency=False,
            ignore_ipolicy=op.ignore_ipolicy,
        )
        failover.check()
        return _Plan(live, target, failover)

    @property
    def _always_fails_over(self) -> bool:
        return bool(self.ctx.config.beparams(self.instance).get("always_failover"))

    def _explain_refusal(self, info: InstanceInfo | None, *, live: bool) -> str | None:
        """Why it cannot be migrated, None when it can."""
        if info is None:
            return "it does not run"
        if self._always_fails_over:
            return "its backend parameter always_failover is set"
        return migration_checks.explain_refusal(self.ctx, self.instance, live=live)

    def _plan_migration(self, live: bool, target: Node, memory: int) -> _Plan:
        ctx, op = self.ctx, self.op
        sending = None
        if local_disks.find(ctx.config, self.instance):
            local_disks.check(ctx, self.instance, target)
            sending = local_disks.Sending(op.bandwidth, op.give_up_after)
        allowed = migration_checks.Allowed(
            policy=op.ignore_ipolicy,
            versions=op.ignore_hvversions,
            shrinking=op.allow_runtime_changes,
        )
        balloon_to = migration_checks.check_target(ctx, self.instance, target, memory, allowed)
        return _Plan(live, target, memory=memory, balloon_to=balloon_to, sending=sending)

    def _refuse_failover(self, reason: str, target: Node, *, always: bool) -> None:
        name = self.instance.name
        if local_disks.find(self.ctx.config, self.instance):
            raise errors.make_state_error(
                f"instance {name} cannot be migrated: {reason}; gnt-instance move -n {target.name}"
                f" {name} copies its disks while it is stopped"
            )
        if not self.op.allow_failover and not always:
            raise errors.make_state_error(
                f"instance {name} cannot be migrated: {reason}; gnt-instance failover"
                " stops it and starts it on the other node (--allow-failover does that now)"
            )

    def hooks(self) -> Hooks:
        config, op, target = self.ctx.config, self.op, self.plan.target
        env = hook_env.instance_env(config, self.now)
        source = self.source
        secondaries = config.secondary_nodes(self.instance)
        names = [config.nodes[uuid].name for uuid in secondaries]
        env.update(
            MIGRATE_LIVE=self.plan.live,
            MIGRATE_CLEANUP=op.cleanup,
            OLD_PRIMARY=source.name,
            NEW_PRIMARY=target.name if target else source.name,
            OLD_SECONDARY=names[0] if names else "",
            NEW_SECONDARY=source.name if names else "",
            ALLOW_RUNTIME_CHANGES=op.allow_runtime_changes,
        )
        nodes = [config.cluster.master_node, source.uuid, *secondaries]
        if target is not None:
            nodes.append(target.uuid)
        return Hooks("instance-migrate", "INSTANCE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> None:
        ctx, plan = self.ctx, self.plan
        if plan.target is None:
            cleanup.Cleanup(ctx, self.instance, self.op, force=False).run()
            return
        if plan.failover is not None:
            plan.failover.run()
            return
        ctx.release(LockLevel.NODE, keep=[self.instance.primary_node, plan.target.uuid])
        if plan.balloon_to is not None:
            ctx.log(
                f"* shrinking the memory of the instance from {plan.memory} to"
                f" {plan.balloon_to} MiB"
            )
            ctx.undo.callback(self._grow_back)
            self._balloon(plan.balloon_to)
        migration.Migration(
            ctx, self.instance, plan.target, self.op, live=plan.live, sending=plan.sending
        ).run()
        ctx.log("* done")

    def _balloon(self, memory: int) -> None:
        """Give the guest this much memory (MiB)."""
        wire = annotate.instance(self.ctx.config, self.instance)
        self.ctx.rpc.call_one(self.source, NodeCalls.instance_balloon_memory, wire, memory)

    def _grow_back(self) -> None:
        """Undo of the shrinking."""
        try:
            self._balloon(self.plan.memory)
        except errors.GanetiError as err:
            self.ctx.warn(f"the guest did not get its memory back: {errors.text(err)}")

"""Move a running instance to another node without stopping it."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.constants import DEFAULT_SHUTDOWN_TIMEOUT
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.locking.levels import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.ops import annotate
from ganeti.ops import hooks as hook_env
from ganeti.ops.on_reservations.move import ReservationMigrate
from ganeti.ops.operation import Finding, FindingOperation, Hooks
from ganeti.ops.steps.relocation import cleanup, destination, migration
from ganeti.ops.steps.relocation.destination import Destination
from ganeti.ops.steps.relocation.failover import Failover
from ganeti.ops.steps.running import power
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.rpc.calls import NodeCalls


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
        way = Destination(self.ctx, self.instance, self.op)
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
        why = "it does not run" if info is None else self._explain_refusal(live)
        always = bool(ctx.config.beparams(self.instance).get("always_failover"))
        if info is not None and always:
            why = "its backend parameter always_failover is set"
        if info is not None and why is None:
            balloon_to = self._check_target(target, info.memory)
            return _Plan(live, target, memory=info.memory, balloon_to=balloon_to)
        if not op.allow_failover and not (info is not None and always):
            raise errors.make_state_error(
                f"instance {self.instance.name} cannot be migrated: {why}; gnt-instance failover"
                " stops it and starts it on the other node (--allow-failover does that now)"
            )
        ctx.log(f"Failing over instead of migrating: {why}")
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

    def _explain_refusal(self, live: bool) -> str | None:
        """Why its running guest cannot be migrated, None when it can."""
        ctx, instance = self.ctx, self.instance
        if not HYPERVISORS.get(instance.real_hypervisor).traits.can_migrate:
            return f"hypervisor {instance.hypervisor} does not migrate"
        wire = annotate.instance(ctx.config, instance)
        try:
            ctx.rpc.call_one(self.source, NodeCalls.instance_migratable, wire, live)
        except errors.RpcError:
            raise
        except errors.GanetiError as err:
            return errors.text(err)
        return None

    def _check_target(self, target: Node, memory: int) -> int | None:
        """Refuse a node that cannot take the guest; returns the MiB to shrink the guest to."""
        ctx, op, source = self.ctx, self.op, self.source
        destination.check_target(ctx, self.instance, target, ignore_ipolicy=op.ignore_ipolicy)
        there, here = self._resources(target), self._resources(source)
        versions = [info.get("hv_version") for info in (here, there)]
        if versions[0] != versions[1]:
            text = (
                f"hypervisor versions differ: {_format_version(versions[0])} on {source.name},"
                f" {_format_version(versions[1])} on {target.name}"
            )
            if not op.ignore_hvversions:
                raise errors.make_state_error(f"{text} (use --ignore-hvversions to continue)")
            ctx.warn(text)
        return self._find_smaller_memory(target.name, memory, there.get("memory_free"))

    def _resources(self, node: Node) -> JsonObject:
        ctx, hypervisor = self.ctx, str(self.instance.real_hypervisor)
        params = ctx.config.cluster.hvparams.get(hypervisor, {})
        _boot, _rooms, found = ctx.rpc.call_one(
            node, NodeCalls.node_info, [], [(hypervisor, params)]
        )
        return found[0] if found else {}

    def _find_smaller_memory(self, name: str, memory: int, free: object) -> int | None:
        """MiB that the guest has to shrink to so that it fits on a node; None if it fits."""
        instance = self.instance
        if not isinstance(free, int):
            raise errors.make_environment_error(f"node {name} does not say how much memory is free")
        if memory <= free:
            return None
        least = self.ctx.config.beparams(instance)["minmem"]
        if free < least or not self.op.allow_runtime_changes:
            hint = "" if free < least else "; without --no-runtime-changes it would be shrunk"
            raise errors.make_resources_error(
                f"not enough memory on node {name} for instance {instance.name}: it has"
                f" {memory} MiB (at least {least}), free are {free} MiB{hint}"
            )
        return free

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
        migration.Migration(ctx, self.instance, plan.target, self.op, live=plan.live).run()
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


def _format_version(version: object) -> str:
    return ".".join(map(str, version)) if isinstance(version, list | tuple) else "unknown"

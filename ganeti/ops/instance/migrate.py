"""Bring a running instance to another node without stopping it."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.constants import DEFAULT_SHUTDOWN_TIMEOUT
from ganeti.hypervisor.registry import HYPERVISORS
from ganeti.model.names import LockLevel, NodeUuid
from ganeti.opcodes.instance_move import OpInstanceMigrate
from ganeti.ops import annotate, locks
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.steps.relocation import cleanup, destination, migration
from ganeti.ops.steps.relocation.destination import Destination
from ganeti.ops.steps.relocation.takeover import Takeover
from ganeti.ops.steps.running import power
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.objects import InstanceInfo


class InstanceMigrate(Operation[OpInstanceMigrate, None]):
    """Can be canceled; the instance then goes on where it was."""

    cancelable = True

    def locks(self) -> Needs:
        found = yield from locks.real_instance(
            self.ctx, self.op.instance_name, self.op.instance_uuid
        )
        self.uuid, self.source_uuid = found.uuid, found.primary_node
        if self.op.cleanup:
            yield from cleanup.locks(self.ctx, found)
            return
        self.destination = Destination(self.ctx, found, self.op)
        yield from self.destination.locks()

    # check -------------------------------------------------------------------------------

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        if op.mode is not None and op.live is not None:
            raise errors.invalid("give either mode or live, not both")
        self.instance = ctx.config.instances[self.uuid]
        params = ctx.config.hvparams(self.instance)
        mode = None if op.mode is None else str(op.mode)
        self.live = migration.is_live(mode, op.live, str(params.get("migration_mode", "live")))
        self.target = None
        self.balloon_to: int | None = None
        self.takeover: Takeover | None = None
        if op.cleanup:
            return
        power.primary(ctx, self.instance)
        self.target = self.destination.node()
        why = self._why_not()
        if why is None:
            self._check_target()
            return
        if not op.allow_failover:
            raise errors.wrong_state(
                f"instance {self.instance.name} cannot be migrated: {why}; gnt-instance failover"
                " stops it and starts it on the other node (--allow-failover does that now)"
            )
        ctx.log(f"Failing over instead of migrating: {why}")
        self.takeover = Takeover(
            ctx,
            self.instance,
            self.target,
            op,
            shutdown_timeout=DEFAULT_SHUTDOWN_TIMEOUT,
            ignore_consistency=False,
            ignore_ipolicy=op.ignore_ipolicy,
        )
        self.takeover.check()

    def _why_not(self) -> str | None:
        """Why it cannot be migrated as it is, None when it can."""
        ctx, instance = self.ctx, self.instance
        assert instance.hypervisor is not None
        info = power.running(ctx, instance)
        if info is None:
            return "it does not run"
        self.info: InstanceInfo = info
        if not HYPERVISORS.get(instance.hypervisor).traits.can_migrate:
            return f"hypervisor {instance.hypervisor} does not migrate"
        source = ctx.config.nodes[instance.primary_node]
        wire = annotate.instance(ctx.config, instance)
        try:
            ctx.rpc.one(source, NodeCalls.instance_migratable, wire, self.live)
        except errors.RpcError:
            raise
        except errors.GanetiError as err:
            return errors.text(err)
        return None

    def _check_target(self) -> None:
        assert self.target is not None
        ctx, op, instance = self.ctx, self.op, self.instance
        destination.check_target(ctx, instance, self.target, ignore_ipolicy=op.ignore_ipolicy)
        source = ctx.config.nodes[instance.primary_node]
        there, here = self._resources(self.target.uuid), self._resources(source.uuid)
        versions = [info.get("hv_version") for info in (here, there)]
        if versions[0] != versions[1]:
            text = (
                f"hypervisor versions differ: {_dotted(versions[0])} on {source.name},"
                f" {_dotted(versions[1])} on {self.target.name}"
            )
            if not op.ignore_hvversions:
                raise errors.wrong_state(f"{text} (--ignore-hvversions goes on)")
            ctx.warn(text)
        self._check_memory(there.get("memory_free"))

    def _resources(self, uuid: NodeUuid) -> dict[str, Any]:
        ctx, hypervisor = self.ctx, str(self.instance.hypervisor)
        params = ctx.config.cluster.hvparams.get(hypervisor, {})
        node = ctx.config.nodes[uuid]
        _boot, _rooms, found = ctx.rpc.one(node, NodeCalls.node_info, [], [(hypervisor, params)])
        return found[0] if found else {}

    def _check_memory(self, free: object) -> None:
        """Decide whether the guest has to give memory back first."""
        assert self.target is not None
        ctx, instance, name = self.ctx, self.instance, self.target.name
        if not isinstance(free, int):
            raise errors.bad_environment(f"node {name} does not say how much memory is free")
        if self.info.memory <= free:
            return
        least = ctx.config.beparams(instance)["minmem"]
        if free < least or not self.op.allow_runtime_changes:
            hint = "" if free < least else "; without --no-runtime-changes it would be shrunk"
            raise errors.not_enough(
                f"not enough memory on node {name} for instance {instance.name}: it has"
                f" {self.info.memory} MiB (at least {least}), free are {free} MiB{hint}"
            )
        self.balloon_to = free

    def hooks(self) -> Hooks:
        config, op = self.ctx.config, self.op
        env = hook_env.instance_env(config, config.instances[self.uuid])
        source = config.nodes[self.source_uuid]
        secondaries = config.secondary_nodes(self.instance)
        names = [config.nodes[uuid].name for uuid in secondaries]
        target = [] if self.target is None else [self.target.uuid]
        env.update(
            MIGRATE_LIVE=self.live,
            MIGRATE_CLEANUP=op.cleanup,
            OLD_PRIMARY=source.name,
            NEW_PRIMARY=self.target.name if self.target else source.name,
            OLD_SECONDARY=names[0] if names else "",
            NEW_SECONDARY=source.name if names else "",
            ALLOW_RUNTIME_CHANGES=op.allow_runtime_changes,
        )
        nodes = [config.cluster.master_node, self.source_uuid, *secondaries, *target]
        return Hooks("instance-migrate", "INSTANCE", env, nodes, nodes)

    # run ---------------------------------------------------------------------------------

    def run(self) -> None:
        ctx = self.ctx
        if self.target is None:
            cleanup.Cleanup(ctx, self.instance, self.op, force=False).run()
            return
        if self.takeover is not None:
            self.takeover.run()
            return
        ctx.release(LockLevel.NODE, keep=[self.source_uuid, self.target.uuid])
        if self.balloon_to is not None:
            self._balloon(self.balloon_to)
        migration.Migration(ctx, self.instance, self.target, self.op, live=self.live).run()
        ctx.log("* done")

    def _balloon(self, memory: int) -> None:
        """Shrink the guest; it gets its memory back when the migration fails."""
        ctx = self.ctx
        source = ctx.config.nodes[self.source_uuid]
        wire = annotate.instance(ctx.config, self.instance)
        ctx.log(f"* shrinking the memory of the instance from {self.info.memory} to {memory} MiB")
        ctx.undo.callback(self._grow_back)
        ctx.rpc.one(source, NodeCalls.instance_balloon_memory, wire, memory)

    def _grow_back(self) -> None:
        ctx = self.ctx
        source = ctx.config.nodes[self.source_uuid]
        wire = annotate.instance(ctx.config, self.instance)
        try:
            ctx.rpc.one(source, NodeCalls.instance_balloon_memory, wire, self.info.memory)
        except errors.GanetiError as err:
            ctx.warn(f"the guest did not get its memory back: {errors.text(err)}")


def _dotted(version: object) -> str:
    return ".".join(map(str, version)) if isinstance(version, list | tuple) else "unknown"

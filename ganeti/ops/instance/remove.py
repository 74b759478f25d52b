"""Remove an instance and its disks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.disk import Disk
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.instance import OpInstanceRemove
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.steps.running import power, run_rights
from ganeti.ops.steps.storage import disks
from ganeti.ops.targets.instance import PlannedInstanceOperation
from ganeti.ops.variants.remove import ReservationRemove


@dataclass(frozen=True)
class _Plan:
    disks: list[Disk]
    #: the primary node, None for what a creation left without one
    node: Node | None
    env: dict[str, Any]


class InstanceRemove(PlannedInstanceOperation[OpInstanceRemove, _Plan, None]):
    """Stops the guest, destroys the disks, forgets the instance. Cannot be undone.

    Also removes what an interrupted creation left.
    """

    for_reservation = ReservationRemove

    def locks(self) -> Needs:
        yield from self.lock_instance(forthcoming=True)
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        if nodes:
            yield from self.lock_nodes(nodes, storage=True)

    def decide(self) -> _Plan:
        config, instance = self.ctx.config, self.instance
        for uuid in locks.storage_nodes(config, instance):
            if config.nodes[uuid].offline and not self.op.ignore_failures:
                raise errors.make_state_error(
                    f"node {config.nodes[uuid].name} is marked offline; its disks would stay"
                    " behind (--ignore-failures removes the instance all the same)"
                )
        disks = [config.disks[uuid] for uuid in instance.disks if uuid in config.disks]
        node = config.nodes.get(instance.primary_node)
        if instance.hypervisor and node:
            env = hook_env.instance_env(config, instance)
        else:
            env = {"OP_TARGET": instance.name, "INSTANCE_NAME": instance.name}
        return _Plan(disks, node, env)

    def hooks(self) -> Hooks:
        master = self.ctx.config.cluster.master_node
        env = {**self.plan.env, "SHUTDOWN_TIMEOUT": self.op.shutdown_timeout}
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        return Hooks("instance-remove", "INSTANCE", env, [master], [master, *nodes])

    def run(self) -> None:
        ctx, instance, plan = self.ctx, self.instance, self.plan
        online = plan.node is not None and not plan.node.offline
        if online and instance.hypervisor is not None:
            try:
                power.stop(ctx, instance, self.op, self.op.shutdown_timeout)
            except errors.GanetiError as err:
                self._handle_failure(f"Instance {instance.name} could not be stopped", err)
            disks.shutdown(ctx, instance)
        failures = disks.remove(ctx, plan.disks, instance.primary_node)
        if failures:
            self._handle_failure(
                "Disks could not be removed", errors.OpExecError("; ".join(failures))
            )
        if plan.node is not None and not plan.node.offline:
            disks.remove_directories(ctx, plan.node, plan.disks)

        def edit(draft: Draft) -> None:
            draft.remove_instance(instance)

        ctx.store.change("instance-remove", ctx.author, edit)
        run_rights.forget(ctx, instance)
        ctx.locks.remove(ctx.job.job_id, LockLevel.INSTANCE, instance.name)

    def _handle_failure(self, what: str, err: errors.GanetiError) -> None:
        """Go on only if the user said so."""
        if not self.op.ignore_failures:
            raise errors.OpExecError(f"{what}: {errors.text(err)}") from err
        self.ctx.warn(f"{what}: {errors.text(err)}")

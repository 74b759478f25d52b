"""Remove an instance and its disks."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model.disk import Disk
from ganeti.opcodes.instance import OpInstanceRemove
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.on_reservations.remove import ReservationRemove
from ganeti.ops.operation import Hooks, Needs
from ganeti.ops.steps import removal
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    disks: list[Disk]
    env: JsonObject


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
        if instance.hypervisor and instance.primary_node in config.nodes:
            env = hook_env.instance_env(config, instance)
        else:
            env = {"OP_TARGET": instance.name, "INSTANCE_NAME": instance.name}
        return _Plan(disks, env)

    def hooks(self) -> Hooks:
        master = self.ctx.config.cluster.master_node
        env = {**self.plan.env, "SHUTDOWN_TIMEOUT": self.op.shutdown_timeout}
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        return Hooks("instance-remove", "INSTANCE", env, [master], [master, *nodes])

    def run(self) -> None:
        removal.remove(
            self.ctx,
            self.op,
            self.instance,
            self.plan.disks,
            timeout=self.op.shutdown_timeout,
            ignore_failures=self.op.ignore_failures,
        )

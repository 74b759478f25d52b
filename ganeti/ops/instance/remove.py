"""Remove an instance and its disks."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.model.instance import Instance
from ganeti.model.names import LockLevel
from ganeti.opcodes.instance import OpInstanceRemove
from ganeti.ops import hooks as hook_env
from ganeti.ops import locks
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.steps.running import power, run_rights
from ganeti.ops.steps.storage import disks


class InstanceRemove(Operation[OpInstanceRemove, None]):
    """Stops the guest, destroys the disks, forgets the instance. Cannot be undone.

    Also takes away what an interrupted creation left.
    """

    instance: Instance

    def locks(self) -> Needs:
        self.instance = yield from locks.instance(
            self.ctx, self.op.instance_name, self.op.instance_uuid
        )
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        if nodes:
            yield Need(LockLevel.NODE, nodes, shared=True)
            yield Need(LockLevel.NODE_RES, nodes)

    def check(self) -> None:
        config = self.ctx.config
        self.instance = config.instances[self.instance.uuid]
        self.disks = [config.disks[uuid] for uuid in self.instance.disks if uuid in config.disks]
        self.node = config.nodes.get(self.instance.primary_node)
        uuids = locks.storage_nodes(config, self.instance)
        for node in (config.nodes[uuid] for uuid in uuids if uuid in config.nodes):
            if node.offline and not self.op.ignore_failures:
                raise errors.wrong_state(
                    f"node {node.name} is marked offline; its disks would stay behind"
                    " (--ignore-failures removes the instance all the same)"
                )
        if self.instance.hypervisor and self.node:
            self.env = hook_env.instance_env(config, self.instance)
        else:
            self.env = {"OP_TARGET": self.instance.name, "INSTANCE_NAME": self.instance.name}

    def hooks(self) -> Hooks:
        master = self.ctx.config.cluster.master_node
        env = {**self.env, "SHUTDOWN_TIMEOUT": self.op.shutdown_timeout}
        nodes = locks.storage_nodes(self.ctx.config, self.instance)
        return Hooks("instance-remove", "INSTANCE", env, [master], [master, *nodes])

    def run(self) -> None:
        ctx, instance = self.ctx, self.instance
        online = self.node is not None and not self.node.offline
        if online and instance.hypervisor is not None:
            try:
                power.stop(ctx, instance, self.op, self.op.shutdown_timeout)
            except errors.GanetiError as err:
                self._failed(f"Instance {instance.name} could not be stopped", err)
            disks.shutdown(ctx, instance)
        failures = disks.remove(ctx, self.disks, instance.primary_node)
        if failures:
            self._failed("Disks could not be removed", errors.OpExecError("; ".join(failures)))
        if self.node is not None and not self.node.offline:
            disks.remove_directories(ctx, self.node, self.disks)

        def edit(draft: Draft) -> None:
            draft.remove_instance(instance)

        ctx.store.change("instance-remove", ctx.author, edit)
        run_rights.forget(ctx, instance)
        ctx.locks.remove(ctx.job.job_id, LockLevel.INSTANCE, instance.name)

    def _failed(self, what: str, err: errors.GanetiError) -> None:
        """Go on only if the user said so."""
        if not self.op.ignore_failures:
            raise errors.OpExecError(f"{what}: {errors.text(err)}") from err
        self.ctx.warn(f"{what}: {errors.text(err)}")

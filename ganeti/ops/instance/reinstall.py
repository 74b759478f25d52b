"""Install the guest OS of an instance anew."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.params import Params, fill, without_defaults
from ganeti.opcodes.hidden import reveal_all
from ganeti.opcodes.instance import OpInstanceReinstall
from ganeti.ops import annotate, locks
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.steps import node_checks
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks
from ganeti.rpc.calls import NodeCalls


class InstanceReinstall(Operation[OpInstanceReinstall, None]):
    """The instance must be stopped; everything on its disks is lost."""

    def locks(self) -> Needs:
        found = yield from locks.with_disks(
            self.ctx, self.op.instance_name, self.op.instance_uuid, storage=False
        )
        self.uuid = found.uuid

    def check(self) -> None:
        ctx, op = self.ctx, self.op
        self.instance = ctx.config.instances[self.uuid]
        name = self.instance.name
        if not self.instance.disks:
            raise errors.invalid(f"instance {name} has no disk to install on")
        self.node = power.primary(ctx, self.instance)
        if power.running(ctx, self.instance) is not None:
            raise errors.wrong_state(f"instance {name} is running; stop it before reinstalling it")
        self.os = op.os_type or self.instance.os
        if not self.os:
            raise errors.invalid(f"instance {name} has no OS; name one with --os-type")
        self.osparams = self._merge(self.instance.osparams, op.osparams)
        self.private = self._merge(self.instance.osparams_private, op.osparams_private)
        secret = self._merge({}, op.osparams_secret)
        self.full = fill(ctx.config.osparams_for(self.os, self.osparams), self.private, secret)
        # an instance from the time before its OS had variants may keep its OS
        node_checks.os_on_node(
            ctx,
            self.node,
            self.os,
            self.full,
            self.instance.hypervisor,
            force_variant=op.force_variant or op.os_type is None,
        )

    @staticmethod
    def _merge(old: Params, new: object) -> Params:
        plain = reveal_all(new if isinstance(new, dict) else {})
        kept = {k: v for k, v in old.items() if k not in plain}
        return {**kept, **without_defaults(plain)}

    def hooks(self) -> Hooks:
        config = self.ctx.config
        instance = config.instances[self.uuid]
        nodes = [config.cluster.master_node, *config.instance_nodes(instance)]
        env = hook_env.instance_env(config, instance)
        return Hooks("instance-reinstall", "INSTANCE", env, nodes, nodes)

    def run(self) -> None:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            draft.update(
                self.instance, os=self.os, osparams=self.osparams, osparams_private=self.private
            )

        if (self.os, self.osparams, self.private) != (
            self.instance.os,
            self.instance.osparams,
            self.instance.osparams_private,
        ):
            ctx.log(f"Changing OS to '{self.os}'...")
            ctx.store.change("instance-reinstall", ctx.author, edit)
        instance = ctx.config.instances[self.uuid]
        ctx.log("Running the instance OS create scripts...")
        try:
            disks.assemble(ctx, instance)
            wire = annotate.instance(ctx.config, instance, osparams=self.full)
            debug = self.op.debug_level or 0
            ctx.rpc.one(self.node, NodeCalls.instance_os_add, wire, True, debug)
        finally:
            disks.shutdown(ctx, instance)

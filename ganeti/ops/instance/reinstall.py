"""Install the guest OS of an instance again."""

from __future__ import annotations

from dataclasses import dataclass

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.config.changes import Draft
from ganeti.constants import OS_IMAGE
from ganeti.model import base
from ganeti.model.node import Node
from ganeti.model.params import drop_defaults, fill
from ganeti.opcodes.hidden import reveal_all
from ganeti.opcodes.instance import OpInstanceReinstall
from ganeti.ops import annotate
from ganeti.ops.operation import Hooks
from ganeti.ops.steps import installing, node_checks
from ganeti.ops.steps.running import power
from ganeti.ops.steps.storage import disks
from ganeti.ops.targets.instance import PlannedInstanceOperation


@dataclass(frozen=True)
class _Plan:
    node: Node
    os: str
    osparams: JsonObject
    private: JsonObject
    #: all OS parameters of this installation, also those that are never stored
    full: JsonObject


class InstanceReinstall(PlannedInstanceOperation[OpInstanceReinstall, _Plan, None]):
    """The instance must be stopped; everything on its disks is lost."""

    def decide(self) -> _Plan:
        ctx, op = self.ctx, self.op
        name = self.instance.name
        if not self.instance.disks:
            raise errors.make_invalid_error(f"instance {name} has no disk to install on")
        node = power.primary(ctx, self.instance)
        if power.query_running(ctx, self.instance) is not None:
            raise errors.make_state_error(
                f"instance {name} is running; stop it before reinstalling it"
            )
        os_name = op.os_type or self.instance.os
        osparams = self._merge(self.instance.osparams, op.osparams)
        if not os_name and not osparams.get(OS_IMAGE):
            raise errors.make_invalid_error(f"instance {name} has no OS; name one with --os-type")
        private = self._merge(self.instance.osparams_private, op.osparams_private)
        secret = self._merge({}, op.osparams_secret)
        hidden = ctx.config.private_osparams_for(os_name, private)
        full = fill(ctx.config.osparams_for(os_name, osparams), hidden, secret)
        # an instance from the time before its OS had variants may keep its OS
        if os_name:
            node_checks.os_on_node(
                ctx,
                node,
                os_name,
                full,
                self.instance.hypervisor,
                force_variant=op.force_variant or op.os_type is None,
            )
        new = base.replace(self.instance, os=os_name)
        installing.check(ctx, new, ctx.config.disks_of(self.instance), full)
        return _Plan(node, os_name, osparams, private, full)

    @staticmethod
    def _merge(old: JsonObject, new: object) -> JsonObject:
        plain = reveal_all(new if isinstance(new, dict) else {})
        kept = {k: v for k, v in old.items() if k not in plain}
        return {**kept, **drop_defaults(plain)}

    def hooks(self) -> Hooks:
        return self.instance_hooks("instance-reinstall")

    def run(self) -> None:
        ctx, old, plan = self.ctx, self.instance, self.plan

        def edit(draft: Draft) -> None:
            draft.update(old, os=plan.os, osparams=plan.osparams, osparams_private=plan.private)

        if (plan.os, plan.osparams, plan.private) != (old.os, old.osparams, old.osparams_private):
            ctx.log(f"Changing OS to '{plan.os}'...")
            ctx.store.change("instance-reinstall", ctx.author, edit)
        instance = self.now
        try:
            disks.assemble(ctx, instance)
            installing.run(
                ctx,
                instance,
                ctx.config.disks_of(instance),
                annotate.instance(ctx.config, instance, osparams=plan.full),
                self.op,
                reinstall=True,
                debug=self.op.debug_level or 0,
            )
        finally:
            disks.shutdown(ctx, instance)

"""Tell where a new instance would go, and why it would not go to other nodes."""

from __future__ import annotations

import dataclasses

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.placement import OpClusterPlace
from ganeti.ops.allocator import board
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import supposed


class ClusterPlace(PlannedOperation[OpClusterPlace, str, JsonObject]):
    """Takes no locks and claims nothing: it only reads."""

    def decide(self) -> str:
        """The disk template in question."""
        if self.op.group_name is not None:
            self.ctx.config.group(self.op.group_name)
        return supposed.template(self.ctx.config, self.op.disk_template)

    def run(self) -> JsonObject:
        from ganeti.ops.allocator import builtin  # these load numpy
        from ganeti.placement.capacity import model_instance
        from ganeti.placement.choose import Chooser, Wish

        ctx, op = self.ctx, self.op
        view = board.view_cluster(ctx, self.plan)
        made = supposed.suppose(view.cluster, op.what_if)
        [first, *_] = supposed.groups(view.config, made.cluster, op.group_name)
        policy = made.cluster.policy if op.group_name is None else made.cluster.policy_of(first)
        wanted = supposed.make_wanted(op, self.plan)
        item = model_instance(wanted.adapt(policy.standard), self.plan)
        disks = (item.disk - wanted.overhead,) if item.disk else ()
        wish = Wish(dataclasses.replace(item, disks=disks, tags=tuple(op.tags)), op.group_name)
        chooser = Chooser(made.cluster, survive=builtin.keeps_capacity(ctx))
        groups = [one.data() for one in chooser.survey(wish)]
        choice = chooser.explain(wish, chooser.choose(wish))
        hints = [] if choice.refusal is None else choice.refusal.data()["hints"]
        return {
            **supposed.describe_assumptions(op.what_if, made, view.silent),
            "disk_template": self.plan,
            "memory": item.memory,
            "disk": sum(disks),
            "vcpus": item.vcpus,
            "nodes": list(choice.nodes),
            "group": choice.group or None,
            "score": choice.score if choice.nodes else None,
            "groups": groups,
            "hints": hints,
        }

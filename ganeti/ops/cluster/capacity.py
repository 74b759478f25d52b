"""Say how many more instances fit, and which resource runs out first."""

from __future__ import annotations

from ganeti.base.json_types import JsonObject
from ganeti.opcodes.placement import OpClusterCapacity
from ganeti.ops.allocator import board
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import supposed


class ClusterCapacity(PlannedOperation[OpClusterCapacity, str, JsonObject]):
    """Takes no locks: it only reads, and all nodes are asked at the same moment."""

    def decide(self) -> str:
        """The disk template in question."""
        config = self.ctx.config
        if self.op.group_name is not None:
            config.group(self.op.group_name)
        return supposed.template(config, self.op.disk_template)

    def run(self) -> JsonObject:
        from ganeti.placement import headroom  # it loads numpy

        ctx, op = self.ctx, self.op
        view = board.view_cluster(ctx, self.plan)
        made = supposed.suppose(view.cluster, op.what_if)
        wanted = supposed.make_wanted(op, self.plan)
        groups = supposed.groups(view.config, made.cluster, op.group_name)
        return {
            **supposed.describe_assumptions(op.what_if, made, view.silent),
            "disk_template": self.plan,
            "groups": [one.data() for one in headroom.examine(made.cluster, groups, wanted)],
        }

"""Tell how many more instances fit, and what ends it."""

from __future__ import annotations

from typing import Any

from ganeti import errors
from ganeti.opcodes.placement import OpClusterCapacity
from ganeti.ops.allocator import board
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.planning import supposed
from ganeti.storage.registry import TEMPLATES


class ClusterCapacity(PlannedOperation[OpClusterCapacity, str, dict[str, Any]]):
    """Takes no locks: it only reads, and all nodes are asked at the same moment."""

    def decide(self) -> str:
        """The disk template in question."""
        config = self.ctx.config
        if self.op.group_name is not None:
            config.group(self.op.group_name)
        enabled = [str(name) for name in config.cluster.enabled_disk_templates]
        wanted = enabled[0] if self.op.disk_template is None else str(self.op.disk_template)
        if wanted not in enabled:
            raise errors.invalid(
                f"disk template {wanted} is not enabled; enabled are {', '.join(enabled)}"
            )
        return wanted

    def run(self) -> dict[str, Any]:
        from ganeti.placement import headroom  # it loads numpy

        ctx, op = self.ctx, self.op
        view = board.look(ctx, self.plan)
        made = supposed.suppose(view.cluster, op.what_if)
        wanted = headroom.Wanted(
            self.plan,
            None if op.memory is None else int(op.memory),
            None if op.disk is None else int(op.disk),
            op.vcpus,
            TEMPLATES.get(self.plan).traits.overhead,
        )
        groups = supposed.groups(view.config, made.cluster, op.group_name)
        return {
            **supposed.about(op.what_if, made, view.silent),
            "disk_template": self.plan,
            "groups": [one.data() for one in headroom.examine(made.cluster, groups, wanted)],
        }

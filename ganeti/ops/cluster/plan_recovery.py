"""Tell what would happen if a node died now."""

from __future__ import annotations

import dataclasses
from typing import Any

from ganeti import errors
from ganeti.base.json_types import JsonObject
from ganeti.model.enums import MasterVote
from ganeti.model.node import Node
from ganeti.model.start_order import get_order
from ganeti.opcodes.cluster import OpClusterPlanRecovery
from ganeti.ops.operation import PlannedOperation
from ganeti.ops.steps.nodes import failover_places
from ganeti.recovery import forecast
from ganeti.recovery.ladder import list_devices


class ClusterPlanRecovery(PlannedOperation[OpClusterPlanRecovery, Node, JsonObject]):
    """Takes no locks and claims nothing: it only reads, and decides as a real death would."""

    def decide(self) -> Node:
        node = self.ctx.config.node(self.op.node_name)
        if node.offline:
            raise errors.make_state_error(
                f"node {node.name} is offline; gnt-cluster recovery status shows what became of its"
                " instances"
            )
        return node

    def run(self) -> JsonObject:
        ctx, node = self.ctx, self.plan
        cluster = ctx.config.cluster
        with ctx.services.hold_lease_back(node.uuid) as lease:
            watchdog = lease.watchdog
        moments = forecast.foresee(
            forecast.Rules(
                cluster.auto_fence_after or 0,
                cluster.auto_failover_after or 0,
                cluster.master_vote or "",
                chooses=cluster.master_vote is MasterVote.PACEMAKER,
            ),
            master=node.uuid == cluster.master_node,
            watchdog=watchdog,
            devices=[f"{rung.value} {name}" for rung, name in self._devices.items()],
        )
        places = failover_places.find_places(ctx, node, everything=False)
        return {
            "node": node.name,
            "paused_until": cluster.find_recovery_pause(ctx.clock.now()),
            "moments": [dataclasses.asdict(moment) for moment in moments],
            "starts": [
                {
                    "instance": start.instance.handle,
                    "node": start.node or None,
                    "order": get_order(start.instance.tags),
                }
                for start in places.starts
            ],
            "waits": _list_reasons(places.roomless),
            "left": _list_reasons(places.left),
        }

    @property
    def _devices(self) -> dict[Any, str]:
        return list_devices(self.ctx.config.ndparams(self.plan))


def _list_reasons(pairs: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"instance": name, "reason": reason} for name, reason in pairs]

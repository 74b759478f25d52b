"""Create a network."""

from __future__ import annotations

import uuid

from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.ids import NetworkUuid
from ganeti.model.network import Network
from ganeti.opcodes.network import OpNetworkAdd
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Finding, FindingOperation, Hooks, PlannedOperation
from ganeti.ops.planning import network_settings
from ganeti.ops.planning import tags as tag_rules


class NetworkAdd(
    FindingOperation[OpNetworkAdd, NetworkUuid, None],
    PlannedOperation[OpNetworkAdd, Network, None],
):
    def find(self) -> Finding[NetworkUuid]:
        """Lock the new network; its name is reserved for this job."""
        new = NetworkUuid(str(uuid.uuid4()))
        yield Need(LockLevel.NETWORK, (), new=[new])
        return new

    def decide(self) -> Network:
        op, config = self.op, self.ctx.config
        network_settings.check_name(config, op.network_name)
        tag_rules.check(op.tags)
        self.ctx.claim("network name", op.network_name)
        network = network_settings.make_network(config, op, self.found)
        if op.conflicts_check:
            for address in network_settings.list_cluster_addresses(config, network):
                self.ctx.log(f"Reserved {address}, which the cluster or a node has")
        return network

    def hooks(self) -> Hooks:
        nodes = [self.ctx.config.cluster.master_node]
        return Hooks("network-add", "NETWORK", hook_env.network_env(self.plan), nodes, nodes)

    def run(self) -> None:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            network_settings.check_name(draft.config, self.plan.name)
            draft.put(self.plan)

        ctx.store.change("network-add", ctx.author, edit)
        ctx.locks.keep(ctx.job.job_id, LockLevel.NETWORK, [self.found])
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)

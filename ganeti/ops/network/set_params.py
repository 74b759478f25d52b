"""Change settings of a network."""

from __future__ import annotations

from ganeti import errors
from ganeti.config.changes import Draft
from ganeti.model.network import Network
from ganeti.opcodes.network import OpNetworkSetParams
from ganeti.ops import hooks as hook_env
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.planning import network_settings
from ganeti.ops.targets.network import NetworkOperation


class NetworkSetParams(
    NetworkOperation[OpNetworkSetParams, None],
    PlannedOperation[OpNetworkSetParams, Network, None],
):
    def decide(self) -> Network:
        """The network as it will be."""
        if not network_settings.has_parameters(self.op):
            raise errors.make_invalid_error("nothing to change: give at least one parameter")
        changed = network_settings.change_network(self.network, self.op)
        for text in network_settings.notes(self.network, self.op):
            self.ctx.warn(text)
        return changed

    def hooks(self) -> Hooks:
        nodes = [self.ctx.config.cluster.master_node]
        env = hook_env.network_env(self.plan)
        return Hooks("network-modify", "NETWORK", env, nodes, nodes)

    def run(self) -> None:
        def edit(draft: Draft) -> None:
            # an instance may have released an address meanwhile
            current = draft.config.networks[self.network.uuid]
            draft.put(network_settings.change_network(current, self.op))

        self.ctx.store.change("network-modify", self.ctx.author, edit)

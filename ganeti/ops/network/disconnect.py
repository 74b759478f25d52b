"""Make a network unusable in a node group."""

from __future__ import annotations

from collections.abc import Mapping

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.opcodes.network import OpNetworkDisconnect
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.targets import network
from ganeti.ops.targets.network import ConnectionOperation


class NetworkDisconnect(
    ConnectionOperation[OpNetworkDisconnect, None],
    PlannedOperation[OpNetworkDisconnect, Mapping[str, str] | None, None],
):
    def decide(self) -> Mapping[str, str] | None:
        """How the network is connected; None when it is not."""
        params = self.group.networks.get(self.network.uuid)
        if params is None:
            self.ctx.warn(
                f"network '{self.network.name}' is not connected to node group '{self.group.name}'"
            )
            return None
        config = self.ctx.config
        users = [
            instance.name
            for node in config.group_nodes(self.group.uuid)
            for instance in config.primaries[node.uuid]
            if any(nic.network == self.network.uuid for nic in instance.nics)
        ]
        if users:
            raise errors.make_state_error(
                f"network '{self.network.name}' is used in node group '{self.group.name}' by"
                f" {join_names(users)}; take their NICs out of it first"
                " (gnt-instance modify --net N:network=none,ip=none)"
            )
        return params

    def hooks(self) -> Hooks:
        return network.group_hooks(self.ctx, "network-disconnect", self.group, self.plan or {})

    def run(self) -> None:
        if self.plan is None:
            return

        def edit(draft: Draft) -> None:
            networks = dict(draft.config.groups[self.group.uuid].networks)
            networks.pop(self.network.uuid, None)
            draft.update(self.group, networks=networks)

        self.ctx.store.change("network-disconnect", self.ctx.author, edit)

"""Make a network unusable in a node group."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.opcodes.network import OpNetworkDisconnect
from ganeti.ops.operation import Hooks, Needs, Operation
from ganeti.ops.targets import network


class NetworkDisconnect(Operation[OpNetworkDisconnect, None]):
    def locks(self) -> Needs:
        op = self.op
        self.network, self.group = yield from network.lock_with_group(
            self.ctx, op.network_name, op.group_name
        )

    def check(self) -> None:
        self.params = self.group.networks.get(self.network.uuid)
        if self.params is None:
            self.ctx.warn(
                f"network '{self.network.name}' is not connected to node group '{self.group.name}'"
            )
            return
        config = self.ctx.config
        users = [
            instance.name
            for node in config.group_nodes(self.group.uuid)
            for instance in config.primaries[node.uuid]
            if any(nic.network == self.network.uuid for nic in instance.nics)
        ]
        if users:
            raise errors.wrong_state(
                f"network '{self.network.name}' is used in node group '{self.group.name}' by"
                f" {join_names(users)}; take their NICs out of it first"
                " (gnt-instance modify --net N:network=none,ip=none)"
            )

    def hooks(self) -> Hooks:
        return network.group_hooks(self.ctx, "network-disconnect", self.group, self.params or {})

    def run(self) -> None:
        if self.params is None:
            return

        def edit(draft: Draft) -> None:
            networks = dict(draft.config.groups[self.group.uuid].networks)
            networks.pop(self.network.uuid, None)
            draft.update(self.group, networks=networks)

        self.ctx.store.change("network-disconnect", self.ctx.author, edit)

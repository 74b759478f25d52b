"""Rename a network."""

from __future__ import annotations

from ganeti.config.changes import Draft
from ganeti.opcodes.network import OpNetworkRename
from ganeti.ops.operation import Hooks
from ganeti.ops.planning import network_settings
from ganeti.ops.targets.network import NetworkOperation


class NetworkRename(NetworkOperation[OpNetworkRename, str]):
    """Returns the new name."""

    def check(self) -> None:
        network_settings.check_name(self.ctx.config, self.op.new_name)
        self.ctx.claim("network name", self.op.new_name)

    def hooks(self) -> Hooks:
        config = self.ctx.config
        env = {"OLD_NAME": self.network.name, "NEW_NAME": self.op.new_name}
        groups = [g.uuid for g in config.groups.values() if self.network.uuid in g.networks]
        members = [node.uuid for node in config.nodes.values() if node.group in groups]
        nodes = list(dict.fromkeys([config.cluster.master_node, *members]))
        return Hooks("network-rename", "NETWORK", env, nodes, nodes)

    def run(self) -> str:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            network_settings.check_name(draft.config, self.op.new_name)
            draft.update(self.network, name=self.op.new_name)

        ctx.store.change("network-rename", ctx.author, edit)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        return self.op.new_name

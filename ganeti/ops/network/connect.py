"""Make a network usable in a node group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config import parameters
from ganeti.config.changes import Draft
from ganeti.model import address_pool
from ganeti.model.config import Config
from ganeti.model.ids import GroupUuid
from ganeti.model.network import Network
from ganeti.opcodes.network import OpNetworkConnect
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.targets import network
from ganeti.ops.targets.network import ConnectionOperation


def conflicts(config: Config, network: Network, group: GroupUuid) -> list[str]:
    """``instance/NIC`` of a group (uuid) with an address of the network, without being in it."""
    return [
        f"{instance.name}/{index}"
        for node in config.group_nodes(group)
        for instance in config.primaries[node.uuid]
        for index, nic in enumerate(instance.nics)
        if nic.network != network.uuid and nic.ip and address_pool.contains(network, nic.ip)
    ]


@dataclass(frozen=True)
class _Plan:
    #: mode, link and VLAN of the NICs
    params: dict[str, str]
    #: whether the network is connected so already
    done: bool


class NetworkConnect(
    ConnectionOperation[OpNetworkConnect, None], PlannedOperation[OpNetworkConnect, _Plan, None]
):
    def decide(self) -> _Plan:
        op, ctx = self.op, self.ctx
        params = {
            "mode": str(op.network_mode),
            "link": str(op.network_link),
            "vlan": str(op.network_vlan),
        }
        parameters.check_nic(params)
        before = self.group.networks.get(self.network.uuid)
        if before is not None:
            self._check_same(before, params)
            return _Plan(params, done=True)
        if op.conflicts_check:
            self._check_conflicts()
        ctx.log(f"Connecting network {self.network.name} to node group {self.group.name}")
        return _Plan(params, done=False)

    def _check_same(self, before: Mapping[str, str], params: Mapping[str, str]) -> None:
        if before != params:
            known = ", ".join(f"{key}={value}" for key, value in before.items())
            raise errors.make_exists_error(
                f"network '{self.network.name}' is connected to node group '{self.group.name}'"
                f" already, with {known}; disconnect it first"
            )
        self.ctx.warn(
            f"network '{self.network.name}' is connected to node group '{self.group.name}' already"
        )

    def _check_conflicts(self) -> None:
        found = conflicts(self.ctx.config, self.network, self.group.uuid)
        if found:
            raise errors.make_state_error(
                f"instances of node group '{self.group.name}' have addresses of network"
                f" '{self.network.name}' without belonging to it: {join_names(found)}"
                " (instance/NIC); change them, or use --no-conflicts-check"
            )

    def hooks(self) -> Hooks:
        return network.group_hooks(self.ctx, "network-connect", self.group, self.plan.params)

    def run(self) -> None:
        if self.plan.done:
            return

        def edit(draft: Draft) -> None:
            networks = draft.config.groups[self.group.uuid].networks
            draft.update(self.group, networks={**networks, self.network.uuid: self.plan.params})

        self.ctx.store.change("network-connect", self.ctx.author, edit)

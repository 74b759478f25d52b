"""Remove a network."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.group import NodeGroup
from ganeti.model.ids import GroupUuid
from ganeti.model.network import Network
from ganeti.opcodes.network import OpNetworkRemove
from ganeti.ops.operation import Hooks, Needs, PlannedOperation
from ganeti.ops.targets.network import NetworkOperation


class NetworkRemove(
    NetworkOperation[OpNetworkRemove, None],
    PlannedOperation[OpNetworkRemove, list[NodeGroup], None],
):
    """Removes a network; with force also one that is still connected to node groups."""

    def locks(self) -> Needs:
        if self.op.force:
            config = self.ctx.config
            yield Need(LockLevel.NODEGROUP, self._groups(config.network(self.op.network_name)))
        yield from super().locks()

    def _groups(self, network: Network) -> list[GroupUuid]:
        """Uuids of the node groups that it is connected to."""
        groups = self.ctx.config.groups.values()
        return [group.uuid for group in groups if network.uuid in group.networks]

    def decide(self) -> list[NodeGroup]:
        """The node groups that it is connected to, and is disconnected from."""
        config = self.ctx.config
        groups = [config.groups[uuid] for uuid in self._groups(self.network)]
        held = self.ctx.list_held(LockLevel.NODEGROUP)
        if not held.issuperset(group.uuid for group in groups):
            raise errors.make_state_error(
                f"network '{self.network.name}' is connected to node group"
                f" {join_names(group.name for group in groups)};"
                f" first: gnt-network disconnect {self.network.name}"
            )
        users = [
            instance.name
            for instance in config.instances.values()
            if any(nic.network == self.network.uuid for nic in instance.nics)
        ]
        if users:
            raise errors.make_state_error(
                f"network '{self.network.name}' is used by {join_names(users)}"
            )
        return groups

    def hooks(self) -> Hooks:
        nodes = [self.ctx.config.cluster.master_node]
        env = {"NETWORK_NAME": self.network.name}
        return Hooks("network-remove", "NETWORK", env, nodes, nodes)

    def run(self) -> None:
        ctx = self.ctx
        ctx.store.change("network-remove", ctx.author, self._edit)
        ctx.locks.remove(ctx.job.job_id, LockLevel.NETWORK, self.network.uuid)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)

    def _edit(self, draft: Draft) -> None:
        for group in self.plan:
            networks = dict(draft.config.groups[group.uuid].networks)
            networks.pop(self.network.uuid, None)
            draft.update(group, networks=networks)
        draft.delete(self.network)

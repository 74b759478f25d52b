"""Move nodes into a node group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ganeti import errors
from ganeti.base.text import join_names
from ganeti.config.changes import Draft
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.config import Config
from ganeti.model.group import NodeGroup
from ganeti.model.ids import GroupUuid, NodeUuid
from ganeti.model.instance import Instance
from ganeti.opcodes.group import OpGroupAssignNodes
from ganeti.ops.operation import Finding, FindingOperation


def split(config: Config, groups: Mapping[NodeUuid, GroupUuid]) -> list[Instance]:
    """Instances whose nodes lie in more than one group, with ``groups``: node -> group. Pure."""
    return [
        instance
        for instance in config.instances.values()
        if len({groups[uuid] for uuid in config.instance_nodes(instance) if uuid in groups}) > 1
    ]


def cut_off(config: Config, nodes: Iterable[NodeUuid], group: NodeGroup) -> list[Instance]:
    """Instances on nodes (uuids) with a NIC in a network that a node group does not have. Pure."""
    return [
        instance
        for uuid in nodes
        for instance in config.primaries[uuid]
        if any(nic.network and nic.network not in group.networks for nic in instance.nics)
    ]


@dataclass(frozen=True)
class _Found:
    target: NodeGroup
    #: uuids of the nodes that are to be in it
    nodes: list[NodeUuid]


class GroupAssignNodes(FindingOperation[OpGroupAssignNodes, _Found, None]):
    def find(self) -> Finding[_Found]:
        """Lock the group, the groups that the nodes leave, and the nodes."""
        op, config = self.op, self.ctx.config
        target = config.group(op.group_name)
        names = op.node_uuids if op.node_uuids is not None else op.nodes
        uuids = list(dict.fromkeys(config.node(name).uuid for name in names))
        left = {config.nodes[uuid].group for uuid in uuids}
        groups = {target.uuid, *left}
        yield Need(LockLevel.NODEGROUP, groups)
        yield Need(LockLevel.NODE, uuids)
        current = self.ctx.config
        renamed = current.groups.get(target.uuid)
        gone = [uuid for uuid in uuids if uuid not in current.nodes]
        if (
            renamed is None
            or renamed.name != target.name
            or gone
            or any(current.nodes[uuid].group not in groups for uuid in uuids)
        ):
            raise errors.make_state_error(
                "nodes or groups were changed while this job waited for them; try again"
            )
        return _Found(renamed, uuids)

    def check(self) -> None:
        op, config = self.op, self.ctx.config
        if not self.found.nodes:
            raise errors.make_invalid_error("no nodes were named; say which to move")
        before = {node.uuid: node.group for node in config.nodes.values()}
        after = {**before, **dict.fromkeys(self.found.nodes, self.found.target.uuid)}
        known = {instance.uuid for instance in split(config, before)}
        parted = split(config, after)
        fresh = [item.name for item in parted if item.uuid not in known]
        if fresh and not op.force:
            raise errors.make_state_error(
                f"the nodes of instances {join_names(sorted(fresh))} would be in different node"
                " groups; move both nodes of each, or use --force"
            )
        if fresh:
            self.ctx.warn(f"instances are split between node groups now: {join_names(fresh)}")
        self._check_networks()
        remaining = [item.name for item in parted if item.uuid in known]
        if remaining:
            self.ctx.warn(f"instances stay split between node groups: {join_names(remaining)}")

    def _check_networks(self) -> None:
        config = self.ctx.config
        moving = [
            uuid for uuid in self.found.nodes if config.nodes[uuid].group != self.found.target.uuid
        ]
        lost = cut_off(config, moving, config.groups[self.found.target.uuid])
        if not lost:
            return
        text = (
            f"instances {join_names(sorted(item.name for item in lost))} use networks that are not"
            f" connected to node group '{self.found.target.name}'"
        )
        if not self.op.force:
            raise errors.make_state_error(
                f"{text}; connect them first (gnt-network connect), or use --force"
            )
        self.ctx.warn(text)

    def run(self) -> None:
        ctx = self.ctx

        def edit(draft: Draft) -> None:
            for uuid in self.found.nodes:
                node = draft.config.nodes[uuid]
                if node.group != self.found.target.uuid:
                    draft.update(node, group=self.found.target.uuid)

        ctx.store.change("group-assign-nodes", ctx.author, edit)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)

"""Remove a node from the cluster."""

from __future__ import annotations

from ganeti import errors
from ganeti.base.text import join_names, plural
from ganeti.config.changes import Draft
from ganeti.locking.levels import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.node import OpNodeRemove
from ganeti.ops.operation import Hooks, PlannedOperation
from ganeti.ops.steps.nodes import candidates, hosts_files, ssh_keys
from ganeti.rpc.calls import NodeCalls


class NodeRemove(PlannedOperation[OpNodeRemove, Node, None]):
    """Only a node without instances, and not the master; its daemon stops."""

    def decide(self) -> Node:
        config = self.ctx.config
        node = config.node(self.op.node_uuid or self.op.node_name)
        if node.uuid == config.cluster.master_node:
            raise errors.make_invalid_error(
                f"node {node.name} is the master; make another node the master first"
                " (gnt-cluster master-failover)"
            )
        used = [*config.primaries[node.uuid], *config.secondaries[node.uuid]]
        if used:
            names = ", ".join(sorted(item.handle for item in used)[:5])
            raise errors.make_invalid_error(
                f"node {node.name} still has {len(used)} instances ({names}); move or remove"
                " them first"
            )
        detached = config.list_detached_disks(node.uuid)
        if detached:
            names = join_names(disk.name or disk.uuid for disk in detached)
            raise errors.make_invalid_error(
                f"node {node.name} still holds {plural(len(detached), 'detached disk')}"
                f" ({names}); remove them first (gnt-disk remove), or attach and move them"
            )
        return node

    def hooks(self) -> Hooks:
        env = {"OP_TARGET": self.plan.name, "NODE_NAME": self.plan.name}
        others = [uuid for uuid in self.ctx.config.nodes if uuid != self.plan.uuid]
        return Hooks("node-remove", "NODE", env, others, others)

    def run(self) -> None:
        ctx, node = self.ctx, self.plan

        def edit(draft: Draft) -> None:
            draft.remove_node(node)

        ctx.store.change("node-remove", ctx.author, edit)
        for level in (LockLevel.NODE, LockLevel.NODE_RES):
            ctx.locks.discard(level, node.uuid)
        try:
            ssh_keys.leave(ctx, node)
            modify_ssh = ctx.config.cluster.modify_ssh_setup
            ctx.rpc.call_one(node, NodeCalls.node_leave_cluster, modify_ssh)
        except errors.GanetiError as err:
            ctx.warn(
                f"node {node.name} did not clean up after itself: {errors.text(err)}; remove its"
                f" {ctx.paths.data} by hand"
            )
        candidates.fill_up(ctx)
        for failure in ctx.services.distribute_ssconf():
            ctx.warn(failure)
        ssh_keys.bring_up_to_date(ctx)
        hosts_files.remove(ctx, node)

"""Restart a node at once."""

from __future__ import annotations

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.node import OpNodePowercycle
from ganeti.ops.operation import Needs, PlannedOperation
from ganeti.rpc.calls import NodeCalls


class NodePowercycle(PlannedOperation[OpNodePowercycle, Node, str]):
    """Returns the answer of the node. Takes no lock: it is for nodes on which everything hangs."""

    def locks(self) -> Needs:
        yield Need(LockLevel.NODE, (), shared=True)

    def decide(self) -> Node:
        """The node that is restarted."""
        config = self.ctx.config
        node = config.node(self.op.node_uuid or self.op.node_name)
        if node.uuid == config.cluster.master_node and not self.op.force:
            raise errors.make_invalid_error(
                f"{node.name} is the master node: all jobs end with it (--force restarts it all"
                " the same)"
            )
        return node

    def run(self) -> str:
        config = self.ctx.config
        hypervisor = config.cluster.enabled_hypervisors[0]
        # By its address: a node that is marked offline can be restarted too.
        answer = self.ctx.rpc.call_address(
            self.plan.primary_ip,
            self.plan.name,
            NodeCalls.node_powercycle,
            hypervisor,
            config.cluster.hvparams.get(hypervisor, {}),
        )
        self.ctx.log(f"Node {self.plan.name}: {answer}")
        return answer

"""Restart a node at once."""

from __future__ import annotations

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.node import OpNodePowercycle
from ganeti.ops.operation import Needs, Operation
from ganeti.rpc.calls import NodeCalls


class NodePowercycle(Operation[OpNodePowercycle, str]):
    """Returns the answer of the node. Takes no lock: it is for nodes on which everything hangs."""

    node: Node

    def locks(self) -> Needs:
        self.node = self.ctx.config.node(self.op.node_uuid or self.op.node_name)
        yield Need(LockLevel.NODE, (), shared=True)

    def check(self) -> None:
        if self.node.uuid == self.ctx.config.cluster.master_node and not self.op.force:
            raise errors.invalid(
                f"{self.node.name} is the master node: all jobs end with it (--force restarts it"
                " all the same)"
            )

    def run(self) -> str:
        config = self.ctx.config
        hypervisor = config.cluster.enabled_hypervisors[0]
        # By its address: a node that is marked offline can be restarted too.
        answer = self.ctx.rpc.at(
            self.node.primary_ip,
            self.node.name,
            NodeCalls.node_powercycle,
            hypervisor,
            config.cluster.hvparams.get(hypervisor, {}),
        )
        self.ctx.log(f"Node {self.node.name}: {answer}")
        return answer

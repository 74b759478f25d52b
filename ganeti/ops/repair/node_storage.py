"""Make a volume group usable again that lost a disk."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.enums import LocalDisk
from ganeti.model.instance import Instance
from ganeti.model.node import Node
from ganeti.opcodes.enums import StorageType
from ganeti.opcodes.node_storage import OpRepairNodeStorage
from ganeti.ops import annotate
from ganeti.ops.planning import node_storage
from ganeti.ops.targets.node import NodeOperation
from ganeti.rpc.calls import NodeCalls

#: The node's own name for the operation.
_FIX = "fix-consistency"


class RepairNodeStorage(NodeOperation[OpRepairNodeStorage, None]):
    """Refused while a mirrored disk is faulty on its other node: the last good copy would go."""

    def check(self) -> None:
        op = self.op
        node_storage.check_online(self.node)
        if op.storage_type is not StorageType.LVM_VG:
            raise errors.make_invalid_error(
                f"storage of type {op.storage_type} cannot be repaired; lvm-vg can"
            )
        if not op.name:
            raise errors.make_invalid_error("no volume group was named")
        for problem in self._faulty_elsewhere():
            if not op.ignore_consistency:
                raise errors.make_state_error(
                    f"{problem}; repairing node {self.node.name} could destroy its last copy"
                    " (--ignore-consistency does it anyway)"
                )
            self.ctx.warn(problem)

    def _faulty_elsewhere(self) -> list[str]:
        """Active disks with a part on this node whose other part is not fine."""
        config = self.ctx.config
        here = [*config.primaries[self.node.uuid], *config.secondaries[self.node.uuid]]
        problems: list[str] = []
        for instance in here:
            if not instance.disks_active:
                continue
            for uuid in config.instance_nodes(instance):
                other = config.nodes[uuid]
                if other.uuid != self.node.uuid and not other.offline:
                    problems += self._faulty(instance, other)
        return problems

    def _faulty(self, instance: Instance, node: Node) -> list[str]:
        ctx = self.ctx
        disks = [
            annotate.disk(ctx.config, disk, node.group)
            for disk in ctx.config.disks_of(instance)
            if node.uuid in disk.nodes
        ]
        where = f"of instance {instance.name} on node {node.name}"
        try:
            states = ctx.rpc.call_one(node, NodeCalls.blockdev_getmirrorstatus_multi, disks)
        except errors.GanetiError as err:
            return [f"disks {where} cannot be asked: {errors.text(err)}"]
        return [
            f"{disk.iv_name} {where} is faulty"
            for disk, (done, state) in zip(disks, states)
            if not done or isinstance(state, str) or state.ldisk_status == LocalDisk.FAULTY
        ]

    def run(self) -> None:
        self.ctx.log(f"Repairing volume group '{self.op.name}' on node {self.node.name}")
        self.ctx.rpc.call_one(
            self.node,
            NodeCalls.storage_execute,
            str(self.op.storage_type),
            [],
            str(self.op.name),
            _FIX,
        )

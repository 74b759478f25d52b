"""Change a storage unit of a node."""

from __future__ import annotations

from ganeti import errors
from ganeti.opcodes.enums import StorageType
from ganeti.opcodes.node_storage import OpNodeModifyStorage, StorageChanges
from ganeti.ops.planning import node_storage
from ganeti.ops.targets.node import NodeOperation
from ganeti.rpc.calls import NodeCalls


class NodeModifyStorage(NodeOperation[OpNodeModifyStorage, None]):
    """Only whether new volumes may be put on a physical volume can be changed."""

    def check(self) -> None:
        op = self.op
        node_storage.check_online(self.node)
        if op.storage_type is not StorageType.LVM_PV:
            raise errors.make_invalid_error(
                f"nothing can be changed in storage of type {op.storage_type};"
                " lvm-pv has 'allocatable'"
            )
        node_storage.check_fields(op.changes, StorageChanges.__struct_fields__)
        if not op.changes:
            raise errors.make_invalid_error("nothing to change was given")
        if not op.name:
            raise errors.make_invalid_error("no physical volume was named")

    def run(self) -> None:
        op = self.op
        self.ctx.rpc.call_one(
            self.node,
            NodeCalls.storage_modify,
            str(op.storage_type),
            [],
            str(op.name),
            dict(op.changes),
        )

"""Remove the exports of an instance from all nodes, also when there is no such instance."""

from __future__ import annotations

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.backup import OpBackupRemove
from ganeti.ops.operation import Finding, FindingOperation
from ganeti.ops.steps import exports
from ganeti.rpc.calls import NodeCalls


class BackupRemove(FindingOperation[OpBackupRemove, str, None]):
    """The name is that of the export: an instance may have been renamed or removed since."""

    def find(self) -> Finding[str]:
        """The name of the export."""
        found = self.ctx.config.find_instance(self.op.instance_uuid or self.op.instance_name)
        if found is not None:
            # an export of it that is being made now is waited for
            yield Need(LockLevel.INSTANCE, [found.handle])
        yield Need(LockLevel.NODE, list(self.ctx.config.nodes), shared=True)
        return self.op.instance_name if found is None else found.name

    def run(self) -> None:
        ctx, name = self.ctx, self.found
        online = [node for node in ctx.config.nodes.values() if not node.offline]
        found, silent = exports.find(ctx, online)
        holders = [node for node in online if name in found.get(node.uuid, ())]
        if not holders:
            raise errors.make_unknown_error(
                f"no node that answers has an export '{name}'{exports.hint(name, found)}",
            )
        for node in holders:
            ctx.log(f"* removing the export on node {node.name}")
            ctx.rpc.call_one(node, NodeCalls.export_remove, name)
        self._warn(silent)

    def _warn(self, silent: list[Node]) -> None:
        offline = [node for node in self.ctx.config.nodes.values() if node.offline]
        for node in (*silent, *offline):
            self.ctx.warn(f"node {node.name} was not asked; an export there stays")

"""Run a restricted command on nodes."""

from __future__ import annotations

from ganeti import errors
from ganeti.model.ids import NodeUuid
from ganeti.opcodes.node import OpRestrictedCommand
from ganeti.ops.operation import Finding, FindingOperation
from ganeti.ops.targets.node import lock_several
from ganeti.rpc.calls import NodeCalls


class RestrictedCommand(
    FindingOperation[OpRestrictedCommand, list[NodeUuid], list[tuple[bool, str]]]
):
    """``(true, output)`` or ``(false, why not)`` for each node, in the order that was requested."""

    def find(self) -> Finding[list[NodeUuid]]:
        """The nodes; with ``use_locking`` nothing else works on them meanwhile."""
        op = self.op
        names = op.node_uuids if op.node_uuids is not None else op.nodes
        return (yield from lock_several(self.ctx, names, shared=not op.use_locking))

    def check(self) -> None:
        if not self.found:
            raise errors.make_invalid_error("no nodes were named; say where to run the command")

    def run(self) -> list[tuple[bool, str]]:
        nodes = [self.ctx.config.nodes[uuid] for uuid in self.found]
        answers = self.ctx.rpc.call_many(nodes, NodeCalls.restricted_command, self.op.command)
        return [
            (True, answer.get()) if answer.error is None else (False, errors.text(answer.error))
            for answer in (answers[uuid] for uuid in self.found)
        ]

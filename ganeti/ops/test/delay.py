"""Wait: for tests of the queue, of locks and of nodes."""

from __future__ import annotations

from ganeti import errors
from ganeti.jobs.execution import Need
from ganeti.model.names import LockLevel
from ganeti.model.node import Node
from ganeti.opcodes.test import OpTestDelay
from ganeti.ops.operation import Needs, Operation
from ganeti.rpc.calls import NodeCalls


class TestDelay(Operation[OpTestDelay, None]):
    """Waits on the master, on nodes, or both at once; once, or ``repeat`` times."""

    cancelable = True
    __test__ = False  # not a test case, whatever its name

    def _nodes(self) -> list[Node]:
        return [self.ctx.config.node(name) for name in self.op.on_nodes]

    def locks(self) -> Needs:
        if not self.op.no_locks and self.op.on_nodes:
            yield Need(LockLevel.NODE, [node.uuid for node in self._nodes()])

    def check(self) -> None:
        if self.op.duration < 0:
            raise errors.OpPrereqError(
                f"duration {self.op.duration} is negative", errors.ErrorCode.INVAL
            )
        if self.op.interruptible:
            raise errors.OpPrereqError(
                "an interruptible delay is not offered; cancel the job before it starts instead",
                errors.ErrorCode.INVAL,
            )

    def run(self) -> None:
        for round_number in range(max(1, self.op.repeat)):
            if self.op.repeat:
                self.ctx.log(f"Test delay iteration {round_number}/{self.op.repeat - 1}")
            self._delay()

    def _delay(self) -> None:
        if self.op.on_master and self.ctx.job.cancel_asked.wait(self.op.duration):
            raise errors.JobCanceled("the delay was canceled while it ran")
        nodes = self._nodes()
        if nodes:
            for answer in self.ctx.rpc.many(
                nodes, NodeCalls.test_delay, self.op.duration
            ).values():
                answer.get()

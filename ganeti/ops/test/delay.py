"""Wait: for tests of the queue, of locks and of nodes."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.jobs.execution import Need
from ganeti.locking.levels import LockLevel
from ganeti.model.node import Node
from ganeti.net import unix_socket
from ganeti.opcodes.test import OpTestDelay
from ganeti.ops.operation import Needs, Operation
from ganeti.rpc.calls import NodeCalls

#: Seconds after which a wait that can be interrupted looks whether its job is canceled.
_LOOK = 0.2


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
            raise errors.make_invalid_error(f"duration {self.op.duration} is negative")
        if self.op.interruptible and not self.op.on_master:
            raise errors.make_invalid_error("only the master's own wait is interruptible")

    def run(self) -> None:
        for round_number in range(max(1, self.op.repeat)):
            if self.op.repeat:
                self.ctx.log(f"Test delay iteration {round_number}/{self.op.repeat - 1}")
            self._delay()

    def _delay(self) -> None:
        if self.op.on_master and (
            self._wait_for_interrupt()
            if self.op.interruptible
            else self.ctx.job.cancel_asked.wait(self.op.duration)
        ):
            raise errors.JobCanceled("the delay was canceled while it ran")
        nodes = self._nodes()
        if nodes:
            for answer in self.ctx.rpc.call_many(
                nodes, NodeCalls.test_delay, self.op.duration
            ).values():
                answer.get()

    def _wait_for_interrupt(self) -> bool:
        """Wait until the time is over or somebody connects to a socket; whether it was canceled.

        The log names the socket, in an entry of the kind ``delay-test``.
        """
        job, end = self.ctx.job, Deadline(self.op.duration, self.ctx.clock)
        with tempfile.TemporaryDirectory(prefix="ganeti-delay-") as directory:
            path = Path(directory) / "interrupt"
            with unix_socket.listen(path, 0o600) as listener:
                job.log([str(path)], "delay-test")
                while (left := end.left) > 0 and not job.cancel_asked.is_set():
                    listener.settimeout(min(left, _LOOK))
                    with contextlib.suppress(TimeoutError):
                        listener.accept()[0].close()
                        break
        return job.cancel_asked.is_set()

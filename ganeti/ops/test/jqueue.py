"""Stop at known places, where a client looks at the job: for ``gnt-debug test-jobqueue``.

At each place the log gets an entry of the kind ``jqueue-test``: ``[socket, place, argument]``. The
operation continues when the client has connected to the socket and closed the connection.
"""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

from ganeti import errors
from ganeti.base import patience
from ganeti.net import unix_socket
from ganeti.opcodes.test import OpTestJqueue
from ganeti.ops.operation import Needs, Operation

#: Seconds the client gets to connect, and to close the connection.
CONNECT_TIME = 20.0
CONFIRM_TIME = 60.0
#: The places, and what stands before each message in the log.
BEFORE_LOCKS, RUNNING, BEFORE_MESSAGES, AFTER_MESSAGE = "expandnames", "exec", "startmsg", "logmsg"
MESSAGE = "TESTMSG="


class TestJqueue(Operation[OpTestJqueue, bool]):
    __test__ = False  # not a test case, whatever its name

    def locks(self) -> Needs:
        if self.op.notify_waitlock:
            self._stop_at(BEFORE_LOCKS, None)
        yield from ()

    def run(self) -> bool:
        op = self.op
        if op.notify_exec:
            self._stop_at(RUNNING, None)
        if op.log_messages:
            self._stop_at(BEFORE_MESSAGES, len(op.log_messages))
        for number, message in enumerate(op.log_messages):
            self.ctx.log(f"{MESSAGE}{message}")
            self._stop_at(AFTER_MESSAGE, number)
        if op.fail:
            raise errors.OpExecError("this opcode was asked to fail")
        return True

    def _stop_at(self, place: str, argument: int | None) -> None:
        """Tell the client, and wait for it; OpExecError when it does not come."""
        with tempfile.TemporaryDirectory(prefix="ganeti-jqueue-") as directory:
            path = Path(directory) / "go-on"
            with unix_socket.listen(path, 0o600) as listener:
                self.ctx.job.log([str(path), place, argument], "jqueue-test")
                listener.settimeout(patience.scale(CONNECT_TIME))
                try:
                    connection, _address = listener.accept()
                except TimeoutError:
                    raise errors.OpExecError(
                        f"no client connected within {CONNECT_TIME:g} s at {place}"
                    ) from None
            with connection:
                connection.settimeout(patience.scale(CONFIRM_TIME))
                _wait_for_end(connection, place)


def _wait_for_end(connection: socket.socket, place: str) -> None:
    try:
        while connection.recv(64):
            pass
    except TimeoutError:
        raise errors.OpExecError(
            f"the client did not go on within {CONFIRM_TIME:g} s at {place}"
        ) from None
    except OSError:
        return  # it has gone, which is as good

"""Consoles of the guests of this node, for the master: bytes between its connection and a guest.

One thread carries all of them. What a guest has printed before comes from the log that its
hypervisor writes: nobody keeps anything for a console that nobody looks at.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from ganeti import errors
from ganeti.base import jsonio
from ganeti.hypervisor.interface import ConsoleLine
from ganeti.net import unix_socket
from ganeti.net.http_detached import Detached, Keeper
from ganeti.net.loop import Loop
from ganeti.net.relay import End, Relays, SocketEnd, TerminalEnd

log = logging.getLogger(__name__)

#: Bytes of what a guest has printed that a new viewer gets.
HISTORY = 64 * 1024
#: Consoles of this node that are open at the same time.
MOST = 200
#: Seconds to connect to a guest, and for the caller to say that it is ready.
PATIENCE = 5.0


class Consoles:
    """All open consoles. :meth:`open` is for any thread; the loop begins with the first one."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._open = 0
        self._relays = Relays("consoles")

    def open(
        self, instance: str, line: ConsoleLine, take_over: Callable[[Keeper], None] | None
    ) -> None:
        """Connect to a guest, and take over the connection of the caller.

        Raises:
            HypervisorError: the guest cannot be reached, or too many consoles are open.
        """
        if take_over is None:
            raise errors.HypervisorError("this connection cannot become a console")
        with self._mutex:
            if self._open >= MOST:
                raise errors.HypervisorError(f"{MOST} consoles of this node are open already")
            self._open += 1
        loop = self._relays.use_loop()
        try:
            guest, history = connect(line), read_history(line.log)
        except OSError as err:
            self._count_out()
            raise errors.HypervisorError(
                f"the console of instance {instance} cannot be reached: {err.strerror or err};"
                " a serial console has room for one: somebody may have it open by gnt-instance"
            ) from err
        log.info("console of instance %s opened", instance)
        take_over(lambda caller: loop.call_soon(lambda: self._begin(loop, caller, guest, history)))

    def _begin(self, loop: Loop, caller: Detached, guest: End, history: bytes) -> None:
        def give_up() -> None:
            guest.close()
            self._count_out()

        def begin() -> None:
            self._relays.begin(loop, caller, guest, to_left=history, ended=self._count_out)

        _Opening(loop, caller, begin, give_up)

    def _count_out(self) -> None:
        with self._mutex:
            self._open -= 1

    def stop(self) -> None:
        """End all consoles. Idempotent."""
        self._relays.stop()


class _Opening:
    """Sends the answer of the call, then waits for the byte with which the caller is ready."""

    def __init__(
        self, loop: Loop, caller: Detached, ready: Callable[[], None], give_up: Callable[[], None]
    ) -> None:
        body = jsonio.dumps_bytes([True, None])
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        self._loop, self._caller = loop, caller
        self._ready, self._give_up = ready, give_up
        self._out = bytearray(head.encode() + b"\r\n\r\n" + body)
        self._timer = loop.call_later(PATIENCE, self._fail)
        self._continue()

    def _continue(self) -> None:
        try:
            if self._out:
                del self._out[: self._caller.try_send(self._out)]
            received = None if self._out else self._caller.try_recv(1)
        except OSError:
            self._fail()
            return
        if received is None:
            self._loop.watch(self._caller, self._continue, write=bool(self._out))
        elif received:
            self._timer.cancel()
            self._ready()
        else:
            self._fail()

    def _fail(self) -> None:
        self._timer.cancel()
        self._loop.forget(self._caller)
        self._caller.close()
        self._give_up()


def connect(line: ConsoleLine) -> End:
    """An end at the guest; blocks up to a few seconds. OSError when it cannot be reached."""
    if line.argv:
        return TerminalEnd(list(line.argv))
    if line.tcp is not None:
        return SocketEnd(socket.create_connection(line.tcp, PATIENCE))
    if line.socket is None:
        raise OSError("the hypervisor names neither a socket nor a program")
    return SocketEnd(unix_socket.dial(line.socket, PATIENCE))


def read_history(path: Path | None) -> bytes:
    """The end of what a guest has printed; empty when nothing is kept."""
    if path is None:
        return b""
    with contextlib.suppress(OSError), path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - HISTORY))
        return file.read(HISTORY)
    return b""

"""Copying bytes both ways between two ends, as fast as the slower one takes them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from typing import Protocol

from ganeti.net.loop import Loop

#: Bytes that are kept for an end that does not take them; then the other one is not read.
ROOM = 64 * 1024
_PIECE = 16 * 1024
#: Pieces that are copied at once before others have their turn.
_ROUNDS = 16
#: Seconds in which an end must take what the other one said last.
_FAREWELL = 5.0


class End(Protocol):
    """One end; never waits. TLS sockets are ends."""

    def fileno(self) -> int: ...

    def try_recv(self, size: int) -> bytes | None:
        """Receive without waiting: bytes, ``b""`` at the end, None for nothing yet; OSError."""

    def try_send(self, data: bytes | bytearray) -> int:
        """How many bytes were taken; OSError when nobody takes any more."""

    def close(self) -> None: ...


class SocketEnd:
    """A connected socket as an end."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    def fileno(self) -> int:
        return self._sock.fileno()

    def try_recv(self, size: int) -> bytes | None:
        try:
            return self._sock.recv(size)
        except BlockingIOError:
            return None

    def try_send(self, data: bytes | bytearray) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        self._sock.close()


class TerminalEnd:
    """A program on a terminal of its own as an end; it is ended with the end."""

    def __init__(self, argv: list[str]) -> None:
        """Start the program; OSError when that fails."""
        self._master, slave = os.openpty()
        try:
            self._process = subprocess.Popen(
                argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
            )
        except BaseException:  # an interrupt too: close the terminal and raise it
            os.close(self._master)
            raise
        finally:
            os.close(slave)
        os.set_blocking(self._master, False)

    def fileno(self) -> int:
        return self._master

    def try_recv(self, size: int) -> bytes | None:
        try:
            return os.read(self._master, size)
        except BlockingIOError:
            return None
        except OSError:  # EIO: nobody has the other side of the terminal open
            return b""

    def try_send(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._master, data)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        if self._master == -1:
            return
        os.close(self._master)
        self._master = -1
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Relay:
    """Two ends of which each gets what the other one says; lives in the thread of a loop."""

    def __init__(
        self,
        loop: Loop,
        left: End,
        right: End,
        ended: Callable[[], None],
        *,
        to_left: bytes = b"",
        to_right: bytes = b"",
    ) -> None:
        """``to_left`` and ``to_right`` come first; ``ended`` is called once, after both closed."""
        self._loop = loop
        self._ends = (left, right)
        #: what is to be sent to the left and to the right
        self._out = (bytearray(to_left), bytearray(to_right))
        self._ended = ended
        self._closed = False
        self._closing = False

    def start(self) -> None:
        self._pump()

    def close(self) -> None:
        """End both. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for end in self._ends:
            self._loop.forget(end)
            with contextlib.suppress(OSError):
                end.close()
        self._ended()

    def _pump(self) -> None:
        if self._closed:
            return
        try:
            more = self._copy(0)
            more = self._copy(1) or more
        except OSError:
            self.close()
            return
        if self._closing and not any(self._out):
            self.close()
            return
        self._watch()
        if more:
            # TLS may have read what no event will tell of.
            self._loop.call_soon(self._pump)

    def _copy(self, source: int) -> bool:
        """Copy from one end to the other; whether there may be more."""
        out, target = self._out[1 - source], self._ends[1 - source]
        for _ in range(_ROUNDS):
            data = None
            if len(out) < ROOM and not self._closing:
                data = self._ends[source].try_recv(_PIECE)
                if data == b"":
                    self._closing = True
                    self._loop.call_later(_FAREWELL, self.close)
                out += data or b""
            sent = target.try_send(out) if out else 0
            del out[:sent]
            if not data and not sent:
                return False
        return True

    def _watch(self) -> None:
        for index, end in enumerate(self._ends):
            self._loop.watch(
                end,
                self._pump,
                read=len(self._out[1 - index]) < ROOM and not self._closing,
                write=bool(self._out[index]),
            )


class Relays:
    """Relays that share a thread, which begins with the first one."""

    def __init__(self, name: str) -> None:
        """``name`` is that of the thread."""
        self._name = name
        self._mutex = threading.Lock()
        self._loop: Loop | None = None
        self._open: set[Relay] = set()

    def use_loop(self) -> Loop:
        """The loop of the thread, which is started if need be. Thread-safe."""
        with self._mutex:
            if self._loop is None:
                self._loop = Loop(self._name)
                self._loop.start()
            return self._loop

    def begin(
        self, loop: Loop, left: End, right: End, *, to_left: bytes, ended: Callable[[], None]
    ) -> None:
        """Relay between two ends, as :class:`Relay` does; in the thread of the loop."""

        def end() -> None:
            self._open.discard(made)
            ended()

        made = Relay(loop, left, right, end, to_left=to_left)
        self._open.add(made)
        made.start()

    def stop(self) -> None:
        """End all relays and the thread. Idempotent."""
        with self._mutex:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon(self._close)
            loop.stop()

    def _close(self) -> None:
        for relay in [*self._open]:
            relay.close()

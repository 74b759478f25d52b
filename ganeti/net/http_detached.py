"""A connection of the HTTP server that an application answers later, from a thread of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ganeti.net.tls.stream import TLSSocket

_CHUNK = 64 * 1024


class Detached:
    """A connection that an application took over; used by one thread at a time.

    Its owner sends a whole HTTP answer by itself, never waiting, and must end with :meth:`close`
    or :meth:`give_back`.
    """

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self._sock = conn.socket
        if not isinstance(self._sock, TLSSocket):
            self._sock.setblocking(False)

    def fileno(self) -> int:
        return int(self._sock.fileno())

    def send(self, data: bytes | bytearray) -> int:
        """Send what goes without waiting; how many bytes. OSError when the client is gone."""
        try:
            if isinstance(self._sock, TLSSocket):
                return self._sock.try_send(data)
            return int(self._sock.send(data))
        except BlockingIOError:
            return 0

    def try_send(self, data: bytes | bytearray) -> int:
        """As :meth:`send`; with :meth:`try_recv` this is an end of a relay."""
        return self.send(data)

    def try_recv(self, size: int) -> bytes | None:
        """Receive without waiting: bytes, ``b""`` at the end, None for nothing yet; OSError."""
        if isinstance(self._sock, TLSSocket):
            return self._sock.try_recv(size)
        try:
            return bytes(self._sock.recv(size))
        except BlockingIOError:
            return None

    def is_alive(self) -> bool:
        """False once the client has hung up; what it sends meanwhile is thrown away."""
        try:
            if isinstance(self._sock, TLSSocket):
                while (data := self._sock.try_recv(_CHUNK)) is not None:
                    if not data:
                        return False
                return True
            return bool(self._sock.recv(_CHUNK))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Close the connection; idempotent."""
        with contextlib.suppress(OSError):
            self._conn.close()

    def give_back(self) -> None:
        """Let the server read the next request, after a complete answer.

        Closes the connection when the client wanted that.
        """
        if self._conn.last_request:
            self.close()
            return
        if not isinstance(self._sock, TLSSocket):
            self._sock.settimeout(self._conn.server.request_timeout)
        self._conn.server.put_conn(self._conn)


#: Takes a connection over; called once, by the worker thread.
Keeper = Callable[[Detached], None]

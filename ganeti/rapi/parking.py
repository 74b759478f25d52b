"""One thread for all requests that wait: for a job, or for events.

A worker hands its connection over and is free. Here waits are entries in a selector, a LUXI
connection each (the master parks them, too); nobody polls and no thread is held.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from ganeti import constants, errors
from ganeti.base.clock import SYSTEM
from ganeti.luxi import calls
from ganeti.net import unix_socket
from ganeti.net.http_detached import Detached
from ganeti.net.loop import Action, Loop

log = logging.getLogger(__name__)

#: Seconds to wait for a place in the line of the master's socket.
_CONNECT = 1.0


class LuxiCall:
    """One LUXI request whose answer comes when it comes."""

    def __init__(self, loop: Loop, path: Path) -> None:
        self._loop = loop
        self._path = path
        self._link: unix_socket.FramedClient | None = None
        self._descriptor = -1

    def ask(
        self,
        name: str,
        args: Sequence[object],
        done: Callable[[Any], None],
        failed: Callable[[errors.GanetiError], None],
    ) -> None:
        """Send a request; one of the functions is called, once, unless it is closed before."""
        try:
            if self._link is None:
                self._link = unix_socket.FramedClient(self._path, connect_timeout=_CONNECT)
            self._descriptor = self._link.fileno()
            self._link.send(calls.encode_request(name, args))
        except errors.GanetiError as err:
            self.close()
            failed(err)
            return
        self._loop.watch(self._descriptor, lambda: self._read(done, failed))

    def _read(
        self, done: Callable[[object], None], failed: Callable[[errors.GanetiError], None]
    ) -> None:
        link = self._link
        if link is None:
            return
        try:
            data = link.try_recv()
            if data is None:
                return
            self._loop.forget(self._descriptor)
            value = calls.decode_response(data)
        except errors.GanetiError as err:
            self.close()
            failed(err)
            return
        done(value)

    def detach(self) -> socket.socket:
        """The connection, after an answer that lets it carry other bytes."""
        link, self._link = self._link, None
        if link is None:
            raise errors.ConnectionClosedError("The connection to the master daemon is closed")
        return link.detach()

    def close(self) -> None:
        """Give up; the master notices and forgets the wait. Idempotent."""
        link, self._link = self._link, None
        if link is not None:
            self._loop.forget(self._descriptor)
            link.close()


class WaitingClient:
    """A client's connection while it waits; watches whether the client is still there."""

    def __init__(self, loop: Loop, connection: Detached, gone: Action) -> None:
        """``gone`` is called once when the client has hung up, or has got its last answer."""
        self._loop = loop
        self._connection = connection
        self._gone = gone
        self._out = bytearray()
        self._last = False
        #: bytes that the client has taken
        self.sent = 0
        self.since = SYSTEM.monotonic()
        self.closed = False
        loop.watch(connection, self._continue)

    @property
    def waiting(self) -> int:
        """Bytes that the client has not taken yet."""
        return len(self._out)

    def send(self, data: bytes, *, last: bool = False) -> None:
        """Send in the background; with ``last`` the connection goes back to the server after it."""
        if self.closed:
            return
        self._out += data
        self._last = last
        self._flush()

    def _continue(self) -> None:
        if not self._connection.is_alive():
            self._leave()
        elif self._out:
            self._flush()

    def _flush(self) -> None:
        full = False
        try:
            while self._out and not full:
                sent = self._connection.send(self._out)
                del self._out[:sent]
                self.sent += sent
                full = not sent
        except OSError:
            self._leave()
            return
        if self._last and not self._out:
            self.closed = True
            self._loop.forget(self._connection)
            self._connection.give_back()
            self._gone()
            return
        self._loop.watch(self._connection, self._continue, write=bool(self._out))

    def _leave(self) -> None:
        if not self.closed:
            self.close()
            self._gone()

    def close(self) -> None:
        """Hang up. Idempotent."""
        if not self.closed:
            self.closed = True
            self._loop.forget(self._connection)
            self._connection.close()


def head(status: int, headers: dict[str, str]) -> bytes:
    """Head of an HTTP answer, with the empty line that ends it."""
    phrase = HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status} {phrase}", f"Server: Ganeti {constants.RELEASE_VERSION}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def answer(status: int, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    """A whole HTTP answer with a JSON body."""
    more = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    return head(status, {**more, **(headers or {})}) + body

"""One connection: its handshake and request head, collected without waiting for the client."""

from __future__ import annotations

import contextlib
import logging
from enum import Enum, auto
from typing import Any

from cheroot.makefile import MakeFile
from cheroot.server import HTTPConnection

from ganeti.base.clock import SYSTEM, Deadline
from ganeti.net.http_detached import Keeper
from ganeti.net.http_head import MAX_HEAD, RequestHead
from ganeti.net.http_server.request import Request
from ganeti.net.tls.certificate import Peer
from ganeti.net.tls.stream import HandshakeCut, TLSError, TLSSocket

log = logging.getLogger(__name__)

#: Bytes of unfinished bodies of all clients together. A client with ``LITTLE`` of them is always
#: served.
MAX_COLLECTED = 64 * 1024 * 1024
LITTLE = 256 * 1024
#: Seconds in which a client that is refused while it sends may still finish.
LINGER = 2.0


class Step(Enum):
    """Next step of the front with a connection."""

    WAIT = auto()
    WORK = auto()
    CLOSE = auto()


class Connection(HTTPConnection):
    """One client; the front moves it on with :meth:`advance` until a worker can serve it."""

    RequestHandlerClass = Request

    def __init__(self, server: Any, sock: Any, makefile: object = MakeFile) -> None:
        super().__init__(server, sock, makefile)
        sock.settimeout(server.request_timeout)
        self.peer: Peer | None = None
        self.parked = False
        self.served = False
        self.lingering = False
        self.dropped = False
        self._refused_at = 0.0
        self.keeper: Keeper | None = None
        self.last_request = False
        self._shaken = not isinstance(sock, TLSSocket)
        self._accepted = SYSTEM.now()
        self._last_used = self._accepted
        self._head = RequestHead(server.collect_body)
        self._head_began = 0.0
        server.count_in(self)

    @property
    def last_used(self) -> float:
        """The moment from which cheroot counts the idle time-out of a waiting connection.

        It is moved so that a silent newcomer, an unfinished head and a refused client have
        shorter time-outs.
        """
        idle: float = self.server.timeout
        if self._refused_at:
            return self._refused_at + LINGER - idle
        if not self.served:
            return self._accepted + float(self.server.handshake_timeout) - idle
        if self._head:
            return self._head_began + float(self.server.request_timeout) - idle
        return self._last_used

    @last_used.setter
    def last_used(self, moment: float) -> None:
        self._last_used = moment

    def advance(self) -> Step:
        """Shake hands and collect a request head as far as possible without waiting."""
        if not isinstance(self.socket, TLSSocket):
            return Step.WORK
        if self._refused_at:
            return Step.WAIT if self.socket.discard_input() else Step.CLOSE
        try:
            if not self._shaken:
                if not self.socket.try_handshake():
                    return Step.WAIT
                self._shaken = True
                self.peer = self.socket.peer()
                self.server.handshakes += 1
            return self._collect(self.socket)
        except OSError as err:
            refused = isinstance(err, TLSError) and not isinstance(err, HandshakeCut)
            level = logging.INFO if refused else logging.DEBUG
            log.log(level, "Connection from %s dropped: %s", self.remote_addr, err)
            return self._see_off(self.socket) if isinstance(err, TLSError) else Step.CLOSE

    def _see_off(self, sock: TLSSocket) -> Step:
        """Let a client that was refused read the alert: its input is dropped until it ends."""
        try:
            sock.sock_shutdown()
        except OSError:
            return Step.CLOSE
        self._refused_at = SYSTEM.now()
        return Step.WAIT

    def _collect(self, sock: TLSSocket) -> Step:
        while (data := sock.try_recv(MAX_HEAD)) is not None:
            if not data:
                return Step.CLOSE
            if not self._head:
                self._head_began = SYSTEM.now()
            before = len(self._head)
            complete = self._head.feed(data)
            self.server.collected += len(self._head) - before
            if self._head.wants_continue:
                self._head.wants_continue = False
                sock.try_send(b"HTTP/1.1 100 Continue\r\n\r\n")
            if complete and self._head.is_malformed:
                # The end of the body is not known, so no further request can be read.
                self._refuse("400 Bad Request")
                return Step.CLOSE
            if complete:
                sock.push_back(self._head.content())
                self._forget_head()
                return Step.WORK
            if self.server.collected > MAX_COLLECTED and len(self._head) > LITTLE:
                self._refuse("503 Service Unavailable")
                return Step.CLOSE
        return Step.WAIT

    def _forget_head(self) -> None:
        self.server.collected -= len(self._head)
        self._head.clear()

    def _refuse(self, status: str) -> None:
        """Tell the client before its connection is dropped, if that goes without waiting."""
        answer = f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        with contextlib.suppress(OSError):
            self.socket.try_send(answer.encode("ascii"))
        self._forget_head()

    def communicate(self) -> bool:
        """Serve one request, in no more than the time for a whole one."""
        limited = isinstance(self.socket, TLSSocket) and self.server.request_limit is not None
        if limited:
            self.socket.deadline = SYSTEM.monotonic() + self.server.request_limit
        try:
            return bool(super().communicate())  # type: ignore[no-untyped-call]
        finally:
            if limited:
                self.socket.deadline = None

    def has_input(self) -> bool:
        """Whether a next request has (partly) been read already, so that no event will come."""
        sock = self.socket
        return bool(self.rfile.has_data() or (isinstance(sock, TLSSocket) and sock.pending()))

    def close(self) -> None:
        """Close; a client that was refused while sending gets a moment to read the reason."""
        if self.lingering:
            with contextlib.suppress(OSError):
                self._swallow_rest()
        if self._head:
            self._refuse("408 Request Timeout")
        self.server.count_out(self)
        super().close()
        # cheroot leaves this to the finalizer. That one would send what a broken connection did
        # not take once more, and Python 3.13 reports the failure; this drops it.
        self.wfile.raw.close()

    def _swallow_rest(self) -> None:
        # Closing with unread input would reset the connection and might destroy the answer.
        end = Deadline(LINGER)
        self.socket.settimeout(LINGER)
        while not end.has_passed and self.socket.recv(MAX_HEAD):
            pass

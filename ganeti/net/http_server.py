"""An HTTP(S) server for WSGI applications; the only module that imports cheroot.

One thread (the front) accepts connections, shakes hands and collects request heads, all without
ever waiting for a single client; only a complete request head goes to a worker thread. So clients
that say nothing, or stop in the middle of a handshake or a head, hold no worker, and a handshake
succeeds although all workers are busy.

What cheroot does otherwise by itself, and why it is changed here:

* its pyOpenSSL adapter fails on request bodies: ours uses :class:`TLSSocket`;
* it hands a new connection to a worker before a byte arrived: ours waits in its selector;
* it keeps ten idle connections at most: ours keeps as many as there may be connections;
* it takes the end of a connection for the end of a body: here that is an error, so a request
  that arrived in part is never executed;
* its workers keep a process alive and are waited for without limit: both are bounded here.

An application may take a connection over (``ganeti.take_over``): its worker is free at once, and
the answer comes later, from another thread (see :class:`Detached`).
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
from collections.abc import Callable, Iterable
from enum import Enum, auto
from types import TracebackType
from typing import Any

from cheroot import wsgi
from cheroot.errors import MaxSizeExceeded
from cheroot.makefile import MakeFile
from cheroot.server import HTTPConnection, HTTPRequest, KnownLengthRFile
from cheroot.ssl import Adapter
from cheroot.workers import threadpool

from ganeti import errors
from ganeti.base.clock import SYSTEM, Deadline
from ganeti.net.http_body import Body
from ganeti.net.http_detached import Detached, Keeper
from ganeti.net.http_head import MAX_HEAD, RequestHead
from ganeti.net.tls.contexts import ReloadableContext
from ganeti.net.tls.stream import HandshakeCut, Peer, TLSError, TLSSocket

log = logging.getLogger(__name__)

#: JSON text for a status and a sentence, when the server itself refuses a request.
RefusalBody = Callable[[int, str], bytes]
#: A WSGI application (PEP 3333).
App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

#: Lines of a request head.
MAX_HEAD_LINES = 200
#: Bytes of unfinished bodies of all clients together; who has little of them is always served.
MAX_COLLECTED = 64 * 1024 * 1024
LITTLE = 256 * 1024
#: Seconds in which a client that is refused while it sends may still finish.
LINGER = 2.0
#: Seconds a worker gets to notice that its connection was cut by ``stop``.
CUT_GRACE = 1.0


class _Step(Enum):
    """What the front does with a connection next."""

    WAIT = auto()
    WORK = auto()
    CLOSE = auto()


class _Adapter(Adapter):
    """Puts TLS on new connections; nothing is read or sent yet."""

    def __init__(self, contexts: ReloadableContext) -> None:
        self._contexts = contexts

    def bind(self, sock: socket.socket) -> socket.socket:
        return sock

    def wrap(self, sock: socket.socket) -> tuple[TLSSocket, dict[str, str]]:
        return TLSSocket(sock, self._contexts, server_side=True), self.get_environ()

    def get_environ(self) -> dict[str, str]:
        return {"HTTPS": "on"}

    def makefile(self, sock: TLSSocket, mode: str = "r", bufsize: int = -1) -> Any:
        return MakeFile(sock, mode, bufsize)


class _Request(HTTPRequest):
    """Refuses lengths that are not plain numbers (cheroot would read a body without limit)."""

    def read_request_headers(self) -> bool:
        if not super().read_request_headers():  # type: ignore[no-untyped-call]
            return False
        if len(self.inheaders) > MAX_HEAD_LINES:
            self.simple_response("431 Request Header Fields Too Large")
            return False
        length = self.inheaders.get(b"Content-Length", b"0")
        if not length.isdigit() or (self.chunked_read and b"Content-Length" in self.inheaders):
            self.simple_response("400 Bad Request", "Malformed Content-Length Header.")
            return False
        return True

    def simple_response(self, status: str, msg: str = "") -> None:
        if str(status).startswith(("413", "431")):
            self.conn.lingering = True
            if msg.startswith("The headers"):
                status, msg = "431 Request Header Fields Too Large", ""
                self.close_connection = True
        write: RefusalBody | None = self.server.refusal_body
        if write is None or int(status[:3]) < 400:
            super().simple_response(status, msg)
            return
        self.close_connection = True
        body = write(int(status[:3]), msg or status[4:])
        head = (
            f"{self.server.protocol} {status}\r\nContent-Length: {len(body)}\r\n"
            "Content-Type: application/json\r\nConnection: close\r\n\r\n"
        )
        with contextlib.suppress(OSError):  # the client may have gone
            self.conn.wfile.write(head.encode("ascii") + body)

    def ensure_headers_sent(self) -> None:
        """Nothing is sent for a connection that was taken over."""
        if self.conn.keeper is None:
            super().ensure_headers_sent()


class _Gateway(wsgi.Gateway_10):
    """Tells the application who is calling: ``ganeti.peer_digest`` and ``ganeti.peer_cn``."""

    def get_environ(self) -> dict[str, Any]:  # type: ignore[override]
        environ: dict[str, Any] = super().get_environ()  # type: ignore[no-untyped-call]
        peer: Peer | None = self.req.conn.peer
        environ["ganeti.peer_digest"] = peer.digest if peer else None
        environ["ganeti.peer_cn"] = peer.common_name if peer else None
        if isinstance(self.req.rfile, KnownLengthRFile):
            environ["wsgi.input"] = Body(self.req.rfile)
        environ["ganeti.take_over"] = self._take_over
        return environ

    def _take_over(self, keeper: Keeper) -> None:
        """Hand the connection to ``keeper`` when the application returns; its answer is dropped."""
        self.req.conn.last_request = self.req.close_connection
        self.req.close_connection = False
        self.req.conn.keeper = keeper

    def write(self, chunk: bytes) -> None:
        if self.req.conn.keeper is None:
            super().write(chunk)

    def respond(self) -> None:
        try:
            super().respond()
        except (MaxSizeExceeded, OSError) as err:
            # A chunked body turned out to be too large; cheroot has two errors for it.
            too_large = isinstance(err, MaxSizeExceeded) or "Too Large" in str(err)
            if not too_large or self.req.sent_headers:
                raise
            self.req.simple_response("413 Request Entity Too Large")
            self.req.sent_headers = True


class _Connection(HTTPConnection):
    """One client; the front moves it on with :meth:`advance` until a worker can serve it."""

    RequestHandlerClass = _Request

    def __init__(self, server: _Server, sock: Any, makefile: Any = MakeFile) -> None:
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
        server.opened(self)

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

    def advance(self) -> _Step:
        """Shake hands and collect a request head as far as possible without waiting."""
        if not isinstance(self.socket, TLSSocket):
            return _Step.WORK
        if self._refused_at:
            return _Step.WAIT if self.socket.discard_input() else _Step.CLOSE
        try:
            if not self._shaken:
                if not self.socket.try_handshake():
                    return _Step.WAIT
                self._shaken = True
                self.peer = self.socket.peer()
                self.server.handshakes += 1
            return self._collect(self.socket)
        except OSError as err:
            refused = isinstance(err, TLSError) and not isinstance(err, HandshakeCut)
            level = logging.INFO if refused else logging.DEBUG
            log.log(level, "Connection from %s dropped: %s", self.remote_addr, err)
            return self._see_off(self.socket) if isinstance(err, TLSError) else _Step.CLOSE

    def _see_off(self, sock: TLSSocket) -> _Step:
        """Let a client that was refused read the alert: its input is dropped until it ends."""
        try:
            sock.sock_shutdown()
        except OSError:
            return _Step.CLOSE
        self._refused_at = SYSTEM.now()
        return _Step.WAIT

    def _collect(self, sock: TLSSocket) -> _Step:
        while (data := sock.try_recv(MAX_HEAD)) is not None:
            if not data:
                return _Step.CLOSE
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
                return _Step.CLOSE
            if complete:
                sock.unread(self._head.content())
                self._forget_head()
                return _Step.WORK
            if self.server.collected > MAX_COLLECTED and len(self._head) > LITTLE:
                self._refuse("503 Service Unavailable")
                return _Step.CLOSE
        return _Step.WAIT

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
        self.server.closed(self)
        super().close()

    def _swallow_rest(self) -> None:
        # Closing with unread input would reset the connection and might destroy the answer.
        end = Deadline(LINGER)
        self.socket.settimeout(LINGER)
        while not end.has_passed and self.socket.recv(MAX_HEAD):
            pass


class _Pool(threadpool.ThreadPool):
    """Worker threads that cannot keep the process alive and are waited for in bounded time."""

    _threads: list[Any]

    def _spawn_worker(self) -> threadpool.WorkerThread:
        worker = threadpool.WorkerThread(self.server)  # type: ignore[no-untyped-call]
        worker.daemon = True
        worker.name = f"{self.server.thread_name}-{worker.name}"
        worker.start()
        return worker

    def stop(self, timeout: float = 5) -> None:
        """Let workers finish; cut the connections of those that do not in time."""
        for _worker in self._threads:
            self._queue.put(threadpool._SHUTDOWNREQUEST)  # type: ignore[attr-defined]
        workers, self._threads[:] = self._threads[:], []
        if slow := _join(workers, timeout):
            for worker in slow:
                _cut(worker)
            for worker in _join(slow, CUT_GRACE):
                log.error("Worker %s does not end; it is left behind", worker.name)
                self.server.left_behind.append(worker)


def _join(workers: list[threading.Thread], timeout: float) -> list[threading.Thread]:
    """Wait for threads, ``timeout`` seconds in all; those that still run."""
    end = Deadline(timeout)
    for worker in workers:
        if worker is not threading.current_thread():
            worker.join(end.left)
    return [worker for worker in workers if worker.is_alive()]


def _cut(worker: Any) -> None:
    conn = worker.conn
    if conn is not None:
        with contextlib.suppress(OSError):
            conn.socket.shutdown(socket.SHUT_RDWR)


class _Server(wsgi.Server):
    """cheroot with the changes that the module documentation lists."""

    ConnectionClass = _Connection
    _connections: Any

    def __init__(self, address: tuple[str, int], app: App, *, threads: int, name: str) -> None:
        self.thread_name = name
        super().__init__(address, app, server_name="ganeti", request_queue_size=256)
        self.collect_body = 0
        self.collected = 0
        self.request_limit: float | None = None
        self.gateway = _Gateway
        self.requests = _Pool(self, min=threads, max=threads)
        self.request_timeout = 60.0
        self.handshake_timeout = 10.0
        self.max_connections = 512
        self.handshakes = 0
        self.refusal_body: RefusalBody | None = None
        self.left_behind: list[threading.Thread] = []
        self._conns: set[_Connection] = set()
        self._gate = threading.RLock()
        self._open = True

    @staticmethod
    def bind_socket(socket_: socket.socket, bind_addr: Any) -> socket.socket:
        try:
            # A restarted daemon gets its port back although old connections are still ending.
            socket_.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            socket_.bind(bind_addr)
        except OSError:
            socket_.close()
            raise
        return socket_

    def process_conn(self, conn: _Connection) -> None:
        """Move on a connection that is new or has input (front thread), or is pipelining."""
        if conn.dropped:
            conn.close()
            return
        if not conn.parked:
            conn.parked = True
            self._connections.put(conn)
            self._make_room()
            return
        step = _Step.WORK if conn.rfile.has_data() else conn.advance()
        if step is _Step.WORK:
            self.requests.put(conn)
        elif step is _Step.WAIT:
            self._connections.put(conn)
        else:
            conn.close()

    def opened(self, conn: _Connection) -> None:
        """Count a connection in (front thread)."""
        with self._gate:
            self._conns.add(conn)

    def closed(self, conn: _Connection) -> None:
        """Count a connection out; it may be closed more than once."""
        with self._gate:
            self._conns.discard(conn)

    def _make_room(self) -> None:
        """With too many connections, drop the oldest waiting one, best without any request.

        It may be in the batch of events that the front works on: it is only marked, and made to
        have an event (a socket can nearly always be written to) by which the front closes it.
        """
        if len(self._conns) <= self.max_connections:
            return
        selector = self._connections._selector
        waiting = [
            (fd, conn) for fd, conn in selector.connections if conn is not self and not conn.dropped
        ]
        if not waiting:
            return
        fd, victim = min(waiting, key=lambda item: (item[1].served, item[1].last_used))
        log.warning("Too many connections: the one from %s is dropped", victim.remote_addr)
        victim.dropped = True
        self.closed(victim)
        selector.unregister(fd)
        selector.register(fd, selectors.EVENT_WRITE, data=victim)

    def put_conn(self, conn: _Connection) -> None:
        """Take back a connection from a worker after a request."""
        conn.served = True
        keeper, conn.keeper = conn.keeper, None
        if keeper is not None:
            keeper(Detached(conn))
            return
        with self._gate:
            if not (self._open and self.ready):
                conn.close()
            elif conn.has_input():
                self.requests.put(conn)
            else:
                super().put_conn(conn)

    def _serve_unservicable(self) -> None:
        """Nothing to do: the queue of requests has no limit, so none is turned away."""

    def error_log(self, msg: str = "", level: int = 20, traceback: bool = False) -> None:
        log.log(level, "%s", msg, exc_info=traceback)

    def stop(self) -> None:
        with self._gate:
            self._open = False
        if self.ready:
            self._wake_front()
        super().stop()

    def _wake_front(self) -> None:
        # cheroot waits until the selector returns by itself; a connection makes it return now.
        self._connections._stop_requested = True
        with contextlib.suppress(OSError):
            socket.create_connection(self.bind_addr, 1.0).close()


class HttpServer:
    """Serves a WSGI application on one address, with or without TLS.

    The application finds the caller's certificate in ``ganeti.peer_digest`` (``AB:CD:..``) and
    ``ganeti.peer_cn``, both None without one. Bodies larger than ``max_body`` bytes get 413.
    """

    def __init__(
        self,
        address: tuple[str, int],
        app: App,
        tls: ReloadableContext | None = None,
        *,
        threads: int = 16,
        max_body: int = 256 * 1024 * 1024,
        request_timeout: float = 60.0,
        handshake_timeout: float = 10.0,
        idle_timeout: float = 300.0,
        request_limit: float | None = None,
        max_connections: int = 512,
        collect_body: int = 0,
        name: str = "http",
        server_header: str = "ganeti",
        refusal_body: RefusalBody | None = None,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            address: host and port, port 0 for a free one; ``0.0.0.0`` or ``::`` for all.
            threads: requests that run at the same time; more wait in a queue.
            request_timeout: seconds without progress while a request is read or answered.
            handshake_timeout: seconds from accepting to the end of the first request head.
            idle_timeout: seconds a connection is kept between requests.
            request_limit: seconds a worker serves one request, the client's reading included;
                None for any time. Only with TLS.
            max_connections: beyond it the oldest connection without a request is dropped.
            collect_body: largest body in bytes that is read completely before a worker begins,
                so that slow senders hold none. Only with TLS.
            name: beginning of the names of the threads.
            server_header: what the header ``Server`` of answers says.
            refusal_body: writes the body when the request is refused here; plain text without.
        """
        self._address = address
        self._name = name
        self._front: threading.Thread | None = None
        self._server = _Server(address, app, threads=threads, name=name)
        server = self._server
        server.ssl_adapter = None if tls is None else _Adapter(tls)
        server.max_request_body_size = max_body
        server.max_request_header_size = MAX_HEAD
        server.request_timeout = request_timeout
        server.handshake_timeout = handshake_timeout
        server.timeout = idle_timeout
        server.max_connections = max_connections
        server.server_name = server_header
        server.refusal_body = refusal_body
        server.request_limit = request_limit
        server.collect_body = collect_body
        server.keep_alive_conn_limit = max_connections + threads + 1

    def start(self) -> int:
        """Listen and serve in threads of its own; returns the port at once.

        Raises:
            GenericError: the address cannot be used.
        """
        host, port = self._address
        try:
            self._server.prepare()
        except OSError as err:
            raise errors.GenericError(f"Cannot listen on {host}:{port}: {err}") from err
        self._front = threading.Thread(
            target=self._server.serve, name=f"{self._name}-front", daemon=True
        )
        self._front.start()
        return self.port

    def stop(self, timeout: float = 5.0) -> bool:
        """Close the door, let running requests finish, end all threads; idempotent.

        Blocks up to ``timeout`` seconds for running requests, whose connections are cut then,
        and a little longer. False when an application function does not return: its thread is
        left behind and ends with the process.
        """
        front, self._front = self._front, None
        if front is None:
            return not self._server.left_behind
        self._server.shutdown_timeout = timeout
        self._server.stop()
        front.join(timeout + CUT_GRACE)
        return not (front.is_alive() or self._server.left_behind)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.bind_addr[1])

    @property
    def handshakes(self) -> int:
        """TLS handshakes completed since the start."""
        return self._server.handshakes

    def __enter__(self) -> HttpServer:
        self.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.stop()

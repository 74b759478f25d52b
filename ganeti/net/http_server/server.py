"""The server: its front thread, its workers, and how it starts and stops."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
from typing import Any
from wsgiref.types import WSGIApplication

from cheroot import wsgi
from cheroot.makefile import MakeFile
from cheroot.ssl import Adapter
from cheroot.workers import threadpool

from ganeti import errors
from ganeti.base.clock import Deadline
from ganeti.net.http_detached import Detached
from ganeti.net.http_head import MAX_HEAD
from ganeti.net.http_server.connection import Connection, Step
from ganeti.net.http_server.request import Gateway, RefusalBody
from ganeti.net.tls.contexts import ReloadableContext
from ganeti.net.tls.stream import TLSSocket

log = logging.getLogger(__name__)

#: Seconds a worker gets to notice that its connection was cut by ``stop``.
CUT_GRACE = 1.0


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

    def makefile(self, sock: TLSSocket, mode: str = "r", bufsize: int = -1) -> object:
        return MakeFile(sock, mode, bufsize)


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

    ConnectionClass = Connection
    _connections: Any

    def __init__(
        self, address: tuple[str, int], app: WSGIApplication, *, threads: int, name: str
    ) -> None:
        self.thread_name = name
        super().__init__(address, app, server_name="ganeti", request_queue_size=256)
        self.collect_body = 0
        self.collected = 0
        self.request_limit: float | None = None
        self.gateway = Gateway
        self.requests = _Pool(self, min=threads, max=threads)
        self.request_timeout = 60.0
        self.handshake_timeout = 10.0
        self.max_connections = 512
        self.handshakes = 0
        self.refusal_body: RefusalBody | None = None
        self.left_behind: list[threading.Thread] = []
        self._conns: set[Connection] = set()
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

    def process_conn(self, conn: Connection) -> None:
        """Move on a connection that is new or has input (front thread), or is pipelining."""
        if conn.dropped:
            conn.close()
            return
        if not conn.parked:
            conn.parked = True
            self._connections.put(conn)
            self._make_room()
            return
        step = Step.WORK if conn.rfile.has_data() else conn.advance()
        if step is Step.WORK:
            self.requests.put(conn)
        elif step is Step.WAIT:
            self._connections.put(conn)
        else:
            conn.close()

    def count_in(self, conn: Connection) -> None:
        """Count a connection in (front thread)."""
        with self._gate:
            self._conns.add(conn)

    def count_out(self, conn: Connection) -> None:
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
        self.count_out(victim)
        selector.unregister(fd)
        selector.register(fd, selectors.EVENT_WRITE, data=victim)

    def put_conn(self, conn: Connection) -> None:
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
        app: WSGIApplication,
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
        server.max_request_body_size = max(1, max_body)  # 0 would be no limit there
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

    def __exit__(self, *_exc: object) -> None:
        self.stop()

"""An HTTP client for many servers, with connections that are kept for the next call.

A call must not run twice ("create this disk"), so the client repeats a request only when the server
cannot have received all of it:

- The client checks that a kept connection is still open before it uses it.
- If the connection breaks while the request is sent, the client sends it once more, on a new
  connection.
- If the connection breaks after that, or the answer does not come in time, the call fails, and
  :attr:`CallError.may_have_run` is true.

``idle_limit`` must be less than the idle time-out of the server. Then a server does not close a
connection that the client is about to use, except when the server stops.
"""

from __future__ import annotations

import contextvars
import errno
import http
import http.client
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.net import http_link
from ganeti.net.http_link import (
    CONNECT_TIMEOUT,
    Call,
    CallError,
    Link,
    NotSentError,
    Response,
)
from ganeti.net.tls.contexts import ReloadableContext
from ganeti.net.tls.stream import CertificateRefusal, TLSError, TLSSocket

MAX_RESPONSE = 512 * 1024 * 1024

#: Key of a kept connection, for calls that may use it: the server, and which checks of its
#: certificate were made.
_Key = tuple[str, int, str | None, bool]


def _key(call: Call) -> _Key:
    return call.host, call.port, call.expected_cn, call.check_host


class Client:
    """Sends requests over kept connections; may be used by many threads.

    Args:
        context: certificates to use, None for plain HTTP.
        local_address: own address to call from, None for any.
        idle_limit: seconds a connection is kept for the next call.
        per_host: connections kept for one host.
        threads: calls of all ``fan_out`` together that run at the same time, besides the callers.
        max_response: largest accepted answer in bytes.
    """

    def __init__(
        self,
        context: ReloadableContext | None,
        *,
        local_address: str | None = None,
        idle_limit: float = 60.0,
        per_host: int = 8,
        threads: int = 64,
        max_response: int = MAX_RESPONSE,
    ) -> None:
        self._context = context
        self._source = None if local_address is None else (local_address, 0)
        self._idle_limit = idle_limit
        self._per_host = per_host
        self._max_response = max_response
        self._lock = threading.Lock()
        self._idle: dict[_Key, list[Link]] = {}
        self._busy: set[Link] = set()
        self._stopped = False
        self._generation = 0
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix="http-client")
        #: called after each call: with its seconds, and whether it got no answer
        self.on_end: Callable[[Call, float, bool], None] = lambda _call, _seconds, _failed: None
        #: Connections established since the start.
        self.connects = 0

    def post(
        self,
        host: str,
        port: int,
        path: str,
        body: bytes,
        timeout: float,
        connect_timeout: float = CONNECT_TIMEOUT,
        *,
        expected_cn: str | None = None,
    ) -> Response:
        """Send one request and wait for the answer, of any status; see :class:`Call`.

        Raises:
            RpcError: (a :class:`CallError`) there is no answer.
        """
        return self.perform(Call(host, port, path, body, timeout, connect_timeout, expected_cn))

    def perform(self, call: Call) -> Response:
        """As :meth:`post`, for a prepared call."""
        begin, failed = SYSTEM.monotonic(), True
        try:
            try:
                response = self._perform(call)
            except CallError as err:
                if not isinstance(err.__cause__, CertificateRefusal):
                    raise
                # While certificates are replaced, the two sides of a connection that is made
                # slowly may read their files at moments that are far apart.
                response = self._perform(call)
            failed = False
        finally:
            self.on_end(call, SYSTEM.monotonic() - begin, failed)
        return response

    def _perform(self, call: Call) -> Response:
        head = http_link.build_head(call)
        kept = self._take(_key(call))
        if kept is not None:
            try:
                return self._exchange(kept, call, head)
            except NotSentError:
                pass
        link = self._connect(call)
        try:
            return self._exchange(link, call, head)
        except NotSentError as err:
            reason = "the connection was closed while the request was sent; its log has the reason"
            raise CallError(call.host, call.port, reason, may_have_run=False) from err

    def stream(self, call: Call, silence: float) -> Iterator[bytes]:
        """Yield the lines of an answer that does not end by itself, such as a stream of events.

        Ends when the server closes the connection, and when no line comes for ``silence`` seconds.

        Close the iterator to end it earlier.

        Raises:
            RpcError: (a :class:`CallError`) there is no answer.
            BadStatus: the server refuses.
        """
        link = self._connect(call)
        try:
            link.sock.settimeout(silence)
            if isinstance(link.sock, TLSSocket):
                link.sock.deadline = None
            link.send(http_link.build_head(call), call.body)
            yield from link.lines()
        except (OSError, http.client.HTTPException) as err:
            raise self._call_error(call, err) from err
        finally:
            self._drop(link)

    def detach(self, call: Call) -> tuple[Response, TLSSocket]:
        """Perform a call on a connection of its own and keep that: what follows is up to you.

        The server must say nothing after its answer before it is asked.

        Raises:
            RpcError: (a :class:`CallError`) there is no answer.
        """
        link = self._connect(call)
        try:
            link.limit(call.timeout)
            link.send(http_link.build_head(call), call.body)
            response, _reusable = link.receive(self._max_response)
            if not isinstance(link.sock, TLSSocket):
                raise errors.ProgrammerError("only connections with TLS can be detached")
            link.sock.deadline = None
        except BaseException as err:  # an interrupt too: close the connection and raise it
            self._drop(link)
            if isinstance(err, OSError | http.client.HTTPException):
                raise self._call_error(call, err) from err
            raise
        with self._lock:
            self._busy.discard(link)
        return response, link.sock

    def fan_out(
        self, calls: Sequence[Call], max_parallel: int = 64
    ) -> list[Response | errors.GanetiError]:
        """Perform calls in parallel; returns answers and errors in the order of the calls.

        Takes as long as the slowest call. Each call has its own time-outs, so hosts that are down
        cost one connect time-out together. The calling thread performs calls too, so the calls go
        on even when all other threads are busy.
        """
        results: dict[int, Response | errors.GanetiError] = {}
        todo = deque(enumerate(calls))

        def work() -> None:
            while True:
                try:
                    index, call = todo.popleft()
                except IndexError:
                    return
                try:
                    results[index] = self.perform(call)
                except errors.GanetiError as err:
                    results[index] = err

        shares = self._share(work, min(max_parallel, len(calls)) - 1)
        work()
        for share in shares:
            if not share.cancel():
                share.result()
        return [results[index] for index in range(len(calls))]

    def _share(self, work: Callable[[], None], count: int) -> list[Future[None]]:
        """Have up to ``count`` workers of the pool do the same work beside the caller."""
        shares = []
        for _ in range(count):
            try:
                # Log lines of the workers name the job of the caller.
                shares.append(self._workers.submit(contextvars.copy_context().run, work))
            except RuntimeError:
                # The client was stopped: the remaining calls fail in the calling thread.
                break
        return shares

    def renew(self) -> None:
        """Read the certificate files again; later calls use the new certificates.

        A running call continues over its connection, which is then closed.

        Raises:
            X509CertError: a file cannot be used; the old certificate stays in use.
        """
        if self._context is not None:
            self._context.reload()
        with self._lock:
            self._generation += 1
        self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            links = [link for kept in self._idle.values() for link in kept]
            self._idle.clear()
        for link in links:
            link.sock.close()

    def stop(self) -> None:
        """Let running calls fail, close all connections, end all threads; may be repeated.

        Blocks until the threads have ended: not noticeably for calls that wait for an answer, up to
        the connect time-out for calls that are still connecting.
        """
        with self._lock:
            self._stopped = True
            busy = list(self._busy)
        for link in busy:
            http_link.cut(link)
        self._workers.shutdown(wait=True, cancel_futures=True)
        self._close_idle()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    # connections

    def _take(self, key: _Key) -> Link | None:
        """A kept connection that is still good."""
        while True:
            with self._lock:
                kept = self._idle.get(key)
                if self._stopped or not kept:
                    return None
                link = kept.pop()
                self._busy.add(link)
            fresh = SYSTEM.monotonic() - link.last_used < self._idle_limit
            if fresh and link.is_alive():
                return link
            self._drop(link)

    def _keep(self, key: _Key, link: Link) -> None:
        link.last_used = SYSTEM.monotonic()
        with self._lock:
            kept = self._idle.setdefault(key, [])
            current = link.generation == self._generation and not self._stopped
            if current and len(kept) < self._per_host:
                self._busy.discard(link)
                kept.append(link)
                return
        self._drop(link)

    def _drop(self, link: Link) -> None:
        with self._lock:
            self._busy.discard(link)
        link.sock.close()

    def _connect(self, call: Call) -> Link:
        generation = self._generation
        link = http_link.connect(call, self._context, self._source)
        link.generation = generation
        try:
            self._register(call, link)
        except BaseException:  # an interrupt too: close the connection and raise it
            link.sock.close()
            raise
        return link

    def _register(self, call: Call, link: Link) -> None:
        with self._lock:
            if self._stopped:
                reason = "this client was stopped"
                raise CallError(call.host, call.port, reason, may_have_run=False)
            self._busy.add(link)
            self.connects += 1

    # one exchange

    def _exchange(self, link: Link, call: Call, head: bytes) -> Response:
        link.limit(call.timeout)
        try:
            complete = http_link.send(link, head, call.body)
            response, reusable = link.receive(self._max_response)
        except BaseException as err:  # an interrupt too: close the connection and raise it
            self._drop(link)
            if isinstance(err, OSError | http.client.HTTPException):
                raise self._call_error(call, err) from err
            raise
        if complete and reusable:
            self._keep(_key(call), link)
        else:
            self._drop(link)
        return response

    def _call_error(self, call: Call, err: Exception) -> CallError:
        if self._stopped:
            reason = "this client was stopped during the call"
        elif isinstance(err, OSError) and err.errno == errno.ETIMEDOUT:
            reason = "that server has stopped answering (power cut, broken network?)"
        elif isinstance(err, TimeoutError):
            reason = f"no answer within {call.timeout:g} seconds"
        elif isinstance(err, TLSError):
            reason = f"TLS error: {err}"
        elif isinstance(err, ConnectionError):
            reason = "the connection was closed before the answer came"
        elif isinstance(err, OSError):
            reason = err.strerror or str(err)
        else:
            reason = f"no proper HTTP answer: {err or type(err).__name__}"
        return CallError(call.host, call.port, reason, may_have_run=True)

"""HTTP calls to many servers: kept connections, and one request to many hosts at a time.

Calls are not idempotent ("create this disk"), so a request is sent a second time only when it is
certain that the server cannot have acted on the first: a kept connection is looked at before
it is used again, and if the kernel then refuses a part of the request, no complete request has
arrived and a new connection is tried once. Silence or a hang-up after the request was sent is
an error, and :attr:`CallError.may_have_run` says so. Keep the idle limit here below the idle
time-out of the server; then only a server that stops can hang up at the wrong moment.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import http
import http.client
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.net import resolve
from ganeti.net.peers import check_host, check_peer_name
from ganeti.net.tls import EarlyAnswerError, ReloadableContext, TLSError, TLSSocket

#: Seconds until TCP and TLS must be established.
CONNECT_TIMEOUT = 5.0
#: Seconds without a sign of life after which the host of a running call is taken for dead. Its
#: kernel gives signs, however long the call itself takes; a host that rebooted says so.
SILENCE = 30.0
MAX_RESPONSE = 512 * 1024 * 1024
#: Head and body up to this size go out in one piece, which saves the server a wake-up.
_JOIN_LIMIT = 64 * 1024
_LONGEST_LINE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``host`` is a name or an address.

    ``timeout`` seconds are allowed from the established connection to the complete answer,
    ``connect_timeout`` before that. With ``expected_cn`` the server's certificate must carry
    this common name, with ``check_host`` the name or address that is called.
    """

    host: str
    port: int
    path: str
    body: bytes = b""
    timeout: float = 60.0
    connect_timeout: float = CONNECT_TIMEOUT
    expected_cn: str | None = None
    #: further header lines
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "POST"
    check_host: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """HTTP status and complete body; header names are in small letters."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)


class CallError(errors.RpcError):
    """A call got no answer; travels as ``RpcError``.

    ``may_have_run`` is False when the server certainly did not act on the request.
    """

    def __init__(self, host: str, port: int, reason: str, *, may_have_run: bool) -> None:
        super().__init__(f"{host}:{port}: {reason}")
        self.host = host
        self.port = port
        self.reason = reason
        self.may_have_run = may_have_run

    @property
    def wire_name(self) -> str:
        return "RpcError"


class BadStatus(Exception):
    """The answer to a request for a stream is something else."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


#: What a kept connection is good for: a place, and what was checked of who answers there.
_Key = tuple[str, int, str | None, bool]


def _key(call: Call) -> _Key:
    return call.host, call.port, call.expected_cn, call.check_host


class _NotSentError(Exception):
    """The kernel took only a part of the request; the server has no complete one."""


class _Link:
    """One established connection."""

    def __init__(self, sock: TLSSocket | socket.socket) -> None:
        self.sock = sock
        self.last_used = 0.0

    def is_alive(self) -> bool:
        """Whether nothing has come since the last answer; an idle server has nothing to say."""
        try:
            if isinstance(self.sock, TLSSocket):
                return self.sock.try_recv(1) is None
            self.sock.settimeout(0)
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def limit(self, seconds: float) -> None:
        """End everything that follows in this time (without TLS: each wait)."""
        if isinstance(self.sock, TLSSocket):
            self.sock.deadline = SYSTEM.monotonic() + seconds
        else:
            self.sock.settimeout(seconds)

    def send(self, head: bytes, body: bytes) -> None:
        if len(body) <= _JOIN_LIMIT:
            self.sock.sendall(head + body)
        else:
            self.sock.sendall(head)
            self.sock.sendall(body)

    def receive(self, max_size: int) -> tuple[Response, bool]:
        """The answer, and whether the connection can be used again."""
        # Only makefile() is used of the socket.
        answer = http.client.HTTPResponse(self.sock, method="POST")  # type: ignore[arg-type]
        with answer:
            answer.begin()
            body = answer.read(max_size + 1)
            if len(body) > max_size:
                raise http.client.HTTPException(f"the answer is larger than {max_size} bytes")
            if answer.length:
                raise http.client.IncompleteRead(body, answer.length)
            headers = {name.lower(): text for name, text in answer.getheaders()}
            return Response(answer.status, body, headers), not answer.will_close

    def lines(self) -> Iterator[bytes]:
        """The lines of an answer as they come, without their ends; then the connection is used up.

        Raises:
            BadStatus: the answer is not a success.
        """
        answer = http.client.HTTPResponse(self.sock, method="GET")  # type: ignore[arg-type]
        with answer:
            answer.begin()
            if answer.status != http.HTTPStatus.OK:
                raise BadStatus(Response(answer.status, answer.read(_JOIN_LIMIT)))
            while line := answer.readline(_LONGEST_LINE):
                yield line.rstrip(b"\r\n")


class Client:
    """Sends requests over kept connections; may be used by many threads.

    Args:
        context: certificates to use, None for plain HTTP.
        local_address: own address to call from, None for any.
        idle_limit: seconds a connection is kept for the next call.
        per_host: connections kept for one host.
        threads: calls of all ``fan_out`` together that run at the same time.
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
        self._idle: dict[_Key, list[_Link]] = {}
        self._busy: set[_Link] = set()
        self._stopped = False
        self._workers = ThreadPoolExecutor(threads, thread_name_prefix="http-client")
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
        """Send one request and wait for its answer, whatever its status; see :class:`Call`.

        Raises:
            RpcError: (a :class:`CallError`) there is no answer.
        """
        return self.perform(Call(host, port, path, body, timeout, connect_timeout, expected_cn))

    def perform(self, call: Call) -> Response:
        """As :meth:`post`, for a prepared call."""
        head = _head(call)
        kept = self._take(_key(call))
        if kept is not None:
            try:
                return self._exchange(kept, call, head)
            except _NotSentError:
                pass
        link = self._connect(call)
        try:
            return self._exchange(link, call, head)
        except _NotSentError as err:
            reason = "the connection was closed while the request was sent; its log has the reason"
            raise CallError(call.host, call.port, reason, may_have_run=False) from err

    def stream(self, call: Call, silence: float) -> Iterator[bytes]:
        """The lines of an endless answer; ends with it, or after ``silence`` seconds without any.

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
            link.send(_head(call), call.body)
            yield from link.lines()
        except (OSError, http.client.HTTPException) as err:
            raise self._call_error(call, err) from err
        finally:
            self._drop(link)

    def fan_out(
        self, calls: Sequence[Call], max_parallel: int = 64
    ) -> list[Response | errors.GanetiError]:
        """Perform calls in parallel; results in the order of the calls, errors included.

        Takes as long as the slowest call: each has its own time-outs, so one dead host costs one
        connect time-out. The calling thread works too, hence there is always progress.
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

        helpers = self._start_helpers(work, min(max_parallel, len(calls)) - 1)
        work()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
        return [results[index] for index in range(len(calls))]

    def _start_helpers(self, work: Callable[[], None], count: int) -> list[Future[None]]:
        helpers = []
        for _ in range(count):
            try:
                # Log lines of the helpers name the job of the caller.
                helpers.append(self._workers.submit(contextvars.copy_context().run, work))
            except RuntimeError:
                # Stopped meanwhile: the remaining calls fail in the calling thread.
                break
        return helpers

    def close_idle(self) -> None:
        """Close kept connections (after the own certificate was renewed)."""
        with self._lock:
            links = [link for kept in self._idle.values() for link in kept]
            self._idle.clear()
        for link in links:
            link.sock.close()

    def stop(self) -> None:
        """Fail running calls, close all connections, end all threads; idempotent.

        Blocks until the threads have ended: at once for running calls, up to the connect
        time-out for those that are connecting.
        """
        with self._lock:
            self._stopped = True
            busy = list(self._busy)
        for link in busy:
            _cut(link)
        self._workers.shutdown(wait=True, cancel_futures=True)
        self.close_idle()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _value: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.stop()

    # connections

    def _take(self, key: _Key) -> _Link | None:
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

    def _keep(self, key: _Key, link: _Link) -> None:
        link.last_used = SYSTEM.monotonic()
        with self._lock:
            kept = self._idle.setdefault(key, [])
            if not self._stopped and len(kept) < self._per_host:
                self._busy.discard(link)
                kept.append(link)
                return
        self._drop(link)

    def _drop(self, link: _Link) -> None:
        with self._lock:
            self._busy.discard(link)
        link.sock.close()

    def _connect(self, call: Call) -> _Link:
        end = SYSTEM.monotonic() + call.connect_timeout
        try:
            address = resolve.address(call.host)
            sock = socket.create_connection(
                (address, call.port), call.connect_timeout, self._source
            )
        except (OSError, errors.ResolverError) as err:
            raise _connect_error(call, err) from err
        link = _Link(sock)
        try:
            _set_options(sock)
            if self._context is not None:
                name = call.host if call.check_host and not resolve.is_address(call.host) else None
                secure = TLSSocket(sock, self._context, server_side=False, server_name=name)
                link = _Link(secure)
                secure.deadline = end
                secure.handshake()
                if call.expected_cn is not None:
                    check_peer_name(secure, call.expected_cn)
                if call.check_host:
                    check_host(secure, call.host)
            self._register(call, link)
        except OSError as err:
            link.sock.close()
            raise _connect_error(call, err) from err
        except BaseException:  # an interrupt too: the connection is closed, then it goes on
            link.sock.close()
            raise
        return link

    def _register(self, call: Call, link: _Link) -> None:
        with self._lock:
            if self._stopped:
                reason = "this client was stopped"
                raise CallError(call.host, call.port, reason, may_have_run=False)
            self._busy.add(link)
            self.connects += 1

    # one exchange

    def _exchange(self, link: _Link, call: Call, head: bytes) -> Response:
        link.limit(call.timeout)
        try:
            complete = _send(link, head, call.body)
            response, reusable = link.receive(self._max_response)
        except BaseException as err:  # an interrupt too: the connection is closed, then it goes on
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
            reason = "the host gave no sign of life any more (power cut, broken network?)"
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


def _send(link: _Link, head: bytes, body: bytes) -> bool:
    """Send a request; False when the server answered without waiting for its end."""
    try:
        link.send(head, body)
    except EarlyAnswerError:
        return False
    except TLSError:
        raise
    except ConnectionError as err:
        raise _NotSentError from err
    return True


def _cut(link: _Link) -> None:
    # It may have been closed meanwhile, which is what is wanted.
    with contextlib.suppress(OSError):
        link.sock.shutdown(socket.SHUT_RDWR)


def _head(call: Call) -> bytes:
    text = call.path + call.host
    if not call.path.startswith("/") or any(not "!" <= char <= "~" for char in text):
        raise errors.ProgrammerError(f"cannot send a request for {call.path!r} to {call.host!r}")
    host = f"[{call.host}]" if ":" in call.host else call.host
    more = "".join(f"{name}: {value}\r\n" for name, value in call.headers)
    return (
        f"{call.method} {call.path} HTTP/1.1\r\n"
        f"Host: {host}:{call.port}\r\n"
        "Accept-Encoding: identity\r\n"
        "Content-Type: application/json\r\n"
        f"{more}"
        f"Content-Length: {len(call.body)}\r\n\r\n"
    ).encode("ascii")


def _set_options(sock: socket.socket) -> None:
    """No delays, and watch that the other host lives (tcp(7)).

    Without the watch, a call to a host that lost its power ends with its time-out only.
    """
    options = (
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, round(SILENCE / 3)),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, round(SILENCE / 6)),
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(SILENCE * 1000)),
    )
    for level, option, value in options:
        sock.setsockopt(level, option, value)


def _connect_error(call: Call, err: Exception) -> CallError:
    if isinstance(err, errors.ResolverError):
        reason = f"the name has no address: {errors.text(err)}"
    elif isinstance(err, TimeoutError):
        reason = f"no connection within {call.connect_timeout:g} seconds"
    elif isinstance(err, TLSError):
        reason = f"TLS error: {err}"
    elif isinstance(err, ConnectionRefusedError):
        reason = "connection refused; does the daemon run there?"
    elif isinstance(err, OSError):
        reason = err.strerror or str(err)
    else:
        reason = str(err)
    return CallError(call.host, call.port, reason, may_have_run=False)

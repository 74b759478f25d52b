"""One HTTP connection to a server: how it is made and checked, and one request and answer on it."""

from __future__ import annotations

import contextlib
import http
import http.client
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from ganeti import errors
from ganeti.base.clock import SYSTEM
from ganeti.net import resolve
from ganeti.net.peers import check_host, check_peer_name
from ganeti.net.tls.contexts import ReloadableContext
from ganeti.net.tls.stream import EarlyAnswerError, TLSError, TLSSocket

#: Seconds until TCP and TLS must be established.
CONNECT_TIMEOUT = 5.0
#: Seconds without a sign of life after which the host of a running call is taken for dead. Its
#: kernel gives signs, however long the call itself takes; a host that rebooted says so.
SILENCE = 30.0
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


class NotSentError(Exception):
    """The kernel took only a part of the request; the server has no complete one."""


class Link:
    """One established connection."""

    def __init__(self, sock: TLSSocket | socket.socket) -> None:
        self.sock = sock
        self.last_used = 0.0
        #: of the certificate that it was made with; see :meth:`ganeti.net.http_client.Client.renew`
        self.generation = 0

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


def connect(call: Call, context: ReloadableContext | None, source: tuple[str, int] | None) -> Link:
    """Connect to the host of a call, and check who answers there; CallError."""
    end = SYSTEM.monotonic() + call.connect_timeout
    try:
        address = resolve.address(call.host)
        sock = socket.create_connection((address, call.port), call.connect_timeout, source)
    except (OSError, errors.ResolverError) as err:
        raise _connect_error(call, err) from err
    link = Link(sock)
    try:
        _set_socket_options(sock)
        if context is not None:
            name = call.host if call.check_host and not resolve.is_address(call.host) else None
            secure = TLSSocket(sock, context, server_side=False, server_name=name)
            link = Link(secure)
            secure.deadline = end
            secure.handshake()
            if call.expected_cn is not None:
                check_peer_name(secure, call.expected_cn)
            if call.check_host:
                check_host(secure, call.host)
    except OSError as err:
        link.sock.close()
        raise _connect_error(call, err) from err
    except BaseException:  # an interrupt too: close the connection and raise it
        link.sock.close()
        raise
    return link


def send(link: Link, head: bytes, body: bytes) -> bool:
    """Send a request; False when the server answered without waiting for its end."""
    try:
        link.send(head, body)
    except EarlyAnswerError:
        return False
    except TLSError:
        raise
    except ConnectionError as err:
        raise NotSentError from err
    return True


def cut(link: Link) -> None:
    """End what another thread does with a connection."""
    # It may have been closed meanwhile, which is what is wanted.
    with contextlib.suppress(OSError):
        link.sock.shutdown(socket.SHUT_RDWR)


def build_head(call: Call) -> bytes:
    """Request line and headers; ProgrammerError for what cannot be in them."""
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


def _set_socket_options(sock: socket.socket) -> None:
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


def read_clock(text: str, begin: float, end: float) -> float | None:
    """Seconds that a clock is ahead which said its time in between; None without a time. Pure.

    The header has whole seconds, and nobody knows when in between it was written.
    """
    try:
        there = parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
    if begin - 1 <= there <= end:
        return 0.0
    return there - end if there > end else there + 1 - begin

"""A TLS connection that can be used like a socket, by both ends.

Its errors are ``OSError`` (``TimeoutError``, ``ConnectionResetError``, :class:`TLSError`), because
``http.client`` and cheroot expect that from a socket.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import select
import socket
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from OpenSSL import SSL
from OpenSSL._util import lib as _openssl

from ganeti.base.clock import SYSTEM
from ganeti.net.tls import certificate
from ganeti.net.tls.certificate import Peer
from ganeti.net.tls.contexts import ReloadableContext

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Largest payload of a TLS record; OpenSSL reads and writes one record at a time.
RECORD = 16 * 1024


class TLSError(ConnectionError):
    """TLS could not be agreed on, a certificate was refused, or the stream is damaged."""


class CertificateRefusal(TLSError):
    """One side did not accept the certificate of the other; no request was acted on."""


class HandshakeCut(TLSError):
    """The other side went away in the middle of the handshake, as what only probes a port does."""


class EarlyAnswerError(ConnectionError):
    """The server answered before it had the whole request; the answer can be read."""


class _EndOfStreamError(Exception):
    """The other side will send no more; with or without a close_notify."""


class TLSSocket:
    """A socket-like object over ``OpenSSL.SSL.Connection``, for ``http.client`` and cheroot.

    The kernel socket is non-blocking; waiting is done with poll, so every operation ends in time:
    ``settimeout`` limits one wait without progress, :attr:`deadline` (a monotonic
    moment, None for no limit) ends all operations together. One thread uses it at a time;
    only :meth:`shutdown` may be called from another thread, to end what the first one waits for.

    An end of the stream without close_notify is an end of file (``recv`` returns ``b""``): who
    needs to know whether a message is complete must count its bytes, as HTTP does.
    """

    def __init__(
        self,
        sock: socket.socket,
        context: ReloadableContext,
        *,
        server_side: bool,
        server_name: str | None = None,
    ) -> None:
        """Take over a connected socket; nothing is sent or read before the handshake.

        ``server_name`` is the name of the server to ask for (SNI).
        """
        sock.setblocking(False)
        self._sock = sock
        self._server_side = server_side
        self._conn = SSL.Connection(context.current(), sock)
        if server_side:
            self._conn.set_accept_state()
        else:
            self._conn.set_connect_state()
            if server_name is not None:
                self._conn.set_tlsext_host_name(server_name.encode("idna"))
        self.deadline: float | None = None
        self._timeout: float | None = None
        self._unread = b""
        self._io_refs = 0
        self._closed = False
        self._usable = True
        self._ended = False

    # handshake

    def handshake(self) -> None:
        """Agree on TLS; blocks within the time limits.

        Raises:
            TLSError: no agreement, or a certificate was refused.
            TimeoutError: the other side did not answer in time.
        """
        self._handshake(block=True)

    def try_handshake(self) -> bool:
        """Go as far as possible without waiting; True when the handshake is complete."""
        try:
            self._handshake(block=False)
        except BlockingIOError:
            return False
        return True

    def _handshake(self, *, block: bool) -> None:
        try:
            self._call(block, self._conn.do_handshake)
        except _EndOfStreamError:
            raise HandshakeCut("the other side hung up during the TLS handshake") from None

    def peer(self) -> Peer | None:
        """The other side's certificate after the handshake; None when it has none."""
        cert = self._conn.get_peer_certificate()
        return None if cert is None else certificate.read_peer(cert)

    def certificate_names(self) -> list[str]:
        """Names and addresses that the other side's certificate is for; empty without one."""
        cert = self._conn.get_peer_certificate()
        return [] if cert is None else certificate.read_names(cert)

    # reading

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Up to ``size`` bytes; empty at the end of the stream. Flags are not supported."""
        if flags:
            raise ValueError("a TLS socket has no receive flags")
        if self._unread:
            data, self._unread = self._unread[:size], self._unread[size:]
            return data
        if size <= 0:
            return b""
        try:
            return self._call(True, self._conn.recv, min(size, RECORD))
        except _EndOfStreamError:
            return b""

    def recv_into(self, buffer: bytearray | memoryview, nbytes: int = 0, flags: int = 0) -> int:
        """Read into a buffer; 0 at the end of the stream."""
        data = self.recv(min(nbytes or len(buffer), len(buffer)), flags)
        buffer[: len(data)] = data
        return len(data)

    def try_recv(self, size: int) -> bytes | None:
        """Receive without waiting: bytes, ``b""`` at the end, None for nothing yet."""
        try:
            return self._call(False, self._conn.recv, min(size, RECORD))
        except BlockingIOError:
            return None
        except _EndOfStreamError:
            return b""

    def push_back(self, data: bytes) -> None:
        """Return bytes to the stream; the next reads return them first."""
        self._unread = data + self._unread

    def pending(self) -> int:
        """Bytes that can be read although the kernel socket may show nothing."""
        return len(self._unread) + self._conn.pending()

    # writing

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        """Send a first part of ``data`` and return its length; flags are ignored."""
        with memoryview(data) as whole, whole.cast("B") as view:
            if not view.nbytes:
                return 0
            with view[:RECORD] as piece:
                return self._send(piece)

    def try_send(self, data: bytes | bytearray) -> int:
        """Send what can be sent without waiting. Returns the bytes sent; send the rest again."""
        try:
            return self._call(False, self._conn.send, bytes(data[:RECORD])) if data else 0
        except BlockingIOError:
            return 0
        except _EndOfStreamError:
            raise BrokenPipeError(errno.EPIPE, "the other side closed the connection") from None

    def sendall(self, data: bytes | bytearray | memoryview, flags: int = 0) -> None:
        """Send everything; the time-out counts again whenever something could be sent."""
        with memoryview(data) as whole, whole.cast("B") as view:
            done = 0
            while done < view.nbytes:
                with view[done : done + RECORD] as piece:
                    done += self._send(piece)

    def _send(self, piece: memoryview) -> int:
        try:
            return self._call(True, self._conn.send, piece)
        except _EndOfStreamError:
            raise BrokenPipeError(errno.EPIPE, "the other side closed the connection") from None

    # waiting

    def settimeout(self, seconds: float | None) -> None:
        """Longest wait without progress; None waits for ever, 0 never waits."""
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        """The time-out in seconds, None when there is none."""
        return self._timeout

    def _call(self, block: bool, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do one OpenSSL operation, again and again until it is neither short of input nor room."""
        if self._sock.fileno() == -1:
            raise OSError(errno.EBADF, "the connection is closed")
        if self._ended:
            raise _EndOfStreamError
        if not self._usable:
            # OpenSSL allows no further use after an error; it might ask to wait for ever.
            raise ConnectionAbortedError(errno.ECONNABORTED, "the connection failed before")
        started = SYSTEM.monotonic()
        while True:
            # OpenSSL before 4.0 keeps errors per thread and takes one that another connection
            # left for its own (SSL_get_error(3)); pyOpenSSL leaves one when a system call fails.
            _openssl.ERR_clear_error()
            try:
                return operation(*args, **kwargs)
            except SSL.WantReadError:
                event = select.POLLIN
            except SSL.WantWriteError:
                event = select.POLLOUT
            except SSL.ZeroReturnError:
                raise _EndOfStreamError from None
            except SSL.SysCallError as err:
                self._usable = False
                if err.args[0] == -1:
                    self._ended = True
                    raise _EndOfStreamError from None
                raise OSError(err.args[0], os.strerror(err.args[0])) from err
            except SSL.Error as err:
                self._usable = False
                raise self._translate(err) from err
            if not block or self._timeout == 0:
                raise BlockingIOError(errno.EAGAIN, "nothing to do without waiting")
            self._wait(event, started)

    def _wait(self, event: int, started: float) -> None:
        limits = [] if self._timeout is None else [started + self._timeout]
        if self.deadline is not None:
            limits.append(self.deadline)
        left = None if not limits else min(limits) - SYSTEM.monotonic()
        # With a full window no reset tells a client that the server refused and stopped reading.
        listening = event == select.POLLOUT and not self._server_side
        poller = select.poll()
        watched = event | select.POLLIN | select.POLLRDHUP if listening else event
        poller.register(self._sock.fileno(), watched)
        # The text is the one cheroot recognises a time-out by.
        if left is not None and left <= 0:
            raise TimeoutError("timed out")
        found = poller.poll(None if left is None else left * 1000)
        if not found:
            raise TimeoutError("timed out")
        if listening and found[0][1] & ~select.POLLOUT:
            self._hear()

    def _hear(self) -> None:
        """See what the server says while it takes no more of a request.

        Raises:
            EarlyAnswerError: an answer begins; it can be read.
            TLSError: the server refused with an alert.
            BrokenPipeError: the server closed the connection.
        """
        try:
            self._call(False, self._conn.recv, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return  # a message of TLS itself, such as a session ticket
        except _EndOfStreamError:
            raise BrokenPipeError(errno.EPIPE, "the other side closed the connection") from None
        raise EarlyAnswerError(errno.EPIPE, "the other side answered before the request ended")

    def _translate(self, err: SSL.Error) -> TLSError:
        refused = self._conn.get_app_data()
        if refused is not None:
            text = f"the certificate of the other side is refused: {refused}"
            return CertificateRefusal(text)
        entries = err.args[0] if err.args and isinstance(err.args[0], list) else []
        reasons = [entry[-1] for entry in entries if entry[-1]]
        text = "; ".join(reasons) or "TLS failed"
        return CertificateRefusal(text) if any(map(_is_refusal, reasons)) else TLSError(text)

    # the rest of a socket

    def makefile(
        self, mode: str = "r", buffering: int | None = None, **_text: object
    ) -> io.BufferedReader | io.BufferedWriter:
        """A binary file over this socket, for reading (``rb``) or writing (``wb``)."""
        size = buffering if buffering is not None and buffering > 1 else io.DEFAULT_BUFFER_SIZE
        self._io_refs += 1
        # SocketIO asks for no more than the methods of this class.
        raw = socket.SocketIO(self, "w" if "w" in mode else "r")  # type: ignore[arg-type]
        return io.BufferedWriter(raw, size) if "w" in mode else io.BufferedReader(raw, size)

    def _decref_socketios(self) -> None:
        """A file made of this socket was closed (called by ``socket.SocketIO``)."""
        self._io_refs = max(0, self._io_refs - 1)
        if self._closed:
            self._close_when_unused()

    def fileno(self) -> int:
        """The kernel descriptor, -1 when closed."""
        return self._sock.fileno()

    def getpeername(self) -> object:
        """Address of the other side, as the kernel socket tells it."""
        return self._sock.getpeername()

    def getsockname(self) -> object:
        """Own address, as the kernel socket tells it."""
        return self._sock.getsockname()

    def shutdown(self, how: int = socket.SHUT_RDWR) -> None:
        """End the kernel connection; from any thread. A waiting operation ends with an error."""
        self._sock.shutdown(how)

    def sock_shutdown(self, _how: int = socket.SHUT_RDWR) -> None:
        """Send close_notify and end the sending half; only by the owner.

        The receiving half stays open until :meth:`close`: after its end the kernel opens the
        window of a sending client no more, and that client would wait until its time-out.
        """
        self._shut_down_tls()
        self._sock.shutdown(socket.SHUT_WR)

    def finish_sending(self) -> None:
        """Send close_notify; what the other side still says can be read.

        Raises:
            OSError: the connection failed before.
        """
        self._call(True, self._conn.shutdown)

    @property
    def ended_in_order(self) -> bool:
        """Whether the other side has said that it sends no more: its stream is complete."""
        return bool(self._conn.get_shutdown() & SSL.RECEIVED_SHUTDOWN)

    def discard_input(self) -> bool:
        """Drop what has arrived, undecrypted and without waiting; False at the end of the stream.

        For a connection that was refused: closing it with unread input resets it, which can
        destroy the alert or answer that is on its way to the client.
        """
        try:
            for _ in range(16):
                if not self._sock.recv(4 * RECORD):
                    return False
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def _shut_down_tls(self) -> None:
        self.discard_input()
        if not self._usable:
            return
        self._usable = False
        _openssl.ERR_clear_error()
        try:
            self._conn.shutdown()
        except SSL.Error as err:
            # A courtesy: the other side takes the plain end of the stream as well.
            log.debug("no close_notify sent: %s", err)

    def close(self) -> None:
        """Say goodbye and close; with open files the kernel socket closes with the last one."""
        self._closed = True
        if self._io_refs == 0:
            self._close_when_unused()

    def _close_when_unused(self) -> None:
        if self._io_refs == 0 and self._sock.fileno() != -1:
            self._shut_down_tls()
            self._sock.close()


def _is_refusal(reason: str) -> bool:
    """Whether this reason of OpenSSL is an alert of the other side about our certificate."""
    return "alert" in reason and ("certificate" in reason or "unknown ca" in reason)

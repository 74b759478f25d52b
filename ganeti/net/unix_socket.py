"""Messages over Unix sockets: framing, a blocking client, listening, who is calling.

A message is any bytes without 0x03 followed by one byte 0x03 (the framing of LUXI).
Paths may be longer than the 107 bytes a socket address has room for.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from ganeti import constants, errors
from ganeti.base import retry
from ganeti.base.clock import Deadline
from ganeti.base.record import Record

TERMINATOR = b"\x03"
#: Longest path in a ``sockaddr_un``, without the closing zero.
MAX_ADDRESS = 107
CHUNK = 64 * 1024
#: Nobody listens (yet); worth another try when the daemon is known to be starting.
_NOBODY = (errno.ENOENT, errno.ECONNREFUSED)


def frame(message: bytes, max_size: int = constants.LUXI_MAX_MESSAGE) -> bytes:
    """A message as it goes over the wire.

    Raises:
        ProtocolError: it holds the terminator or is larger than ``max_size`` bytes.
    """
    if TERMINATOR in message:
        raise errors.ProtocolError("A message must not contain the byte 0x03")
    if len(message) > max_size:
        raise errors.ProtocolError(
            f"The message has {len(message)} bytes, more than the allowed {max_size}"
        )
    return message + TERMINATOR


class FrameReader:
    """Cuts a stream of bytes into messages; pure, does no i/o."""

    def __init__(self, max_size: int = constants.LUXI_MAX_MESSAGE) -> None:
        self._max_size = max_size
        self._rest = bytearray()

    @property
    def partial(self) -> bool:
        """Whether a message has begun but not ended."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """Take more bytes; the messages that are complete now, without terminator.

        Raises:
            ProtocolError: a message is larger than the limit; the stream is of no more use.
        """
        one = data.find(TERMINATOR) == len(data) - 1
        if one and not self._rest and 0 < len(data) <= self._max_size:
            return [data[:-1]]  # what nearly every client sends
        *complete, rest = data.split(TERMINATOR)
        messages = []
        for piece in complete:
            self._extend(piece)
            messages.append(bytes(self._rest))
            self._rest.clear()
        self._extend(rest)
        return messages

    def _extend(self, piece: bytes) -> None:
        if len(self._rest) + len(piece) > self._max_size:
            self._rest.clear()
            raise errors.ProtocolError(f"A message is larger than {self._max_size} bytes")
        self._rest += piece


class FramedClient:
    """A connection that carries one request and one answer at a time; for one thread.

    After any error in a call the connection is closed, as it is unknown what the other side
    would answer next.
    """

    def __init__(
        self,
        path: Path,
        *,
        connect_timeout: float = 30.0,
        io_timeout: float = float(constants.LUXI_READ_TIMEOUT),
        retry_connect: bool = False,
        max_size: int = constants.LUXI_MAX_MESSAGE,
    ) -> None:
        """Connect; blocks up to ``connect_timeout`` seconds while the listener is busy.

        ``io_timeout`` seconds without progress end a call; an answer may take twice that in all.
        With ``retry_connect`` a missing listener is waited for as well (it is starting).

        Raises:
            NoMasterError: nobody listens there.
            TimeoutError: the listener took no connection in time.
            LuxiError: no permission, or another reason that the text names.
        """
        self._path = path
        self._io_timeout = io_timeout
        self._max_size = max_size
        self._reader = FrameReader(max_size)
        self._sock: socket.socket | None = _connect(path, connect_timeout, again=retry_connect)
        self._sock.settimeout(io_timeout)

    def call(self, message: bytes) -> bytes:
        """Send a request and wait for its answer.

        Raises:
            TimeoutError: no answer in time.
            ConnectionClosedError: the other side hung up.
            ProtocolError: a message is too large or not what was expected.
        """
        self.send(message)
        return self.recv()

    def send(self, message: bytes) -> None:
        """Send one message; errors as in :meth:`call`."""
        data = memoryview(frame(message, self._max_size))
        sock = self._require_socket()
        with self._closing_on_error("sending a request to"):
            while data:
                data = data[sock.send(data) :]

    def recv(self) -> bytes:
        """Wait for one message; errors as in :meth:`call`."""
        sock = self._require_socket()
        end = Deadline(2 * self._io_timeout)
        with self._closing_on_error("waiting for an answer of"):
            while True:
                messages = self._reader.feed(self._chunk(sock, end))
                if len(messages) > 1 or (messages and self._reader.partial):
                    raise errors.ProtocolError(f"{self._path}: more than one answer came")
                if messages:
                    return messages[0]

    def fileno(self) -> int:
        """The descriptor, for a selector; see :meth:`try_recv`."""
        return self._require_socket().fileno()

    def try_recv(self) -> bytes | None:
        """The answer if all of it is there, None when more must come; errors as in :meth:`call`.

        For one thread that waits for many answers. Sending stays as it is.
        """
        sock = self._require_socket()
        with self._closing_on_error("waiting for an answer of"):
            sock.setblocking(False)
            try:
                data = sock.recv(CHUNK)
            except BlockingIOError:
                return None
            finally:
                sock.settimeout(self._io_timeout)
            if not data:
                raise errors.ConnectionClosedError(
                    f"The daemon behind {self._path} closed the connection"
                )
            messages = self._reader.feed(data)
            return messages[0] if messages else None

    def _chunk(self, sock: socket.socket, end: Deadline) -> bytes:
        left = end.left
        if left <= 0:
            raise TimeoutError
        if left < self._io_timeout:
            sock.settimeout(left)
        try:
            data = sock.recv(CHUNK)
        finally:
            if left < self._io_timeout:
                sock.settimeout(self._io_timeout)
        if not data:
            where = "in the middle of an answer" if self._reader.partial else "without an answer"
            raise errors.ConnectionClosedError(
                f"The daemon behind {self._path} closed the connection {where};"
                " see its log file for the reason"
            )
        return data

    def _require_socket(self) -> socket.socket:
        if self._sock is None:
            raise errors.ConnectionClosedError(f"The connection to {self._path} is closed")
        return self._sock

    @contextlib.contextmanager
    def _closing_on_error(self, doing: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError as err:
            self.close()
            raise errors.TimeoutError(
                f"Timeout while {doing} the daemon behind {self._path}:"
                f" no progress for {self._io_timeout:g} seconds"
            ) from err
        except OSError as err:
            self.close()
            raise errors.ConnectionClosedError(
                f"Error while {doing} the daemon behind {self._path}: {err.strerror}"
            ) from err
        except BaseException:  # an interrupt too: close the socket and raise it
            self.close()
            raise

    def detach(self) -> socket.socket:
        """The socket, which is the caller's business from now on; errors as in :meth:`call`."""
        sock, self._sock = self._require_socket(), None
        return sock

    def is_idle(self) -> bool:
        """Whether a request can be sent: open, and the other side has not hung up meanwhile."""
        if self._sock is None:
            return False
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Close the connection; idempotent."""
        sock, self._sock = self._sock, None
        if sock is not None:
            sock.close()

    def __enter__(self) -> FramedClient:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def _connect(path: Path, timeout: float, *, again: bool) -> socket.socket:
    last: list[OSError] = []
    end = Deadline(timeout)

    def attempt() -> socket.socket | None:
        try:
            return _connect_once(path, max(0.001, end.left))
        except OSError as err:
            if not again or err.errno not in _NOBODY:
                raise
            last[:] = [err]
            return None

    try:
        # Nothing tells when somebody begins to listen, hence the small intervals.
        sock = retry.retry_until(attempt, timeout=timeout, first=0.02, largest=0.5)
    except OSError as err:
        raise _connect_error(path, timeout, err) from err
    if sock is None:
        raise _connect_error(path, timeout, last[0]) from last[0]
    return sock


def dial(path: Path, timeout: float) -> socket.socket:
    """A connected stream socket; blocks up to ``timeout`` seconds. OSError."""
    return _connect_once(path, timeout)


def _connect_once(path: Path, timeout: float) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        # With a full backlog a blocking connect waits inside the kernel, up to SO_SNDTIMEO;
        # a non-blocking one would fail with EAGAIN at once.
        limit = struct.pack("ll", int(timeout), int(timeout % 1 * 1_000_000))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        with shorten_name(path) as name:
            sock.connect(name)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))
    except BaseException:  # an interrupt too: close the socket and raise it
        sock.close()
        raise
    return sock


def _connect_error(path: Path, timeout: float, err: OSError) -> errors.LuxiError:
    if err.errno in _NOBODY:
        return errors.NoMasterError(
            f"Nobody listens on {path}: this node is not the master or its daemon does not run"
        )
    if err.errno in (errno.EAGAIN, errno.ETIMEDOUT):
        return errors.TimeoutError(
            f"The daemon behind {path} took no connection within {timeout:g} seconds"
        )
    if err.errno in (errno.EACCES, errno.EPERM):
        return errors.LuxiError(
            f"No permission to use {path}: run this as root or as a member of its group"
        )
    return errors.LuxiError(f"Cannot connect to {path}: {err.strerror or err}")


@contextlib.contextmanager
def shorten_name(path: Path) -> Iterator[str]:
    """A name of the path that fits into a socket address, valid inside the block.

    Raises:
        OSError: the path is too long and its directory cannot be opened.
    """
    name = os.fspath(path)
    if len(os.fsencode(name)) <= MAX_ADDRESS:
        yield name
        return
    fd = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{path.name}"
    finally:
        os.close(fd)


def listen(path: Path, mode: int, gid: int | None = None, backlog: int = 128) -> socket.socket:
    """A listening socket at ``path``; its directory must exist.

    The name appears in one step with its final mode and group, on a socket that already
    listens; the left-over of a dead process is replaced. The caller removes it at the end.

    Raises:
        LuxiError: somebody listens there, something else has the name, or no permission.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    new = path.with_name(f".{path.name[:60]}.{os.getpid()}")
    try:
        _refuse_taken(path)
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
        with shorten_name(new) as name:
            sock.bind(name)
        try:
            os.chmod(new, mode)
            if gid is not None:
                os.chown(new, -1, gid)
            sock.listen(backlog)
            os.rename(new, path)
        except BaseException:  # an interrupt too: remove the new name and raise it
            new.unlink()
            raise
    except OSError as err:
        sock.close()
        raise errors.LuxiError(f"Cannot listen on {path}: {err.strerror or err}") from err
    except BaseException:  # an interrupt too: close the socket and raise it
        sock.close()
        raise
    return sock


def _refuse_taken(path: Path) -> None:
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise errors.LuxiError(f"Cannot listen on {path}: there is a file that is not a socket")
    try:
        _connect_once(path, 1.0).close()
    except OSError as err:
        if err.errno in _NOBODY:
            return
        if err.errno != errno.EAGAIN:
            raise
    raise errors.LuxiError(f"Cannot listen on {path}: another process does")


class Credentials(Record):
    """Process, user and group at the other end of a Unix socket, when it connected."""

    pid: int
    uid: int
    gid: int


def peer_credentials(sock: socket.socket) -> Credentials:
    """The user of the other end, as the kernel knows it (SO_PEERCRED, unix(7))."""
    layout = struct.Struct("iII")
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size)
    return Credentials(*layout.unpack(raw))

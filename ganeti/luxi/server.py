"""The LUXI server: one thread for all input and output, a pool for the work.

The I/O thread never blocks: it reads what is there, cuts it into messages, hands complete ones to
the pool and sends what is to be sent. A request that takes less than waking another thread would
(``quick`` tells) it answers itself. A client that is slow, silent or talks nonsense costs a
descriptor and a buffer, nothing else. A handler answers when it likes, from any thread, so a
client that waits for a job holds no thread. A client may end its sending side after the last
request (``printf ... | socat - UNIX-CONNECT:...``) and still gets all answers.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ganeti import constants, errors
from ganeti.base.clock import SYSTEM
from ganeti.luxi import calls
from ganeti.luxi.reply import Handler, Quick, QuickAnswers, Reply
from ganeti.net import unix_socket
from ganeti.net.unix_socket import Credentials, FrameReader

_LOG = logging.getLogger(__name__)

#: Larger pieces of memory would come from the kernel and go back to it for each request.
_CHUNK = 64 * 1024
#: Seconds after which a request is answered with a time-out; below the clients' own limit.
REQUEST_TIMEOUT = constants.LUXI_READ_TIMEOUT - 10
#: Seconds in which a client must take at least something of an answer.
WRITE_TIMEOUT = 120.0
#: Seconds between two looks for clients that do not read.
_LOOK = 30.0
#: Messages of one client that may wait while one is being worked on.
_MAX_QUEUED = 16


class _Connection:
    """One client. Only the I/O thread reads and closes; sending is guarded by ``lock``."""

    def __init__(self, sock: socket.socket, peer: Credentials) -> None:
        self.sock = sock
        self.peer = peer
        self.reader = FrameReader()
        self.queue: deque[bytes] = deque()
        self.busy: Reply | None = None
        self.lock = threading.Lock()
        self.out = bytearray()
        self.stalled_since: float | None = None
        #: the client sends no more; it may still read
        self.ended = False
        self.closing = False
        self.closed = False


class LuxiServer:
    """Serves LUXI on a Unix socket.

    Args:
        path: where to listen; permissions of the socket decide who may connect.
        handler: called for each request, in a pool thread.
        quick: what answers a small request at once, without the handler.
        workers: size of that pool.
        timeout: seconds after which a request is answered with a time-out error.
    """

    def __init__(
        self,
        path: Path,
        handler: Handler,
        *,
        mode: int = 0o660,
        gid: int | None = None,
        workers: int = 16,
        quick: Quick = lambda method, args: None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self._path = path
        self._handler = handler
        self._quick = QuickAnswers(quick)
        self._mode = mode
        self._gid = gid
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="luxi")
        self._selector = selectors.DefaultSelector()
        self._wake_r, self._wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        #: tells of clients that sent no more and then left; their input is always "ready"
        self._leaving = select.epoll()
        self._actions: deque[Callable[[], None]] = deque()
        self._connections: set[_Connection] = set()
        #: in the order of their ends, as all requests have the same time
        self._deadlines: deque[tuple[float, Reply]] = deque()
        self._stopping = False
        self._next_look = 0.0
        self._thread = threading.Thread(target=self._loop, name="luxi-io", daemon=True)
        self._listener: socket.socket | None = None

    # life cycle --------------------------------------------------------------------------

    def start(self) -> None:
        """Listen and serve; LuxiError when the socket is taken or cannot be made."""
        try:
            self._listener = unix_socket.listen(self._path, self._mode, self._gid, backlog=1024)
        except BaseException:  # an interrupt too: close what was opened and raise it
            self._release()
            raise
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake_r, selectors.EVENT_READ, self._run_actions)
        self._selector.register(self._leaving, selectors.EVENT_READ, self._close_left_connections)
        self._thread.start()

    def stop(self) -> None:
        """Close the socket and all connections, end all threads; requests in work get no answer."""
        self._post(self._begin_stop)
        self._thread.join()
        self._release()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def _release(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._selector.close()
        self._leaving.close()
        os.close(self._wake_r)
        os.close(self._wake_w)

    def _begin_stop(self) -> None:
        self._stopping = True
        for connection in list(self._connections):
            self._close(connection)
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()

    def _post(self, action: Callable[[], None]) -> None:
        """Have the I/O thread do something."""
        self._actions.append(action)
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_w, b"x")

    # the I/O thread ----------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._stopping:
            for key, events in self._selector.select(self._find_next_deadline()):
                try:
                    if isinstance(key.data, _Connection):
                        self._serve(key.data, events)
                    else:
                        key.data()
                except Exception:  # noqa: BLE001 - the loop must outlive a bug for one client
                    _LOG.exception("I/O thread")
                    if isinstance(key.data, _Connection):
                        self._close(key.data)
            self._expire()

    def _find_next_deadline(self) -> float:
        if not self._deadlines:
            return _LOOK
        return max(0.0, min(_LOOK, self._deadlines[0][0] - SYSTEM.monotonic()))

    def _expire(self) -> None:
        now = SYSTEM.monotonic()
        while self._deadlines and self._deadlines[0][0] <= now:
            self._deadlines.popleft()[1].time_out(self._timeout)
        if now < self._next_look:
            return
        self._next_look = now + _LOOK
        for connection in [c for c in self._connections if c.stalled_since is not None]:
            if now - (connection.stalled_since or now) > WRITE_TIMEOUT:
                _LOG.warning("client pid %s does not read its answer", connection.peer.pid)
                self._close(connection)

    def _run_actions(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_r, 4096):
                pass
        while self._actions:
            self._actions.popleft()()

    def _accept(self) -> None:
        assert self._listener is not None
        for _ in range(64):
            try:
                sock, _address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as err:
                _LOG.error("cannot accept a client: %s", err)
                return
            sock.setblocking(False)
            connection = _Connection(sock, unix_socket.peer_credentials(sock))
            self._connections.add(connection)
            self._selector.register(sock, selectors.EVENT_READ, connection)

    def _serve(self, connection: _Connection, events: int) -> None:
        if connection.closed:
            return
        if events & selectors.EVENT_WRITE:
            self._flush(connection)
        if events & selectors.EVENT_READ and not connection.closed:
            self._read(connection)

    def _read(self, connection: _Connection) -> None:
        try:
            data = connection.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._close(connection)
            return
        if not data:
            self._end_input(connection)
            return
        if self._answer_quickly(connection, data):
            return
        try:
            connection.queue.extend(connection.reader.feed(data))
        except errors.ProtocolError as err:
            self._refuse(connection, errors.RequestError(errors.text(err)))
            return
        if len(connection.queue) > _MAX_QUEUED:
            self._refuse(connection, errors.RequestError("too many requests without waiting"))
            return
        self._start_next(connection)

    def _end_input(self, connection: _Connection) -> None:
        """The client sends no more: answer what it has sent, unless it leaves altogether."""
        connection.ended = True
        self._hang_up_if_answered(connection)
        if not connection.closed:
            self._leaving.register(connection.sock, 0)  # its end is reported in any case
            self._watch(connection, write=bool(connection.out))

    def _close_left_connections(self) -> None:
        gone = {fd for fd, _events in self._leaving.poll(0)}
        for connection in [c for c in self._connections if c.sock.fileno() in gone]:
            self._close(connection)

    def _hang_up_if_answered(self, connection: _Connection) -> None:
        """Hang up if the client sends no more and has all its answers."""
        if connection.closed or not connection.ended:
            return
        if connection.busy or connection.queue or connection.out:
            return
        if connection.reader.partial and not connection.closing:
            text = "the last request is cut off: each ends with the byte 0x03"
            self._refuse(connection, errors.RequestError(text))
        else:
            self._close(connection)

    def _watch(self, connection: _Connection, *, write: bool) -> None:
        """Hear of more input, as long as there can be any, and of room for output if asked for."""
        events = 0 if connection.ended else selectors.EVENT_READ
        events |= selectors.EVENT_WRITE if write else 0
        known = connection.sock in self._selector.get_map()
        if events and known:
            self._selector.modify(connection.sock, events, connection)
        elif events:
            self._selector.register(connection.sock, events, connection)
        elif known:
            self._selector.unregister(connection.sock)

    def _refuse(self, connection: _Connection, err: errors.RequestError) -> None:
        """Answer that the input makes no sense, then hang up."""
        connection.queue.clear()
        self._send(connection, None, calls.encode_error(err), True)

    def _start_next(self, connection: _Connection) -> None:
        """Start work on the next message if none is in work."""
        if connection.busy is not None or connection.closing or not connection.queue:
            return
        message = connection.queue.popleft()
        reply = connection.busy = Reply(
            partial(self._send, connection), partial(self._detach, connection)
        )
        self._note_deadline(reply)
        self._pool.submit(self._work, connection, message, reply)

    def _answer_quickly(self, connection: _Connection, data: bytes) -> bool:
        """Answer a small request here and now, if its client waits for nothing else.

        Then nobody else sends on this connection, so no lock is needed.
        """
        waits = connection.busy is not None or connection.out or connection.reader.partial
        answer = None if waits or connection.closing else self._quick.find(data)
        if answer is None:
            return False
        try:
            message = unix_socket.frame(calls.encode_result(answer()))
        except Exception:  # noqa: BLE001 - the handler meets it again, and reports it
            return False
        try:
            sent = connection.sock.send(message)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(connection)
            return True
        if sent < len(message):
            connection.out += message[sent:]
            connection.stalled_since = SYSTEM.monotonic()
            self._watch(connection, write=True)
        return True

    def _note_deadline(self, reply: Reply) -> None:
        self._deadlines.append((SYSTEM.monotonic() + self._timeout, reply))
        if len(self._deadlines) > 64 and len(self._deadlines) > 4 * len(self._connections):
            self._deadlines = deque(item for item in self._deadlines if item[1].is_open)

    def _flush(self, connection: _Connection) -> None:
        with connection.lock:
            try:
                while connection.out:
                    sent = connection.sock.send(connection.out)
                    del connection.out[:sent]
                    connection.stalled_since = SYSTEM.monotonic()
            except BlockingIOError:
                return
            except OSError:
                connection.out.clear()
                connection.closing = True
            connection.stalled_since = None
        if connection.closing:
            self._close(connection)
            return
        self._watch(connection, write=False)
        self._hang_up_if_answered(connection)

    def _close(self, connection: _Connection) -> None:
        if connection.closed:
            return
        connection.closed = True
        self._connections.discard(connection)
        if connection.sock in self._selector.get_map():
            self._selector.unregister(connection.sock)
        if connection.ended:
            with contextlib.suppress(FileNotFoundError):  # it had its answers when it ended
                self._leaving.unregister(connection.sock)
        with connection.lock:
            connection.sock.close()
        if connection.busy is not None:
            connection.busy.abandon()

    # pool threads ------------------------------------------------------------------------

    def _work(self, connection: _Connection, message: bytes, reply: Reply) -> None:
        def answer() -> None:
            name, args = calls.decode_request(message)
            self._handler(name, calls.bind(calls.find(name), args), connection.peer, reply)

        reply.run(answer)

    def _send(self, connection: _Connection, reply: Reply | None, data: bytes, close: bool) -> None:
        """Send an answer at once as far as possible; the I/O thread does the rest."""
        try:
            message = memoryview(unix_socket.frame(data))
        except errors.GanetiError as err:
            message = memoryview(unix_socket.frame(calls.encode_error(err)))
        with connection.lock:
            if connection.closed:
                return
            if not connection.out:
                try:
                    message = message[connection.sock.send(message) :]
                except BlockingIOError:
                    pass
                except OSError:
                    close, message = True, memoryview(b"")
            connection.out += message
            rest = bool(connection.out)
            connection.closing = connection.closing or close
            if rest and connection.stalled_since is None:
                connection.stalled_since = SYSTEM.monotonic()
        if threading.current_thread() is self._thread:
            self._note_sent(connection, reply, rest)
        else:
            self._post(lambda: self._note_sent(connection, reply, rest))

    def _detach(
        self, connection: _Connection, _reply: Reply, keeper: Callable[[socket.socket, bytes], None]
    ) -> None:
        """Give a connection to somebody else, who sends the answer and what follows."""
        answer = unix_socket.frame(calls.encode_result(None))

        def hand_over() -> None:
            if connection.closed or connection.ended or connection.out or connection.queue:
                self._close(connection)  # a client of this method sends nothing more by itself
                return
            connection.closed = True
            self._connections.discard(connection)
            self._selector.unregister(connection.sock)
            keeper(connection.sock, answer)

        self._post(hand_over)

    def _note_sent(self, connection: _Connection, reply: Reply | None, rest: bool) -> None:
        """In the I/O thread: an answer is on its way, go on with the connection."""
        if connection.closed:
            return
        if reply is not None and connection.busy is reply:
            connection.busy = None
        if rest:
            self._watch(connection, write=True)
        elif connection.closing:
            self._close(connection)
            return
        self._start_next(connection)
        self._hang_up_if_answered(connection)

"""The server's end of a WebSocket (RFC 6455); the only module that imports wsproto."""

from __future__ import annotations

from collections.abc import Mapping

from wsproto import ConnectionType, WSConnection, events
from wsproto.utilities import ProtocolError

from ganeti.net.http_detached import Detached
from ganeti.rapi import failures

#: The subprotocol that is spoken if the client offers it; it changes nothing.
SUBPROTOCOL = "binary"
_HEADERS = (
    "Host",
    "Connection",
    "Upgrade",
    "Sec-WebSocket-Key",
    "Sec-WebSocket-Version",
    "Sec-WebSocket-Protocol",
)
_PIECE = 16 * 1024
#: Close codes of the standard.
NORMAL, GOING_AWAY, NOT_UNDERSTOOD, UNSUPPORTED = range(1000, 1004)
#: Bytes of the reason in a close frame.
_REASON = 120


class Upgrade:
    """A request that becomes a WebSocket, and the answer to it."""

    def __init__(self, environ: Mapping[str, object]) -> None:
        """From a WSGI environment.

        Raises:
            Refused: 400, the request is not a proper upgrade.
        """
        found = [(name, environ.get(_variable(name))) for name in _HEADERS]
        headers = [(name.encode(), str(text).encode("latin-1")) for name, text in found if text]
        self.connection = WSConnection(ConnectionType.SERVER)
        try:
            self.connection.initiate_upgrade_connection(headers, "/")
            request = next(iter(self.connection.events()), None)
            if not isinstance(request, events.Request):
                raise failures.make_bad_request("A console is opened as a WebSocket")
            spoken = SUBPROTOCOL if SUBPROTOCOL in request.subprotocols else None
            self.answer = self.connection.send(events.AcceptConnection(subprotocol=spoken))
        except ProtocolError as err:
            raise failures.make_bad_request(f"A console is opened as a WebSocket: {err}") from err


def _variable(header: str) -> str:
    return f"HTTP_{header.upper().replace('-', '_')}"


class WebSocket:
    """An open WebSocket that carries bytes; never waits."""

    def __init__(self, connection: Detached, upgrade: Upgrade) -> None:
        self._connection = connection
        self._ws = upgrade.connection
        self._out = bytearray(upgrade.answer)
        #: whether nothing comes or goes any more once :attr:`waiting` is 0
        self.ended = False

    def fileno(self) -> int:
        return self._connection.fileno()

    @property
    def waiting(self) -> int:
        """Bytes that the client has not taken yet."""
        return len(self._out)

    def receive(self) -> bytes | None:
        """Bytes of the client, None for nothing yet; see :attr:`ended`. OSError."""
        while not self.ended:
            data = self._connection.try_recv(_PIECE)
            if data is None:
                return None
            if not data:
                self.ended = True
                self._out.clear()
                return None
            found = self._take(data)
            if found:
                return found
        return None

    def _take(self, data: bytes) -> bytes:
        found = bytearray()
        try:
            self._ws.receive_data(data)
            for event in self._ws.events():
                if isinstance(event, events.BytesMessage):
                    found += event.data
                elif isinstance(event, events.Ping):
                    self._out += self._ws.send(event.response())
                elif isinstance(event, events.CloseConnection):
                    self._out += self._ws.send(event.response())
                    self.ended = True
                    break
                elif isinstance(event, events.TextMessage):
                    self.finish(UNSUPPORTED, "only binary frames")
                    break
        except ProtocolError:
            self.finish(NOT_UNDERSTOOD, "not a frame of a WebSocket")
        return bytes(found)

    def send(self, data: bytes) -> None:
        """Send one frame in the background: :meth:`flush` sends what goes without waiting."""
        if not self.ended:
            self._out += self._ws.send(events.BytesMessage(data=data))

    def flush(self) -> None:
        """Send what the client takes now. OSError when it is gone."""
        while self._out:
            sent = self._connection.send(self._out)
            if not sent:
                return
            del self._out[:sent]

    def finish(self, code: int, reason: str) -> None:
        """Say why it ends; nothing else is sent after it. Idempotent."""
        if self.ended:
            return
        short = reason.encode()[:_REASON].decode("utf-8", "ignore")
        try:
            self._out += self._ws.send(events.CloseConnection(code=code, reason=short))
        except ProtocolError:
            self._out.clear()  # it was closing already
        self.ended = True

    def close(self) -> None:
        self.ended = True
        self._connection.close()

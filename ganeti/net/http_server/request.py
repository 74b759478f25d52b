"""One request: what is refused before the application runs, and what it learns of the caller."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from wsgiref.types import WSGIEnvironment

from cheroot import wsgi
from cheroot.errors import MaxSizeExceeded
from cheroot.server import HTTPRequest, KnownLengthRFile

from ganeti.net.http_body import Body
from ganeti.net.http_detached import Keeper
from ganeti.net.tls.certificate import Peer

#: JSON text for a status and a sentence, when the server itself refuses a request.
RefusalBody = Callable[[int, str], bytes]
#: Lines of a request head.
MAX_HEAD_LINES = 200


class Request(HTTPRequest):
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


class Gateway(wsgi.Gateway_10):
    """Tells the application who is calling: ``ganeti.peer_digest`` and ``ganeti.peer_cn``."""

    def get_environ(self) -> WSGIEnvironment:  # type: ignore[override]
        environ: WSGIEnvironment = super().get_environ()  # type: ignore[no-untyped-call]
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

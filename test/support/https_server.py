"""A small server over real TLS in this process, and what it was asked."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ganeti.net import certs


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    #: names in small letters
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    status: int = 204
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Server:
    url: str
    #: certificate that verifies it, PEM
    authority: str
    requests: list[Request] = field(default_factory=list)


@contextlib.contextmanager
def serve(
    directory: Path, answer: Callable[[Request], Reply] = lambda _r: Reply()
) -> Iterator[Server]:
    """Serve ``https://localhost:PORT`` until the end of the block."""
    credential = certs.self_signed("localhost", ["127.0.0.1"])
    file = directory / "https-server.pem"
    certs.write(file, credential)

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, self.rfile.read(length))
            made.requests.append(request)
            reply = answer(request)
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = _do  # noqa: N815 - names of the library

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = False

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that does not trust us ends the handshake."""

    server = Quiet(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made = Server(f"https://localhost:{server.server_address[1]}", credential.cert.decode())
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

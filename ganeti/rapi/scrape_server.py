"""A port of its own for scrapes by client certificate: ``/metrics``, and nothing else.

The port of the remote API asks for no certificate, as browsers would then ask people for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from ganeti import errors
from ganeti.net.http_server.server import HttpServer
from ganeti.net.tls.contexts import ReloadableContext
from ganeti.rapi import compression, failures
from ganeti.rapi.scrapes import TEXT, Desk

#: Scrapes at the same time, and connections.
THREADS, MOST_CONNECTIONS = 2, 64
#: Seconds for a handshake, for a request, and for an answer.
_HANDSHAKE, _REQUEST, _ANSWER = 10.0, 10.0, 60.0
#: Seconds that running scrapes get at the end.
_STOP_WAIT = 2.0


def make_app(desk: Desk, names: Sequence[str]) -> WSGIApplication:
    """Answers clients whose certificate has one of these common names; without names all."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        environ["wsgi.input"].read()
        name = environ.get("ganeti.peer_cn")
        if environ.get("PATH_INFO") != "/metrics" or environ.get("REQUEST_METHOD") != "GET":
            return _refuse(HTTPStatus.NOT_FOUND, "Here is only GET /metrics", start)
        if names and name not in names:
            text = f"The certificate of {name!r:.80} may not scrape (--scrape-names)"
            return _refuse(HTTPStatus.FORBIDDEN, text, start)
        try:
            found = desk.text()
        except errors.GanetiError as err:
            return _refuse(failures.status_of(err), errors.text(err), start)
        packed = compression.accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING"))
        data = found.packed if packed else found.plain
        headers = [("Content-Type", TEXT), ("Content-Length", str(len(data)))]
        start("200 OK", [*headers, *([("Content-Encoding", "gzip")] if packed else [])])
        return [data]

    return answer


def _refuse(status: int, text: str, start: StartResponse) -> list[bytes]:
    data = failures.body(status, text)
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
    start(f"{int(status)} {HTTPStatus(status).phrase}", headers)
    return [data]


@contextmanager
def serve(
    address: tuple[str, int], tls: ReloadableContext, desk: Desk, names: Sequence[str]
) -> Iterator[None]:
    """Serve until the end of the block; ``tls`` must demand certificates of clients."""
    server = HttpServer(
        address,
        make_app(desk, names),
        tls,
        threads=THREADS,
        max_body=1024,
        request_timeout=_REQUEST,
        handshake_timeout=_HANDSHAKE,
        request_limit=_ANSWER,
        max_connections=MOST_CONNECTIONS,
        name="scrapes",
        refusal_body=failures.body,
    )
    server.start()
    try:
        yield
    finally:
        server.stop(_STOP_WAIT)

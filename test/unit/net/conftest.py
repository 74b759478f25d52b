"""Certificates, servers for the tests of ganeti.net."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from wsgiref.types import WSGIApplication

import pytest

from ganeti.net import certs, pem
from ganeti.net.http_client import Client
from ganeti.net.http_server.server import HttpServer
from ganeti.net.tls.contexts import Identity, ReloadableContext
from ganeti.net.tls.stream import TLSSocket


@dataclass(frozen=True)
class Pki:
    """A cluster authority and a foreign one, with files for servers and clients."""

    directory: Path
    authority: certs.Credential

    def path(self, name: str) -> Path:
        return self.directory / name

    def identity(self, cert: str | None = "server.pem", ca: str = "ca.pem") -> Identity:
        return Identity(None if cert is None else self.path(cert), self.path(ca))

    def server(self, cert: str = "server.pem", ca: str = "ca.pem") -> ReloadableContext:
        return self.identity(cert, ca).server_context()

    def client(self, cert: str | None = "client.pem", ca: str = "ca.pem") -> ReloadableContext:
        return self.identity(cert, ca).client_context()

    def digest(self, name: str) -> str:
        return pem.digest_of_file(self.path(name))


def _expired(ca: certs.Credential) -> certs.Credential:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certs, "BACKDATED_SECONDS", 3 * 86400)
        return certs.issue_client(ca, "node3.example.com", days=-1)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    directory = tmp_path_factory.mktemp("pki")
    ca, foreign = certs.create_ca("Cluster CA"), certs.create_ca("Foreign CA")
    certs.write_authority(ca, directory / "ca.key", directory / "ca.pem")
    certs.write_authority(foreign, directory / "foreign-ca.key", directory / "foreign-ca.pem")
    (directory / "both-ca.pem").write_bytes(foreign.cert + ca.cert)
    made = {
        "server.pem": certs.issue_server(ca, "node1.example.com", ["127.0.0.1"]),
        "client.pem": certs.issue_client(ca, "node2.example.com", ["127.0.0.1"]),
        "foreign-server.pem": certs.issue_server(foreign, "node1.example.com"),
        "foreign-client.pem": certs.issue_client(foreign, "node2.example.com"),
        "expired-client.pem": _expired(ca),
        "rsa-server.pem": certs.issue_server(ca, "node4", key_type=certs.KeyType.RSA),
        "alone.pem": certs.self_signed("rapi.example.com", ["127.0.0.1"]),
    }
    for name, credential in made.items():
        certs.write(directory / name, credential)
    return Pki(directory, ca)


@pytest.fixture
def serve(pki: Pki) -> Iterator[Callable[..., HttpServer]]:
    """Start servers (with TLS unless told otherwise) that are stopped after the test."""
    started = []

    def start(app: WSGIApplication, tls: Any = "default", **options: Any) -> HttpServer:
        context = pki.server() if tls == "default" else tls
        server = HttpServer(("127.0.0.1", 0), app, context, **options)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop(1.0)


@pytest.fixture
def client(pki: Pki) -> Iterator[Client]:
    with Client(pki.client()) as one:
        yield one


@pytest.fixture
def dial(pki: Pki) -> Iterator[Callable[..., TLSSocket]]:
    """Open TLS connections by hand, closed after the test."""
    opened = []

    def connect(port: int, context: ReloadableContext | None = None) -> TLSSocket:
        raw = socket.create_connection(("127.0.0.1", port), 5)
        sock = TLSSocket(raw, context or pki.client(), server_side=False)
        opened.append(sock)
        sock.settimeout(5)
        sock.handshake()
        return sock

    yield connect
    for sock in opened:
        sock.close()

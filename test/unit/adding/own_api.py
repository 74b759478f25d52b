"""The remote API over TLS and LUXI before a master that records jobs, for a package of a test.

It is imported by a program that :meth:`OwnPackage.run` runs, and lies below its root directory.
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from recording_master import RecordingMaster

from ganeti.net import certs
from ganeti.net.http_server.server import HttpServer
from ganeti.net.tls import contexts
from ganeti.rapi.app import make_app
from ganeti.rapi.client import GanetiApiError, GanetiRapiClient
from ganeti.rapi.identity import ANONYMOUS, Identity
from ganeti.rapi.luxi_connections import Clients

USERS = {
    name: Identity(name, frozenset(permissions))
    for name, permissions in (("anna", ["write"]), ("reader", ["read"]), ("nobody", []))
}


class OwnApi:
    """Who names one of ``USERS`` is that one; the password does not matter."""

    def __init__(self) -> None:
        self.master = RecordingMaster(Path(os.environ["GANETI_ROOTDIR"]))
        where = self.master.where
        authority = certs.create_ca("remote API")
        certs.write_authority(authority, where.ca_key, where.ca_cert)
        certs.write(where.server_cert, certs.issue_server(authority, "localhost", ["127.0.0.1"]))
        identity = contexts.Identity(where.server_cert, where.ca_cert)
        self._luxi = Clients(where.luxi_socket)
        app = make_app(luxi=self._luxi, authenticate=_identify)
        self._server = HttpServer(
            ("127.0.0.1", 0),
            app,
            identity.server_context(require_client=False),
            threads=2,
            name="rapi",
        )
        self._port = self._server.start()

    def client(self, user: str | None) -> GanetiRapiClient:
        """The client of a user, or of somebody who does not say who it is."""
        password = None if user is None else "any"
        ca_file = self.master.where.ca_cert
        return GanetiRapiClient(
            "127.0.0.1", self._port, user, password, ca_file=ca_file, verify_hostname=False
        )

    def ask(self, user: str | None, request: str, body: object = None, **query: object) -> object:
        """The answer to a request, or its status and what is wrong."""
        method, path = request.split()
        arguments = [(name.replace("_", "-"), value) for name, value in query.items()]
        with self.client(user) as client:
            try:
                return client._link.request(method, path, arguments, body)
            except GanetiApiError as err:
                return str(err)

    def stop(self) -> None:
        self._server.stop()
        self._luxi.close()
        self.master.stop()


def _identify(header: str | None, _address: str) -> Identity:
    if header is None:
        return ANONYMOUS
    return USERS[base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")[0]]

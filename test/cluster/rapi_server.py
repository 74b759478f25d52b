"""The remote API in front of a running cluster, and a client that hides nothing."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local_cluster import Cluster

from ganeti.net.http_server import HttpServer
from ganeti.rapi import app
from ganeti.rapi.clients import Clients
from ganeti.rapi.identity import Identity

ALICE = Identity("alice", frozenset({"write"}))
NOBODY = Identity("", frozenset())
READER = Identity("reader", frozenset({"read"}))
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Answer:
    """What came back; ``value`` is the JSON value of the body, None without one."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """Message of the documented error body, which is checked."""
        value = self.value
        assert set(value) == {"code", "message", "explain"}
        assert value["code"] == self.status
        assert self.headers["content-type"] == "application/json"
        assert "Traceback" not in value["message"]
        return str(value["message"])


def who(header: str | None, _address: str) -> Identity:
    """The user of a test is named in the header, as there are no passwords here."""
    return {None: ALICE, "reader": READER, "nobody": NOBODY}.get(header, ALICE)


class Api:
    """Serves one cluster in this process, on a free port."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._clients = Clients(cluster.paths().luxi_socket)
        made = app.make_app(luxi=self._clients, authenticate=who)
        self.server = HttpServer(("127.0.0.1", 0), made, threads=8, max_body=10 * 1024 * 1024)
        self.port = self.server.start()

    def stop(self) -> None:
        self.server.stop()
        self._clients.close()

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        """A request exactly as given."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            link.request(method, path, body, dict(headers))
            found = link.getresponse()
            names = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, names, found.read())
        finally:
            link.close()

    def ask(self, request: str, value: Any = None, **headers: str) -> Answer:
        """``ask("PUT /2/tags?tag=a", {...}, If_Match="...")``; a value is sent as JSON."""
        method, _, path = request.partition(" ")
        more = {name.replace("_", "-"): text for name, text in headers.items()}
        if value is None:
            return self.send(method, path, None, more)
        return self.send(method, path, json.dumps(value).encode(), {**JSON, **more})

    def get(self, path: str, **headers: str) -> Any:
        """The value of a GET that must succeed."""
        answer = self.ask(f"GET {path}", **headers)
        assert answer.status == 200, answer.body
        return answer.value

    def raw(self, data: bytes, timeout: float = 10) -> bytes:
        """Bytes to the server, and everything it sends until it hangs up or ``timeout``."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as sock:
            sock.sendall(data)
            found = b""
            while piece := sock.recv(65536):
                found += piece
            return found

    def wait(self, job: int) -> dict[str, Any]:
        """The job when it has ended."""
        assert isinstance(job, int)
        self.cluster.gnt("job watch", str(job))
        found: dict[str, Any] = self.get(f"/2/jobs/{job}")
        assert found["status"] in ("success", "error", "canceled")
        return found

    def done(self, request: str, value: Any = None, **headers: str) -> dict[str, Any]:
        """Submit a job and wait until it has succeeded."""
        answer = self.ask(request, value, **headers)
        assert answer.status == 200, answer.body
        job = self.wait(answer.value)
        assert job["status"] == "success", job["opresult"]
        return job



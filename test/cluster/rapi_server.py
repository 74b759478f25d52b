"""The remote API of a running cluster, and a client that hides nothing."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from local_cluster import Cluster
from waiting import wait_for

JSON = {"Content-Type": "application/json"}
USERS = {"alice": "write", "reader": "read", "nobody": ""}
PASSWORD = "open-sesame"


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
        """What was wrong, from the documented error body, which is checked."""
        value = self.value
        assert set(value) == {"code", "message", "explain"}
        assert value["code"] == self.status
        assert self.headers["content-type"] == "application/json"
        assert "Traceback" not in self.body.decode()
        is_phrase = value["message"] == HTTPStatus(self.status).phrase
        return str(value["explain" if is_phrase else "message"])


def basic(user: str) -> str:
    """The Authorization header of a user."""
    return "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()


class Api:
    """The remote API that a cluster serves; requests come from ``alice`` if nobody else is said."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        facts = json.loads((cluster.directory / "local-cluster.json").read_text())
        self.address = str(facts["nodes"]["node1.example.com"])
        self.port = int(facts["port_base"]) + 1
        self.ca = cluster.directory / "rapi-ca.pem"
        self._tls = ssl.create_default_context(cafile=str(self.ca))
        self._tls.check_hostname = False
        with cluster.paths().rapi_users.open("a") as users:
            for name, options in USERS.items():
                users.write(f"{name} {{CLEARTEXT}}{PASSWORD} {options}\n")
        wait_for(lambda: self.ask("GET /version").status == 200, "users are read again")

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}"

    def dial(self) -> ssl.SSLSocket:
        """A TLS connection without any request yet."""
        plain = socket.create_connection((self.address, self.port), 30)
        return self._tls.wrap_socket(plain)

    def connection(self) -> http.client.HTTPSConnection:
        """A connection for several requests, to be closed by the caller."""
        return http.client.HTTPSConnection(self.address, self.port, timeout=30, context=self._tls)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        """A request exactly as given; a header with an empty text is left out."""
        link = self.connection()
        sent = {"Authorization": basic("alice"), **headers}
        try:
            link.request(method, path, body, {name: text for name, text in sent.items() if text})
            found = link.getresponse()
            names = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, names, found.read())
        finally:
            link.close()

    def ask(self, request: str, value: Any = None, **headers: str) -> Answer:
        """``ask("PUT /2/tags?tag=a", {...}, If_Match="...")``; a value is sent as JSON."""
        method, _, path = request.partition(" ")
        more = {name.replace("_", "-"): text for name, text in headers.items()}
        if more.get("Authorization") in USERS:
            more["Authorization"] = basic(more["Authorization"])
        if value is None:
            return self.send(method, path, None, more)
        return self.send(method, path, json.dumps(value).encode(), {**JSON, **more})

    def get(self, path: str, **headers: str) -> Any:
        """The value of a GET that must succeed."""
        answer = self.ask(f"GET {path}", **headers)
        assert answer.status == 200, answer.body
        return answer.value

    def send_raw(self, data: bytes) -> bytes:
        """Bytes to the server, and everything it sends until it hangs up."""
        with self.dial() as sock:
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

    def run_job(self, request: str, value: Any = None, **headers: str) -> dict[str, Any]:
        """Submit a job and wait until it has succeeded."""
        answer = self.ask(request, value, **headers)
        assert answer.status == 200, answer.body
        job = self.wait(answer.value)
        assert job["status"] == "success", job["opresult"]
        return job

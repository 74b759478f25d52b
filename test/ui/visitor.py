"""A page without a browser: a session of the remote API, its event stream, its consoles."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

from conftest import Local
from web_socket import WebSocketClient

_JSON = {"Content-Type": "application/json"}


class Visitor:
    """Logs in, and asks what a page asks."""

    def __init__(self, local_cluster: Local, **proof: str) -> None:
        """``proof`` is the user and the password; those of the cluster's user without it."""
        parts = urlsplit(local_cluster.env["RAPI_URL"])
        self._place = (str(parts.hostname), int(parts.port or 443))
        self._tls = ssl.create_default_context(cafile=local_cluster.env["RAPI_CA"])
        self._tls.check_hostname = False
        self._headers = dict(_JSON)
        self._kept = self._connect()
        mine = {
            "user": local_cluster.env["RAPI_USER"],
            "password": local_cluster.env["RAPI_PASSWORD"],
        }
        self._kept.request("POST", "/2/sessions", json.dumps(proof or mine), self._headers)
        answer = self._kept.getresponse()
        cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]
        csrf = json.loads(answer.read())["csrf"]
        self._headers |= {"Cookie": cookie, "X-Ganeti-CSRF": csrf}

    def _connect(self) -> http.client.HTTPSConnection:
        made = http.client.HTTPSConnection(*self._place, timeout=60, context=self._tls)
        made.connect()
        return made

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_error: object) -> None:
        self._kept.close()

    def try_ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and value of an answer."""
        data = None if body is None else json.dumps(body)
        self._kept.request(method, path, data, self._headers)
        answer = self._kept.getresponse()
        return answer.status, json.loads(answer.read())

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The value of an answer, which must be good."""
        status, value = self.try_ask(method, path, body)
        assert status == 200, value
        return value

    def scrape(self) -> bytes:
        """The metrics, compressed, as Prometheus asks for them."""
        self._kept.request("GET", "/metrics", headers={**self._headers, "Accept-Encoding": "gzip"})
        answer = self._kept.getresponse()
        assert answer.status == 200
        return answer.read()

    def await_job(self, number: int) -> str:
        """The status of a job when it has ended."""
        while True:
            status = self.ask("GET", f"/2/jobs/{number}/wait?timeout=60")["status"]
            if status in ("success", "error", "canceled"):
                return str(status)

    def follow(self) -> ssl.SSLSocket:
        """The stream of events, as its socket."""
        connection = self._connect()
        connection.request("GET", "/2/events", headers=self._headers)
        return connection.sock  # type: ignore[return-value]

    def open_console(self, instance: str, mode: str) -> WebSocketClient:
        """The serial console of an instance."""
        body = {"kind": "serial", "mode": mode}
        ticket = self.ask("POST", f"/2/instances/{instance}/console-ticket", body)
        headers = {"Cookie": self._headers["Cookie"]}
        host = f"{self._place[0]}:{self._place[1]}"
        return WebSocketClient(self._connect().sock, ticket["url"], headers, host)

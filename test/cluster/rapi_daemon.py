"""The daemon ganeti-rapi of a local cluster, asked over TLS from any loopback address."""

from __future__ import annotations

import base64
import http.client
import json
import os
import shlex
import socket
import ssl
import subprocess
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from local_cluster import Cluster, Ran, tool

from ganeti import constants
from ganeti.rapi.client import GanetiRapiClient


@dataclass(frozen=True)
class Got:
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


class RapiDaemon:
    """The remote API of a cluster and what its environment says of it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.env = dict(
            shlex.split(line)[1].split("=", 1)
            for line in tool("env", cluster.directory).out.splitlines()
            if line.startswith("export RAPI_")
        )
        parts = urlsplit(self.env["RAPI_URL"])
        assert parts.hostname is not None
        assert parts.port is not None
        self.host, self.port = parts.hostname, parts.port
        self.user, self.password = self.env["RAPI_USER"], self.env["RAPI_PASSWORD"]
        self.paths = cluster.paths()
        self._addresses = count(2)

    def fresh_address(self) -> str:
        """A loopback address that nobody has called from before."""
        number = next(self._addresses)
        return f"127.200.{number // 250}.{number % 250 + 1}"

    def tls(self, **changes: Any) -> ssl.SSLContext:
        """What a careful client has."""
        context = ssl.create_default_context(cafile=self.env["RAPI_CA"])
        for name, value in changes.items():
            setattr(context, name, value)
        return context

    def dial(self, source: str | None = None, **changes: Any) -> ssl.SSLSocket:
        """A connection after its handshake."""
        raw = socket.create_connection(
            (self.host, self.port), 10, None if source is None else (source, 0)
        )
        try:
            return self.tls(**changes).wrap_socket(raw, server_hostname=self.host)
        except BaseException:
            raw.close()
            raise

    def ask(
        self,
        method: str,
        path: str,
        who: str | tuple[str, str] | None = None,
        *,
        body: Any = None,
        source: str | None = None,
        read: bool = True,
        **headers: str,
    ) -> Got:
        """One request; ``who`` is a token, a user with a password, or None for nobody."""
        connection = http.client.HTTPSConnection(
            self.host,
            self.port,
            timeout=30,
            context=self.tls(),
            source_address=None if source is None else (source, 0),
        )
        if who is not None:
            headers["Authorization"] = basic(*who) if isinstance(who, tuple) else f"Bearer {who}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            data = answer.read() if read else b""
            return Got(answer.status, {k.lower(): v for k, v in answer.getheaders()}, data)
        finally:
            connection.close()

    def admin(self, method: str, path: str, **more: Any) -> Got:
        return self.ask(method, path, (self.user, self.password), **more)

    def client(self, **more: Any) -> GanetiRapiClient:
        """The client of the package; the administrator's if nobody else is named."""
        if "token" not in more:
            more = {"username": self.user, "password": self.password, **more}
        return GanetiRapiClient(self.host, self.port, ca_file=self.env["RAPI_CA"], **more)

    def gnt(self, line: str, stdin: str = "") -> Ran:
        """Run gnt-rapi with something to read."""
        result = subprocess.run(
            self.cluster.argv(*line.split()),
            env=self.cluster.env(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return Ran(result.returncode, result.stdout, result.stderr)

    def log(self, name: str = "rapi-daemon.log") -> str:
        return (self.paths.log / name).read_text()

    def pid(self) -> int:
        pid = self.cluster.pid(constants.RAPI)
        assert pid is not None
        return pid

    def start(self, *options: str) -> Ran:
        """Start the daemon again."""
        return self.cluster.start_daemon(constants.RAPI, "node1", *options)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))

"""What attacks have in common: a cluster, others who must be served, and bad connections."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_cluster import Cluster
from rapi_daemon import Got, RapiDaemon, descriptors
from waiting import wait_for

from ganeti import constants
from ganeti.luxi.client import Client
from ganeti.net.unix_socket import FramedClient

#: Seconds that another client may wait during an attack; idle machines need some milliseconds.
PATIENCE = 10.0
WEB1, WEB2 = "web1.example.com", "web2.example.com"

Dial = Callable[[], socket.socket]


class Arena:
    """A running cluster and those who use it honestly."""

    def __init__(self, directory: Path) -> None:
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
        self.cluster = Cluster(directory, 3)
        self.rapi = RapiDaemon(self.cluster)
        for name, node in ((WEB1, "node2"), (WEB2, "node3")):
            added = self.cluster.add(name, node=node)
            assert added.code == 0, added.err
        facts = json.loads((directory / "local-cluster.json").read_text())
        self._addresses = facts["nodes"]
        self._port = int(facts["port_base"])

    def noded(self, node: str = "node1") -> tuple[str, int]:
        """Where a node daemon listens."""
        return str(self._addresses[f"{node}.example.com"]), self._port

    def luxi(self, **more: Any) -> Client:
        return Client(self.cluster.paths().luxi_socket, **more)

    def raw_luxi(self, request: bytes, timeout: float = 30.0) -> dict[str, Any]:
        """The answer to the bytes of one request."""
        with FramedClient(self.cluster.paths().luxi_socket, io_timeout=timeout) as link:
            found = json.loads(link.call(request))
        assert isinstance(found, dict)
        return found

    def ask(self, method: str, path: str, who: Any = None, **more: Any) -> Got:
        """One request to the remote API from an address that nobody has called from."""
        return self.rapi.ask(method, path, who, source=self.rapi.fresh_address(), **more)

    def pids(self) -> dict[str, int]:
        found = {
            name: self.cluster.pid(name)
            for name in (constants.MASTERD, constants.NODED, constants.RAPI)
        }
        assert None not in found.values(), found
        return {name: pid for name, pid in found.items() if pid is not None}

    def check(self) -> None:
        """Everybody else is served in time by each daemon."""
        begun = time.monotonic()
        with self.luxi() as client:
            assert client.query_cluster_info()["name"]
            assert None not in [free for (free,) in client.query_nodes([], ["mfree"])]
        assert self.ask("GET", "/version").value == 2
        took = time.monotonic() - begun
        assert took < PATIENCE, f"others waited {took:.1f} s"

    @contextmanager
    def check_served(self) -> Iterator[None]:
        """During and after the attack others are served; no daemon died, leaks or stumbled."""
        pids = self.pids()
        before = {name: descriptors(pid) for name, pid in pids.items()}
        said = self.tracebacks()
        yield
        self.check()
        assert self.pids() == pids
        for name, pid in pids.items():
            wait_for(
                lambda name=name, pid=pid: descriptors(pid) <= before[name] + 20,
                f"{name} gives its descriptors back",
                timeout=60,
            )
        assert self.tracebacks() == said, "a daemon logged a traceback"

    def tracebacks(self) -> int:
        """How many are in the logs of all nodes."""
        logs = self.cluster.directory.glob("node*/var/log/ganeti/**/*.log")
        return sum(log.read_text(errors="replace").count("Traceback") for log in logs)

    def call(
        self, name: str, arguments: Any, pem: Path | None, node: str = "node1", **headers: str
    ) -> tuple[int, bytes]:
        """A node call with the certificate of a file; status (0: no answer at all) and body."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if pem is not None:
            context.load_cert_chain(pem)
        host, port = self.noded(node)
        link = http.client.HTTPSConnection(host, port, timeout=20, context=context)
        try:
            link.request("POST", f"/{name}", json.dumps(arguments), headers)
            answer = link.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            link.close()

    def token(self, *words: str) -> str:
        """A new token of the remote API, once the daemon knows it."""
        found = self.rapi.gnt(" ".join(("gnt-rapi token add", *words))).out.strip()
        wait_for(lambda: self.ask("GET", "/version", found).status == 200, "the token is known")
        return found

    def job(self, number: int | str) -> str:
        """Status of a job."""
        return self.cluster.cells("job list -o status", str(number))[0][0]

    def restart(self) -> None:
        """Start the master daemon; returns when it has read its queue, too."""
        started = self.cluster.start_master()
        assert started.code == 0, started.err
        with self.luxi() as client:
            client.query_jobs(None, ["id"])  # kept until the queue is read


@contextmanager
def crowd(dial: Dial, count: int, *, say: bytes = b"") -> Iterator[list[socket.socket]]:
    """Many connections at once, each of which says something and no more."""
    found: list[socket.socket] = []
    try:
        for _ in range(count):
            # The daemon may refuse those that are too many.
            with contextlib.suppress(OSError):
                sock = dial()
                found.append(sock)
                sock.settimeout(5)
                sock.sendall(say)
        assert len(found) > count / 2, "the attack did not reach the daemon"
        yield found
    finally:
        for sock in found:
            sock.close()


def unix(path: Path) -> Dial:
    def dial() -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(os.fspath(path))  # waits for room in the line
        except BaseException:
            sock.close()
            raise
        return sock

    return dial


def tcp(address: tuple[str, int]) -> Dial:
    return lambda: socket.create_connection(address, 5)

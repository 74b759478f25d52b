#!/usr/bin/env python3
"""Benchmarks of the remote API: figures as JSON on standard output.

The daemons are real ones of a local cluster with synthetic instances (see ``bench_query``);
requests come over TLS with a password. ``kept`` is one connection for all requests, ``fresh`` a new
one for each, with a full handshake; ``resumed`` is a new one that continues with its TLS session.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bench_exporter
import bench_query
from bench_query import repeat
from measure import Cluster, Figures, say

READS = ("/version", "/2/info", "/2/instances", "/2/instances?bulk=1")


class Api:
    """The remote API of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        facts = json.loads((cluster.directory / "local-cluster.json").read_text())
        self._address = str(next(iter(facts["nodes"].values())))
        self._port = int(facts["port_base"]) + 1
        password = (cluster.directory / "rapi-password").read_text().strip()
        word = base64.b64encode(f"admin:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {word}", "Content-Type": "application/json"}
        self._ca = str(cluster.directory / "rapi-ca.pem")
        self._tls = self._context()
        self._kept = self._dial(self._tls)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca)
        context.check_hostname = False
        return context

    def _dial(self, context: ssl.SSLContext) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._address, self._port, timeout=60, context=context)

    def ask_again(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """A request over the connection that is kept; its value, None for 304."""
        data = self._ask(self._kept, method, path, body, headers)
        return json.loads(data) if data else None

    def size(self, path: str, **headers: str) -> int:
        return len(self._ask(self._kept, "GET", path, None, headers))

    def etag(self, path: str) -> str:
        self._kept.request("GET", path, None, self._headers)
        answer = self._kept.getresponse()
        answer.read()
        return str(answer.headers["ETag"])

    def get_bytes(self, path: str, **headers: str) -> None:
        """A GET over the kept connection whose answer is read but not understood."""
        self._ask(self._kept, "GET", path, None, headers)

    def ask_once(self, path: str) -> None:
        """A GET over a connection of its own."""
        link = self._dial(self._tls)
        try:
            self._ask(link, "GET", path, None, {})
        finally:
            link.close()

    def resuming(self, path: str) -> Callable[[], None]:
        """GETs over connections of their own that go on with the first one's TLS session."""
        first = self._tls.wrap_socket(socket.create_connection((self._address, self._port)))
        self._over(first, path)
        session = first.session
        first.close()

        def ask() -> None:
            plain = socket.create_connection((self._address, self._port))
            with self._tls.wrap_socket(plain, session=session) as sock:
                if not sock.session_reused:
                    raise SystemExit("the TLS session was not resumed")
                self._over(sock, path)

        return ask

    def _over(self, sock: ssl.SSLSocket, path: str) -> None:
        link = self._dial(self._tls)
        link.sock = sock
        self._ask(link, "GET", path, None, {})

    def _ask(
        self,
        link: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: Any,
        headers: dict[str, str],
    ) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        more = {name.replace("_", "-"): text for name, text in headers.items()}
        link.request(method, path, data, {**self._headers, **more})
        answer = link.getresponse()
        found = answer.read()
        if answer.status not in (200, 304):
            raise SystemExit(f"{method} {path}: {answer.status} {found!r}")
        return found

    def close(self) -> None:
        self._kept.close()


def measure_size(cluster: Cluster, count: int) -> Figures:
    """All figures for a number of instances."""
    bench_query.fill(cluster, count)
    api = Api(cluster)
    try:
        rows = api.ask_again("GET", "/2/instances?bulk=1")
        running = sum(row["status"] == "running" for row in rows)
        if (len(rows), running) != (count, count):
            raise SystemExit(f"{len(rows)} instances, {running} of them run, instead of {count}")
        bulk = "/2/instances?bulk=1"
        tag = api.etag(bulk)
        return {
            "bulk_kilobytes": round(api.size(bulk) / 1024),
            "kept": {path: repeat(lambda p=path: api.get_bytes(p)) for path in READS},
            "kept_not_modified": repeat(lambda: api.get_bytes(bulk, If_None_Match=tag)),
            "fresh": {path: repeat(lambda p=path: api.ask_once(p)) for path in READS},
            "resumed": {"/version": repeat(api.resuming("/version"))},
            "one_instance": repeat(lambda: api.get_bytes("/2/instances/web1.example.com")),
            "write_to_job_id": repeat(lambda: api.ask_again("PUT", "/2/tags?tag=a", {})),
            "write_to_success": repeat(lambda: write(api)),
        }
    finally:
        api.close()


def write(api: Api) -> None:
    """A change, from the request to the end of its job."""
    job = api.ask_again("PUT", "/2/tags?tag=bench", {})
    end = time.monotonic() + 30
    while time.monotonic() < end:
        status = api.ask_again("GET", f"/2/jobs/{job}/wait?timeout=20")["status"]
        if status == "success":
            return
        if status in ("error", "canceled"):
            break
    raise SystemExit(f"job {job} did not succeed")


def figures(cluster: Cluster, sizes: Sequence[int] = (200, 1000)) -> Figures:
    """Figures for each number of instances; the cluster has them afterwards."""
    bench_query.make_model(cluster)
    result: Figures = {}
    for count in sizes:
        say(f"remote API with {count} instances")
        result[f"{count}_instances"] = measure_size(cluster, count)
    api = Api(cluster)
    try:
        result["exporter"] = bench_exporter.figures(cluster, api.get_bytes)
    finally:
        api.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--instances", type=int, nargs="*", default=[200, 1000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ganeti-bench-") as temporary:
        cluster = Cluster(Path(temporary) / "rapi", options.nodes)
        try:
            found = figures(cluster, options.instances)
        finally:
            cluster.destroy()
    json.dump({"nodes": options.nodes, "load": os.getloadavg(), **found}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

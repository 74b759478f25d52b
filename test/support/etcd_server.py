"""Members of an etcd cluster (Debian's package ``etcd-server``) with TLS, for tests."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from waiting import wait_for

from ganeti.base import files
from ganeti.net import certs
from ganeti.net.etcd import Etcd
from ganeti.net.etcd_settings import read_settings

PROGRAM = shutil.which("etcd")
#: Seconds for a cluster to have a leader.
_START = 60.0

#: Puts the arguments of a command into a network namespace, or leaves them as they are.
Enter = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Place:
    """Where a member listens, and how its process gets there."""

    address: str
    client_port: int
    peer_port: int
    enter: Enter = list


def find_places(count: int) -> list[Place]:
    """Free ports on loopback."""
    with contextlib.ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2 * count)
        ]
        ports = [int(item.getsockname()[1]) for item in sockets]
    return [Place("127.0.0.1", ports[2 * n], ports[2 * n + 1]) for n in range(count)]


class Member:
    """One etcd process."""

    def __init__(self, directory: Path, number: int, place: Place) -> None:
        self.name = f"etcd{number}"
        self.place = place
        self.directory = directory / self.name
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"https://{self.place.address}:{self.place.client_port}"

    @property
    def peer_url(self) -> str:
        return f"https://{self.place.address}:{self.place.peer_port}"

    def start(self, cluster: str, tls: Path) -> None:
        if self._process is not None:
            return
        self.directory.mkdir(exist_ok=True)
        words = {
            "name": self.name,
            "data-dir": str(self.directory / "data"),
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": self.peer_url,
            "initial-advertise-peer-urls": self.peer_url,
            "initial-cluster": cluster,
            "trusted-ca-file": str(tls / "ca.pem"),
            "cert-file": str(tls / "server.pem"),
            "key-file": str(tls / "server.key"),
            "peer-trusted-ca-file": str(tls / "ca.pem"),
            "peer-cert-file": str(tls / "server.pem"),
            "peer-key-file": str(tls / "server.key"),
        }
        argv = [str(PROGRAM), "--client-cert-auth", "--peer-client-cert-auth"]
        argv += [f"--{name}={value}" for name, value in words.items()]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.place.enter(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False when it does not run."""
        if self._process is None:
            return False
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self._process.wait(30)
            self._process = None
        return True

    def read_log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")


class EtcdServers:
    """A cluster of members; ``settings`` is the file with which clients reach it."""

    def __init__(self, directory: Path, places: Sequence[Place]) -> None:
        directory.mkdir(exist_ok=True)
        self._tls = directory / "tls"
        self._tls.mkdir()
        self.members = [Member(directory, n, place) for n, place in enumerate(places, 1)]
        self._cluster = ",".join(f"{member.name}={member.peer_url}" for member in self.members)
        self._write_certificates([place.address for place in places])
        self.settings = directory / "settings"
        self.write_settings(self.settings)

    def _write_certificates(self, addresses: Sequence[str]) -> None:
        authority = certs.create_ca("etcd")
        server = certs.issue_server(authority, "etcd", sorted({*addresses, "127.0.0.1"}))
        client = certs.issue_client(authority, "ganeti")
        files.write_atomic(self._tls / "ca.pem", authority.cert)
        for name, pair in (("server", server), ("client", client)):
            files.write_atomic(self._tls / f"{name}.pem", pair.cert)
            files.write_atomic(self._tls / f"{name}.key", pair.key, mode=0o600)

    def write_settings(self, path: Path) -> None:
        urls = ",".join(member.url for member in self.members)
        path.write_text(
            f"ETCDCTL_ENDPOINTS={urls}\n"
            f"ETCDCTL_CACERT={self._tls}/ca.pem\n"
            f"ETCDCTL_CERT={self._tls}/client.pem\n"
            f"ETCDCTL_KEY={self._tls}/client.key\n"
        )

    def start(self, *, wait: bool = True) -> None:
        """Start the members that do not run."""
        for member in self.members:
            member.start(self._cluster, self._tls)
        if wait:
            wait_for(self._has_leader, self._explain, _START, pause=0.1)

    def _has_leader(self) -> bool:
        with Etcd(read_settings(self.settings)) as client:
            return all(health.has_leader for health in client.examine(1.0))

    def _explain(self) -> str:
        logs = [f"{member.name}:\n{member.read_log()[-3000:]}" for member in self.members]
        return "etcd has no leader\n" + "\n".join(logs)

    def stop(self) -> None:
        for member in self.members:
            with contextlib.suppress(ProcessLookupError):
                member.signal(signal.SIGKILL)


@contextlib.contextmanager
def serve(directory: Path, count: int = 1) -> Iterator[EtcdServers]:
    """Run members on loopback until the end of the block."""
    servers = EtcdServers(directory, find_places(count))
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()

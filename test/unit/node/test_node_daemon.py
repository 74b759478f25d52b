"""The node daemon as a real process, over real TLS."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from node_samples import INSTANCE, disk, empty_root, instance, renew_right

from ganeti import errors
from ganeti.base import jsonio, process, retry
from ganeti.base.daemon import read_pid
from ganeti.base.inotify import ANY_NAME
from ganeti.model.node import Node
from ganeti.net import certs, pem
from ganeti.net.http_client import Client
from ganeti.net.tls.contexts import Identity
from ganeti.net.tls.stream import TLSSocket
from ganeti.node import daemon as node_daemon
from ganeti.node.authorise import Authoriser
from ganeti.paths import Paths
from ganeti.rpc.calls import NodeCalls
from ganeti.rpc.client import NodeRpc

REPOSITORY = Path(__file__).parents[3]
NAME = "node1.example.com"
ADDRESS = "127.0.0.1"


@dataclass
class Daemon:
    """One node below a root of its own; started and stopped by the test."""

    paths: Paths
    authority: certs.Credential
    clients: list[Client] = field(default_factory=list)
    child: subprocess.Popen[str] | None = None

    def credential(self, name: str, authority: certs.Credential | None = None) -> Path:
        """A file with a new client certificate."""
        path = self.paths.root.parent / f"{name}.pem"
        certs.write(path, certs.issue_client(authority or self.authority, name))
        return path

    def authorise(self, *credentials: Path) -> None:
        lines = (f"uuid-{c.name}={pem.digest_of_file(c)}" for c in credentials)
        fresh = self.paths.root.parent / "fresh"
        fresh.write_text("\n".join(lines) + "\n")
        fresh.rename(self.paths.ssconf("master_candidates_certs"))

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-W", "error", "-m", "ganeti.node.daemon", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(REPOSITORY),
            "GANETI_ROOTDIR": str(self.paths.root),
            "GANETI_HOSTNAME": NAME,
        }

    def start(self, *arguments: str) -> None:
        """Run in the foreground on a free port and wait until it serves."""
        self.child = subprocess.Popen(
            self.command("-f", "-p", "0", *arguments),
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.child.stderr is not None
        seen = ""
        while " serves " not in seen:
            line = self.child.stderr.readline()
            assert line, f"the daemon did not start: {seen}"
            seen += line

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run with plain arguments until the command returns."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=20,
        )

    @property
    def log(self) -> str:
        return (self.paths.log / "node-daemon.log").read_text()

    @property
    def port(self) -> int:
        return int(re.findall(r" serves 127\.0\.0\.1:([0-9]+)", self.log)[-1])

    def client(self, credential: Path | None) -> Client:
        context = Identity(credential, self.paths.ca_cert).client_context()
        made = Client(context)
        self.clients.append(made)
        return made

    def call(self, client: Client, name: str, *args: Any, timeout: float = 20) -> tuple[int, Any]:
        """HTTP status and decoded answer."""
        answer = client.post(ADDRESS, self.port, f"/{name}", jsonio.dumps_bytes(args), timeout)
        return answer.status, jsonio.loads(answer.body) if answer.status == 200 else None

    def server_digest(self, credential: Path) -> str:
        context = Identity(credential, self.paths.ca_cert).client_context()
        raw = socket.create_connection((ADDRESS, self.port), 5)
        sock = TLSSocket(raw, context, server_side=False)
        try:
            sock.settimeout(5)
            sock.handshake()
            peer = sock.peer()
            return peer.digest if peer else ""
        finally:
            sock.close()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.child is not None
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(10)

    def clean(self) -> None:
        for client in self.clients:
            client.stop()
        if self.child is not None:
            if self.child.poll() is None:
                self.child.kill()
                self.child.wait()
            assert self.child.stderr is not None
            self.child.stderr.close()


def new_daemon(paths: Paths) -> Daemon:
    """What a daemon needs, which does not run yet."""
    authority = certs.create_ca("test cluster")
    certs.write_authority(authority, paths.ca_key, paths.ca_cert)
    certs.write(paths.server_cert, certs.issue_server(authority, NAME, [ADDRESS]))
    certs.write(paths.client_cert, certs.issue_client(authority, NAME))
    paths.hosts.write_text(f"{ADDRESS} {NAME}\n")
    return Daemon(paths, authority)


@pytest.fixture
def daemon(paths: Paths) -> Iterator[Daemon]:
    made = new_daemon(paths)
    yield made
    made.clean()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    made = new_daemon(empty_root(tmp_path_factory.mktemp("daemon")))
    made.authorise(made.credential("master"))
    made.start()
    yield made
    made.clean()


@pytest.fixture
def shared_daemon(running: Daemon) -> Iterator[Daemon]:
    """A daemon that runs, for tests that leave it as it is."""
    yield running
    while running.clients:
        running.clients.pop().stop()


@pytest.fixture
def caller(shared_daemon: Daemon) -> Client:
    """An authorised caller of the shared daemon."""
    return shared_daemon.client(shared_daemon.paths.root.parent / "master.pem")


@pytest.fixture
def master(daemon: Daemon) -> Client:
    """An authorised caller of a daemon that runs."""
    credential = daemon.credential("master")
    daemon.authorise(credential)
    daemon.start()
    return daemon.client(credential)


def becomes(true: Callable[[], bool]) -> bool:
    """Another process will do something, of which no event tells us."""
    return bool(retry.retry_until(lambda: true() or None, timeout=5))


# who may call


def test_a_master_candidate_is_answered(shared_daemon: Daemon, caller: Client) -> None:
    assert shared_daemon.call(caller, "version") == (200, [True, 3020000])
    assert shared_daemon.call(caller, "instance_list", ["fake"], {}) == (200, [True, []])
    status, (ok, error) = shared_daemon.call(caller, "master_node_name")
    assert (status, ok, error[0]) == (200, False, "ConfigurationError")
    assert shared_daemon.call(caller, "nosuch")[0] == 404
    assert caller.connects == 1


def test_a_certificate_that_is_not_listed_gets_403(shared_daemon: Daemon, caller: Client) -> None:
    stranger = shared_daemon.client(shared_daemon.credential("stranger"))
    assert shared_daemon.call(stranger, "version")[0] == 403
    own = shared_daemon.client(shared_daemon.paths.client_cert)
    assert shared_daemon.call(own, "version")[0] == 403


def test_without_a_certificate_of_the_cluster_nobody_gets_in(
    shared_daemon: Daemon, caller: Client
) -> None:
    other = certs.create_ca("test cluster")
    for client in (
        shared_daemon.client(None),
        shared_daemon.client(shared_daemon.credential("other", other)),
    ):
        with pytest.raises(errors.RpcError):
            shared_daemon.call(client, "version")
    assert shared_daemon.call(caller, "version")[0] == 200


def test_a_node_that_is_set_up_accepts_only_itself(daemon: Daemon) -> None:
    daemon.start()
    own = daemon.client(daemon.paths.client_cert)
    assert daemon.call(own, "version")[0] == 200
    assert daemon.call(daemon.client(daemon.credential("other")), "version")[0] == 403


def test_a_new_list_holds_for_the_next_call(daemon: Daemon, master: Client) -> None:
    new = daemon.credential("new")
    values = {"master_candidates_certs": f"uuid-new={pem.digest_of_file(new)}"}
    assert daemon.call(master, "write_ssconf_files", values) == (200, [True, None])
    assert daemon.call(master, "version")[0] == 403
    assert daemon.call(daemon.client(new), "version")[0] == 200


def test_a_list_that_somebody_else_replaced_is_seen(daemon: Daemon, master: Client) -> None:
    new = daemon.credential("new")
    client = daemon.client(new)
    assert daemon.call(client, "version")[0] == 403
    daemon.authorise(new)
    assert becomes(lambda: daemon.call(client, "version")[0] == 200)


# what happens on the wire


def test_garbage_does_no_harm(shared_daemon: Daemon, caller: Client) -> None:
    for data in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(3000), b"\x16\x03\x01\xff\xff", b""):
        with socket.create_connection((ADDRESS, shared_daemon.port), 5) as sock:
            sock.sendall(data)
    silent = [socket.create_connection((ADDRESS, shared_daemon.port), 5) for _ in range(30)]
    try:
        begin = time.monotonic()
        assert shared_daemon.call(caller, "version")[0] == 200
        assert time.monotonic() - begin < 2
    finally:
        for sock in silent:
            sock.close()


def test_a_request_that_is_no_call_gets_400(shared_daemon: Daemon, caller: Client) -> None:
    answer = caller.post(ADDRESS, shared_daemon.port, "/version", b"no json", 20)
    assert answer.status == 400
    assert b"is not JSON" in answer.body


def test_a_file_of_some_megabytes_arrives(shared_daemon: Daemon, caller: Client) -> None:
    text = "x" * 5_000_000
    upload = ("/var/lib/ganeti/known_hosts", [0, text], 0o644, "root", "root", 1.0, 2.0)
    assert shared_daemon.call(caller, "upload_file_single", *upload) == (200, [True, None])
    assert (shared_daemon.paths.data / "known_hosts").read_text() == text


def test_an_instance_lives_its_life_over_the_wire(
    shared_daemon: Daemon, caller: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_daemon.paths.services.write_text(f"ganeti-noded {shared_daemon.port}/tcp\n")
    monkeypatch.setenv("GANETI_ROOTDIR", str(shared_daemon.paths.root))
    credential = shared_daemon.paths.root.parent / "master.pem"
    here = Node(uuid="u1", name=NAME, primary_ip=ADDRESS, secondary_ip=ADDRESS, group="g")
    item = disk(shared_daemon.paths)
    web = instance(item)
    rpc = NodeRpc(Identity(credential, shared_daemon.paths.ca_cert).client_context())
    try:
        with pytest.raises(errors.HypervisorError, match=f"node {NAME}: instance_start: "):
            rpc.call_one(here, NodeCalls.instance_start, web, False, [])
        rpc.call_one(here, NodeCalls.blockdev_create, item, 4, INSTANCE, True, "", False)
        link = rpc.call_one(here, NodeCalls.blockdev_assemble, item, web, True, 0)[1]
        assert Path(link).samefile(item.logical_id[1])
        web = renew_right(web)
        rpc.call_one(here, NodeCalls.instance_start, web, False, [["gnt:user", "", 1]])
        assert rpc.call_one(here, NodeCalls.all_instances_info, ["fake"], {})[INSTANCE].vcpus == 2
        rpc.call_one(here, NodeCalls.instance_reboot, web, "hard", 5, [])
        rpc.call_one(here, NodeCalls.instance_shutdown, web, 5, [])
        assert rpc.call_one(here, NodeCalls.instance_list, ["fake"], {}) == []
        rpc.call_one(here, NodeCalls.blockdev_shutdown, item)
        rpc.call_one(here, NodeCalls.blockdev_remove, item)
        assert rpc.call_one(here, NodeCalls.blockdev_find, item) is None
    finally:
        rpc.stop()


def test_an_exact_limit_holds_on_a_slow_machine_and_while_nobody_accepts(
    shared_daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    credential = shared_daemon.paths.root.parent / "master.pem"
    here = Node(uuid="u1", name=NAME, primary_ip=ADDRESS, secondary_ip=ADDRESS, group="g")
    monkeypatch.setenv("GANETI_TIME_FACTOR", "20")
    monkeypatch.setenv("GANETI_ROOTDIR", str(shared_daemon.paths.root))
    with socket.create_server((ADDRESS, 0)) as silent:
        services = f"ganeti-noded {silent.getsockname()[1]}/tcp\n"
        shared_daemon.paths.services.write_text(services)
        rpc = NodeRpc(Identity(credential, shared_daemon.paths.ca_cert).client_context())
        try:
            begin = time.monotonic()
            with pytest.raises(errors.RpcError):
                rpc.limit_time_exactly(0.2).call_one(here, NodeCalls.version)
            assert time.monotonic() - begin < 3.0
        finally:
            rpc.stop()


# certificates


def test_a_replaced_certificate_is_used_without_restart(daemon: Daemon, master: Client) -> None:
    credential = daemon.paths.root.parent / "master.pem"
    before = daemon.server_digest(credential)
    certs.write(daemon.paths.server_cert, certs.issue_server(daemon.authority, NAME))
    after = pem.digest_of_file(daemon.paths.server_cert)
    assert after != before
    assert becomes(lambda: daemon.server_digest(credential) == after)
    assert daemon.call(master, "version")[0] == 200


def test_a_broken_certificate_leaves_the_old_one_in_force(daemon: Daemon, master: Client) -> None:
    credential = daemon.paths.root.parent / "master.pem"
    before = daemon.server_digest(credential)
    daemon.paths.server_cert.chmod(0o600)
    daemon.paths.server_cert.write_text("broken")
    assert becomes(lambda: "TLS certificate not read" in daemon.log)
    assert daemon.server_digest(credential) == before


def test_after_lost_events_everything_is_read_anew(tmp_path: Path) -> None:
    where = Paths(tmp_path)
    where.data.mkdir(parents=True)
    authority = certs.create_ca("test")
    certs.write_authority(authority, where.ca_key, where.ca_cert)
    certs.write(where.server_cert, certs.issue_server(authority, NAME))
    tls = Identity(where.server_cert, where.ca_cert).server_context()
    trust: list[str] = []

    class Trust(Authoriser):
        def reload(self) -> None:
            trust.append("read")

    changed = node_daemon._make_change_handler(
        tls, Trust(where), (where.server_cert, where.ca_cert), where
    )
    before = tls.current()
    trust.clear()
    changed("unrelated")
    assert (tls.current() is before, trust) == (True, [])
    certs.write(where.server_cert, certs.issue_server(authority, NAME))
    trust.clear()
    changed(ANY_NAME)
    assert (tls.current() is before, trust) == (False, ["read"])


# starting and stopping


def test_sigterm_ends_it_at_once_although_calls_wait(daemon: Daemon) -> None:
    daemon.start("-d")
    own = daemon.client(daemon.paths.client_cert)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(daemon.call, own, "test_delay", 300)
        assert becomes(lambda: "call test_delay begins" in daemon.log)
        begin = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - begin < 30  # the hook would take a minute
        status, (ok, error) = answer.result(5)
    assert (status, ok) == (200, False)
    assert "the daemon stops" in error[1][0]


def test_a_call_that_cannot_be_interrupted_is_cut_off(daemon: Daemon, master: Client) -> None:
    slow = daemon.paths.hooks / "instance-start-pre.d"
    slow.mkdir(parents=True)
    (slow / "x").write_text(f"#!/bin/sh\necho $$ > {daemon.paths.run}/hook-pid\nexec sleep 60\n")
    (slow / "x").chmod(0o755)
    with pytest.raises(errors.RpcError):
        daemon.call(master, "hooks_runner", "instance-start", "pre", {}, timeout=0.5)
    pid = int((daemon.paths.run / "hook-pid").read_text())
    try:
        begin = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - begin < 30  # the hook would take a minute
        assert "cut off: hooks_runner" in daemon.log
    finally:
        os.kill(pid, signal.SIGKILL)


def test_it_goes_to_the_background_and_is_ready_then(daemon: Daemon) -> None:
    done = daemon.run("-p", "0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    pid_file = daemon.paths.pid_file("ganeti-noded")
    pid = read_pid(pid_file)
    assert pid is not None
    try:
        own = daemon.client(daemon.paths.client_cert)
        assert daemon.call(own, "version")[0] == 200
        again = daemon.run("-p", "0")
        assert again.returncode == 1
        assert f"already running (pid {pid}" in again.stderr
    finally:
        os.kill(pid, signal.SIGTERM)
    assert process.wait_exit(pid, 3)
    assert read_pid(pid_file) is None


def test_leaving_is_answered_and_ends_the_daemon(daemon: Daemon, master: Client) -> None:
    assert daemon.call(master, "node_leave_cluster", False) == (200, [True, None])
    assert daemon.child is not None
    assert daemon.child.wait(5) == 0
    assert not daemon.paths.server_cert.exists()
    assert not list(daemon.paths.data.glob("ssconf_*"))
    assert "ERROR" not in daemon.log


def test_sighup_opens_the_log_anew(daemon: Daemon, master: Client) -> None:
    log = daemon.paths.log / "node-daemon.log"
    assert log.stat().st_mode & 0o777 == 0o600
    port = daemon.port
    log.rename(log.with_suffix(".1"))
    assert daemon.child is not None
    daemon.child.send_signal(signal.SIGHUP)
    assert becomes(log.exists)
    assert master.post(ADDRESS, port, "/version", b"[]", 20).status == 200


def test_a_node_outside_a_cluster_says_so(daemon: Daemon) -> None:
    daemon.paths.server_cert.unlink()
    done = daemon.run("-f")
    assert done.returncode == 5
    assert "not part of a cluster" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("background", [True, False])
def test_a_port_in_use_is_told(daemon: Daemon, background: bool) -> None:
    with socket.create_server((ADDRESS, 0)) as taken:
        port = taken.getsockname()[1]
        done = daemon.run("-p", str(port), *([] if background else ["-f"]))
    assert done.returncode == 1
    assert f"Cannot listen on {ADDRESS}:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_certificate_keeps_it_from_starting(daemon: Daemon) -> None:
    daemon.paths.server_cert.chmod(0o600)
    daemon.paths.server_cert.write_text("broken")
    done = daemon.run()
    assert done.returncode == 1
    assert "server.pem" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--no-ssl"], "--no-ssl is refused"),
        (["-K", "/other.pem"], "same file"),
        (["--max-clients", "0"], "at least 1"),
        (["--syslog", "maybe"], "maybe"),
    ],
)
def test_options_that_cannot_be_used(daemon: Daemon, arguments: list[str], text: str) -> None:
    done = daemon.run(*arguments)
    assert done.returncode == 2
    assert text in done.stderr


def test_other_options_are_accepted(daemon: Daemon) -> None:
    certificate = daemon.paths.root.parent / "elsewhere.pem"
    daemon.paths.server_cert.rename(certificate)
    daemon.start(
        *("-d", "--no-mlock", "--max-clients", "3", "-i", "lo"),
        *("-C", str(certificate), "-K", str(certificate)),
    )
    own = daemon.client(daemon.paths.client_cert)
    assert daemon.call(own, "version")[0] == 200
    assert " DEBUG call version took " in daemon.log

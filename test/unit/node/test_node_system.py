"""The host: resources, addresses, waiting, the master daemon, leaving the cluster."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_node import LocalNode
from node_samples import INSTANCE, disk

from ganeti import errors
from ganeti.base.daemon import running_pid
from ganeti.net import certs, pem, probe
from ganeti.node.context import NodeContext
from ganeti.node.system import System
from ganeti.paths import Paths

REPOSITORY = Path(__file__).parents[3]


def test_the_version_is_the_protocol_version(node: LocalNode) -> None:
    assert node.version() == 3020000


def test_node_info_tells_boot_room_and_resources(node: LocalNode, paths: Paths) -> None:
    boot_id, units, hypervisors = node.node_info(
        [("file", str(paths.file_storage), [])], [("fake", {})]
    )
    assert boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert units is not None
    assert hypervisors is not None
    [unit] = units
    assert set(unit) == {"type", "name", "storage_free", "storage_size"}
    assert (unit["type"], unit["name"]) == ("file", str(paths.file_storage))
    assert 0 < unit["storage_free"] <= unit["storage_size"]
    [info] = hypervisors
    assert set(info) == {
        "memory_total",
        "memory_free",
        "memory_dom0",
        "cpu_total",
        "cpu_nodes",
        "cpu_sockets",
        "cpu_dom0",
    }
    assert info["memory_total"] > 0


def test_a_storage_type_that_tells_no_room_is_an_error(node: LocalNode) -> None:
    with pytest.raises(errors.StorageError):
        node.node_info([("ext", "provider", [])], [])


def test_own_and_foreign_addresses(node: LocalNode) -> None:
    assert node.node_has_ip_address("127.0.0.1")
    assert not node.node_has_ip_address("192.0.2.1")
    assert not node.node_has_ip_address("2001:db8::1")


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "::1::", "127.0.0.1; true"])
def test_what_is_no_address_is_refused(node: LocalNode, text: str) -> None:
    with pytest.raises(errors.ParameterError, match="not an IP address"):
        node.node_has_ip_address(text)


@pytest.mark.parametrize("name", ["lo", "nosuch-br0", "../../class", "", ".."])
def test_missing_bridges_are_named(node: LocalNode, name: str) -> None:
    node.bridges_exist([])
    with pytest.raises(errors.GenericError, match="missing bridges"):
        node.bridges_exist([name])


def test_the_master_is_the_one_that_was_told(node: LocalNode) -> None:
    with pytest.raises(errors.ConfigurationError, match="which node is the master"):
        node.master_node_name()
    node.write_ssconf_files({"master_node": "node7.example.com"})
    assert node.master_node_name() == "node7.example.com"


def test_the_digest_of_the_own_certificate_is_told(node: LocalNode, paths: Paths) -> None:
    certs.write(paths.client_cert, certs.issue_client(certs.create_ca("test"), "node1"))
    digest = pem.digest_of_file(paths.client_cert)
    assert node.node_crypto_tokens([("ssl", "get", {})]) == [["ssl", digest]]
    assert node.node_crypto_tokens([]) == []
    for kind, action in (("ssl", "create"), ("ssh", "get")):
        with pytest.raises(errors.ParameterError, match=f"{kind}, {action}"):
            node.node_crypto_tokens([(kind, action, {})])


# waiting


def test_a_delay_waits(node: LocalNode) -> None:
    begin = time.monotonic()
    node.test_delay(0.1)
    assert time.monotonic() - begin >= 0.1


def test_the_stop_of_the_daemon_ends_a_delay(context: NodeContext, node: LocalNode) -> None:
    caught: list[Exception] = []

    def wait() -> None:
        try:
            node.test_delay(3600)
        except errors.GanetiError as err:
            caught.append(err)

    thread = threading.Thread(target=wait)
    thread.start()
    context.stopping.set()
    thread.join(5)
    assert not thread.is_alive()
    assert "the daemon stops" in str(caught[0])


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_impossible_delays_are_refused(node: LocalNode, seconds: float) -> None:
    with pytest.raises(errors.ParameterError, match="cannot wait"):
        node.test_delay(seconds)


# the master daemon

_MASTER = """
import signal, sys
from pathlib import Path
from ganeti.base.daemon import PidFile
if sys.argv[2] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
PidFile(Path(sys.argv[1])).acquire()
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def master(paths: Paths, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the master daemon's pid file."""
    child = subprocess.Popen(
        [sys.executable, "-c", _MASTER, paths.pid_file("ganeti-masterd"), request.param],
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.mark.parametrize("master", ["willing"], indirect=True)
def test_the_master_daemon_is_stopped(
    node: LocalNode, paths: Paths, master: subprocess.Popen[bytes]
) -> None:
    assert running_pid(paths.pid_file("ganeti-masterd")) == master.pid
    paths.master_stopped_file.touch()
    node.node_stop_master()
    assert master.wait(5) == -15
    assert not paths.master_stopped_file.exists(), "another node takes over"
    paths.master_stopped_file.touch()
    node.node_stop_master()
    assert paths.master_stopped_file.exists(), "an administrator had stopped it before"


@pytest.mark.parametrize("master", ["stubborn"], indirect=True)
def test_a_master_daemon_that_does_not_stop_is_an_error(
    context: NodeContext, master: subprocess.Popen[bytes]
) -> None:
    with pytest.raises(errors.GenericError, match=f"pid {master.pid}"):
        System(context, master_stop_wait=0.1).node_stop_master()


@pytest.mark.parametrize("master", ["willing"], indirect=True)
def test_a_frozen_master_daemon_is_killed_if_its_place_is_taken(
    node: LocalNode, paths: Paths, master: subprocess.Popen[bytes]
) -> None:
    master.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, master.pid, os.WSTOPPED)
    paths.master_stopped_file.touch()
    node.node_stop_master(0.1)
    assert master.wait(5) == -9
    assert not paths.master_stopped_file.exists(), "another node takes over"


@pytest.mark.parametrize("patience", [-1.0, 3600.0, float("nan")])
def test_impossible_times_to_stop_are_refused(node: LocalNode, patience: float) -> None:
    with pytest.raises(errors.ParameterError, match="cannot wait"):
        node.node_stop_master(patience)


def test_a_stale_pid_file_stops_nobody(node: LocalNode, paths: Paths) -> None:
    innocent = subprocess.Popen(["/bin/sleep", "30"])
    try:
        paths.pid_file("ganeti-masterd").write_text(f"{innocent.pid}\n")
        node.node_stop_master()
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


# leaving


def test_leaving_removes_the_cluster_and_keeps_the_disks(
    context: NodeContext, node: LocalNode, paths: Paths
) -> None:
    item = disk(paths)
    node.blockdev_create(item, 4, INSTANCE, True, "", False)
    (paths.data / "rapi").mkdir()
    (paths.queue / "archive" / "0").mkdir(parents=True)
    own_storage = paths.data / "file-storage"
    own_storage.mkdir()
    gone = [
        paths.config_file,
        paths.journal_file,
        paths.ca_cert,
        paths.ca_key,
        paths.server_cert,
        paths.client_cert,
        paths.hmac_key,
        paths.domain_secret,
        paths.ssconf("master_node"),
        paths.data / "rapi" / "users",
        paths.data / "rapi.pem",
        paths.data / "known_hosts",
        paths.data / "watcher.1234.data",
        paths.queue / "job-1",
        paths.queue / "serial",
        paths.queue / "archive" / "0" / "job-7",
    ]
    kept = [own_storage / "disk", paths.conf / "file-storage-paths", paths.data / "notes.txt"]
    for file in (*gone, *kept):
        file.write_text("x")
    node.node_leave_cluster(False)
    assert [file for file in gone if file.exists()] == []
    assert [file for file in kept if not file.exists()] == []
    assert Path(item.logical_id[1]).exists()
    assert context.stopping.is_set()
    node.node_leave_cluster(False)


def test_a_failed_leave_keeps_the_daemon_and_its_certificate(
    context: NodeContext, node: LocalNode, paths: Paths
) -> None:
    paths.server_cert.write_text("x")
    paths.config_file.mkdir()
    with pytest.raises(errors.GenericError, match="cannot remove"):
        node.node_leave_cluster(False)
    assert paths.server_cert.exists()
    assert not context.stopping.is_set()


# reaching others


def test_whom_this_host_can_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        good = probe.Target("127.0.0.1", listening.getsockname()[1], "127.0.0.1")
        refused = probe.Target("127.0.0.1", closed.getsockname()[1])
        foreign = probe.Target("127.0.0.1", good.port, "192.0.2.77")
        failed = probe.find_unreachable([good, refused, foreign], 2.0)
    assert good not in failed
    assert isinstance(failed[refused], ConnectionRefusedError)
    assert foreign in failed


def test_silent_hosts_cost_one_timeout_together() -> None:
    # A full backlog: connections to it are neither accepted nor refused.
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        others = [socket.socket() for _ in range(4)]
        try:
            for other in others:
                other.setblocking(False)
                other.connect_ex(address)
            begin = time.monotonic()
            targets = [probe.Target(*address, f"127.0.0.{host}") for host in range(1, 21)]
            failed = probe.find_unreachable(targets, 0.3)
            assert time.monotonic() - begin < 1.5
        finally:
            for other in others:
                other.close()
    assert failed
    assert all(isinstance(failure, TimeoutError) for failure in failed.values())


def test_an_out_of_band_program_that_others_can_write_is_not_run(
    node: LocalNode, tmp_path: Path
) -> None:
    program, ran = tmp_path / "oob", tmp_path / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\necho '[]'\n")
    for mode in (0o777, 0o775, 0o644):
        program.chmod(mode)
        with pytest.raises(errors.ParameterError, match=f"out-of-band program {program} "):
            node.run_oob(str(program), "health", "node2", 10)
    assert not ran.exists()
    program.chmod(0o755)
    assert node.run_oob(str(program), "health", "node2", 10) == "[]\n"
    assert ran.exists()

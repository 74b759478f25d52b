"""Wrong input: one clear message, the documented exit code, and nothing is changed."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator

import pytest
from local_cluster import Cluster, Ran, tool

from ganeti import constants


@pytest.fixture(autouse=True)
def nothing_changes(cluster: Cluster) -> Iterator[None]:
    """Whatever a test does, configuration and disks are the same afterwards."""
    before = (cluster.config(), cluster.disks())
    yield
    assert (cluster.config(), cluster.disks()) == before


def add(cluster: Cluster, *words: str) -> Ran:
    return cluster.gnt("instance add", *words)


GOOD = ("-n", "node2", "-o", "noop", "-t", "file", "--no-nics")
NAME = "bad.example.com"


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("instance list --colour", 2, "--colour"),
        ("instance list -o name,colour", 14, "colour"),
        ("instance list nothere.example.com", 1, "nothere.example.com"),
        ("instance startup nothere", 1, "nothere"),
        ("instance info nothere", 1, "nothere"),
        ("node remove nothere", 1, "nothere"),
        ("instance restart web1", 1, "restart"),
        ("job watch 99999", 1, "99999"),
        ("job info abc", 1, "abc"),
        ("cluster queue stop", 1, "stop"),
        ("debug delay soon", 1, "soon"),
        ("node list -o", 2, "-o"),
        ("instance remove", 1, "expects"),
    ],
)
def test_words(cluster: Cluster, line: str, code: int, text: str) -> None:
    ran = cluster.gnt(line)
    assert ran.code == code, ran
    assert text in ran.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((*GOOD, "--disk", "0:size=big", NAME), "big"),
        ((*GOOD, "--disk", "0:size=-5", NAME), "-5"),
        ((*GOOD, "--disk", "zero:size=8M", NAME), "zero"),
        ((*GOOD, "--disk", "0:sise=8M", NAME), "sise"),
        ((*GOOD, "--disk", "0:mode=ro", NAME), "size"),
        ((*GOOD, "--disk", "0:size=8M", "-B", "memory=lots", NAME), "lots"),
        ((*GOOD, "--disk", "0:size=8M", "-B", "colour=red", NAME), "colour"),
        ((*GOOD, "--disk", "0:size=8M", "-H", "zen:x=1", NAME), "zen"),
        ((*GOOD, "--disk", "0:size=8M", "-H", "kvm", NAME), "kvm"),
        (("-n", "node9", "-o", "noop", "-t", "file", "--disk", "0:size=8M", NAME), "node9"),
        (
            (
                "-n",
                "node2",
                "-o",
                "windoze",
                "-t",
                "file",
                "--no-nics",
                "--disk",
                "0:size=8M",
                NAME,
            ),
            "windoze",
        ),
        (
            (
                "-n",
                "node2",
                "-o",
                "noop+huge",
                "-t",
                "file",
                "--no-nics",
                "--disk",
                "0:size=8M",
                NAME,
            ),
            "huge",
        ),
        (
            ("-n", "node2", "-o", "noop", "-t", "plain", "--no-nics", "--disk", "0:size=8M", NAME),
            "plain",
        ),
        ((*GOOD, "--disk", "0:size=9000T", NAME), "disk-size"),
        ((*GOOD, "--disk", "0:size=15T", NAME), "free"),
        ((*GOOD, "--disk", "0:size=8M", "not a name"), "not a name"),
        ((*GOOD, "--disk", "0:size=8M", "--net", "0:mac=zz", NAME), "net"),
    ],
)
def test_instance_add(cluster: Cluster, words: tuple[str, ...], text: str) -> None:
    ran = add(cluster, *words)
    assert ran.code in (1, 2), ran
    assert text in ran.err
    assert len(ran.err.splitlines()) <= 6


@pytest.fixture(scope="module")
def existing_instance(cluster: Cluster) -> Iterator[None]:
    assert cluster.add("taken.example.com").code == 0
    yield
    cluster.ok("instance remove -f", "taken.example.com")


@pytest.mark.usefixtures("existing_instance")
class TestWithAnInstance:
    def test_name_is_taken(self, cluster: Cluster) -> None:
        ran = cluster.add("taken.example.com")
        assert ran.code == 1
        assert "taken.example.com" in ran.err
        assert "already" in ran.err

    def test_start_of_a_running_one_is_no_error(self, cluster: Cluster) -> None:
        assert cluster.gnt("instance startup", "taken").code == 0

    def test_remove_without_an_answer_does_nothing(self, cluster: Cluster) -> None:
        assert cluster.gnt("instance remove", "taken").code == 1

    def test_rename_to_a_bad_name(self, cluster: Cluster) -> None:
        cluster_config = cluster.cells("instance list -o name,status")
        ran = cluster.gnt("instance rename", "taken", "bad name")
        assert ran.code == 1
        assert cluster.cells("instance list -o name,status") == cluster_config

    def test_unknown_os_for_reinstall(self, cluster: Cluster) -> None:
        ran = cluster.gnt("instance reinstall -f -o nosuch", "taken")
        assert ran.code == 1
        assert "taken" in ran.err or "nosuch" in ran.err


def test_node_that_does_not_answer(cluster: Cluster) -> None:
    ran = tool("kill-node", cluster.directory, "node3.example.com")
    assert ran.code == 0, ran.err
    try:
        failed = cluster.add(NAME, node="node3")
        assert failed.code == 1
        assert "node3.example.com" in failed.err
        listed = cluster.ok("node list -o name,mfree --no-headers")
        assert "node3.example.com" in listed.out
        assert cluster.gnt("cluster verify").code == 1
    finally:
        assert tool("start-node", cluster.directory, "node3.example.com").code == 0
    assert cluster.gnt("cluster verify").code == 0


def test_master_daemon_not_running(cluster: Cluster) -> None:
    cluster.kill_master()
    try:
        ran = cluster.gnt("instance list")
        assert ran.code == 1
        assert "master daemon" in ran.err
        elsewhere = cluster.gnt("instance list", node="node2")
        assert elsewhere.code == 11
        assert "node1.example.com" in elsewhere.err
    finally:
        assert cluster.start_master().code == 0


def test_second_master_is_refused(cluster: Cluster) -> None:
    again = cluster.start_master()
    assert again.code == 1
    assert "already running" in again.err


def test_no_cluster_here(cluster: Cluster) -> None:
    empty = cluster.directory / "empty"
    empty.mkdir()
    ran = subprocess.run(
        cluster.argv("instance", "list"),
        env={**cluster.env(), "GANETI_ROOTDIR": str(empty)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 5
    assert "no cluster" in ran.stderr or "gnt-cluster init" in ran.stderr


def test_init_where_a_cluster_is(cluster: Cluster) -> None:
    ran = cluster.gnt("cluster init --enabled-hypervisors fake", "other.example.com")
    assert ran.code == 1
    assert "already" in ran.err


@pytest.mark.parametrize("data", [b"hello\n", b"\x00" * 64, b"{}\x03", b"[1]\x03", b"\xff\x03"])
def test_garbage_on_luxi(cluster: Cluster, data: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as bad:
        bad.settimeout(10)
        bad.connect(str(cluster.paths().luxi_socket))
        bad.sendall(data)
        if data.endswith(b"\x03"):
            assert b'"success": false' in bad.recv(65536).replace(b'":f', b'": f')
    assert cluster.ok("cluster getmaster").out.strip() == "node1.example.com"
    cluster.ok("job list")


def test_garbage_on_rpc(cluster: Cluster) -> None:
    port = int(cluster.paths().services.read_text().split()[1].partition("/")[0])
    address = cluster.ok("node list --no-headers -o pip", "node2").out.strip()
    for data in (b"hello\r\n\r\n", struct.pack(">I", 2**31) * 20):
        with socket.create_connection((address, port), timeout=10) as bad:
            bad.sendall(data)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        call_without_certificate(address, port)
    assert cluster.pid(constants.NODED, "node2") is not None
    cluster.ok("node list -o name,mfree")


def call_without_certificate(address: str, port: int) -> None:
    """A call as anybody on the network could make it; raises when it is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((address, port), timeout=10) as raw,
        context.wrap_socket(raw) as anonymous,
    ):
        anonymous.sendall(b"POST /version HTTP/1.1\r\nContent-Length: 2\r\n\r\n[]")
        if not anonymous.recv(100):
            raise ConnectionError("refused")

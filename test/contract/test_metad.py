"""``ganeti-metad`` and guests, on real interfaces in networks of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganeti import constants
from ganeti.guest_os import metadata
from ganeti.hypervisor.kvm.network_plan import attach_plan, sysctl_plan
from ganeti.hypervisor.kvm.runtime import Card
from ganeti.metad.server import ARRIVAL
from ganeti.net import unix_socket
from ganeti.paths import Paths
from ganeti.rpc.objects import InstanceMetadata, NodeNic

#: A mount that another test makes would stay in the spaces of these.
pytestmark = pytest.mark.together("mounts")

CLIENT = """
import socket, sys
source, target, data = sys.argv[1], sys.argv[2], sys.argv[3].encode().decode("unicode_escape")
sock = socket.socket()
sock.settimeout(float(sys.argv[4]))
if source:
    sock.bind((source, 0))
try:
    sock.connect((target, 80))
    sock.sendall(data.encode("latin-1"))
    while piece := sock.recv(65536):
        sys.stdout.buffer.write(piece)
except OSError as err:
    print("failed:", type(err).__name__)
"""


class Space:
    """A network of its own, which ends with its process."""

    def __init__(self, inside: int | None = None) -> None:
        enter = [] if inside is None else ["nsenter", f"--net=/proc/{inside}/ns/net"]
        self._process = subprocess.Popen(
            [*enter, "unshare", "--net", "--mount", "sh", "-c", "echo; exec sleep 1000"],
            stdout=subprocess.PIPE,
        )
        self._process.stdout.readline()  # type: ignore[union-attr]
        self.pid = self._process.pid

    def run(self, *argv: str, check: bool = True) -> str:
        words = ["nsenter", "-t", str(self.pid), "--net", "--mount", *argv]
        ran = subprocess.run(words, capture_output=True, timeout=60, check=False)
        assert not check or ran.returncode == 0, ran.stderr.decode()
        return ran.stdout.decode()

    def ask(
        self,
        path: str = "/ganeti/latest/os/parameters.json",
        *,
        source: str = "",
        target: str = constants.METADATA_ADDRESS,
        raw: str | None = None,
        wait: float = 3.0,
    ) -> str:
        data = raw if raw is not None else f"GET {path} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
        return self.run(sys.executable, "-c", CLIENT, source, target, data, str(wait))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]


class World:
    """A node with two guests, each on an interface of its own, and somebody on its network."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(root)
        self.paths.server_cert.parent.mkdir(parents=True)
        self.paths.server_cert.touch()
        self.node, self.guests = Space(), []
        self.node.run("mount", "-t", "sysfs", "sysfs", "/sys")
        self.node.run("ip", "link", "set", "lo", "up")
        for number in range(2):
            self.guests.append(self._make_guest(f"gnt.com.{number}", f"169.254.0.{number + 5}"))
        self.stranger = self._make_guest("eth7", "169.254.0.9")
        words = ["nsenter", "-t", str(self.node.pid), "--net", sys.executable]
        self.daemon = subprocess.Popen(
            [*words, "-m", "ganeti.metad.daemon", "-f"],
            env={**os.environ, "GANETI_ROOTDIR": str(root), "GANETI_HOSTNAME": "node1"},
            stderr=subprocess.PIPE,
        )
        unix_socket.FramedClient(
            self.paths.metad_socket, connect_timeout=20.0, retry_connect=True
        ).close()

    def _make_guest(self, tap: str, address: str) -> Space:
        guest = Space()
        run = self.node.run
        run("ip", "link", "add", tap, "type", "veth", "peer", "name", "g0")
        run("ip", "link", "set", "g0", "netns", str(guest.pid))
        card = Card(uuid="u", tap=tap, mode="routed", link="communication_rt")
        nic = NodeNic(uuid="u", mac="52:54:00:0:0:1", ip=address)
        if tap.startswith("gnt.com."):
            for name, value in sysctl_plan(tap, nic):
                run(
                    "sh",
                    "-c",
                    f"[ ! -e /proc/sys/net/{name} ] || echo {value} >/proc/sys/net/{name}",
                )
            for argv in attach_plan(card, nic):
                run(*argv)
        else:
            run("ip", "addr", "add", "169.254.0.1/16", "dev", tap)
            run("ip", "link", "set", tap, "up")
        guest.run("ip", "link", "set", "lo", "up")
        guest.run("ip", "addr", "add", f"{address}/16", "dev", "g0")
        guest.run("ip", "link", "set", "g0", "up")
        return guest

    def put(self, number: int, **values: object) -> None:
        nic = NodeNic(
            uuid="u",
            mac="52:54:00:0:0:1",
            name=f"{constants.COMMUNICATION_NIC}web{number}",
            ip=f"169.254.0.{number + 5}",
        )
        found = InstanceMetadata(uuid=f"uuid-{number}", name=f"web{number}", nics=(nic,), **values)  # type: ignore[arg-type]
        metadata.store(self.paths, found)

    def close(self) -> None:
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait(timeout=20)
        self.daemon.stderr.close()  # type: ignore[union-attr]
        for space in (*self.guests, self.stranger, self.node):
            space.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine: install util-linux and iproute2")
    made = World(tmp_path_factory.mktemp("metad"))
    made.put(0, osparams_public={"size": "2"}, osparams_private={"token": "t"})
    made.put(1, osparams_secret={"password": "secret-of-web1"})
    yield made
    made.close()


def content(answer: str) -> object:
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK"), answer
    return json.loads(body)


def status(answer: str) -> int:
    assert answer.startswith("HTTP/1.1 "), answer
    return int(answer.split()[1])


def test_each_guest_reads_its_own_parameters(world: World) -> None:
    first, second = world.guests
    assert content(first.ask()) == {"size": ["2", "public"], "token": ["t", "private"]}
    assert content(second.ask()) == {"password": ["secret-of-web1", "secret"]}
    assert content(first.ask("/ganeti/latest/meta_data.json"))["name"] == "web0"  # type: ignore[index]


def test_a_guest_that_takes_the_address_of_another_one_gets_nothing(world: World) -> None:
    first, second = world.guests
    first.run("ip", "addr", "add", "169.254.0.6/16", "dev", "g0")
    try:
        assert first.ask(source="169.254.0.6") == "failed: TimeoutError\n"
        # Not even when the kernel of the node lets such packets in.
        rp_filter = "/proc/sys/net/ipv4/conf/{gnt.com.0,gnt.com.1,all}/rp_filter"
        world.node.run("bash", "-c", f"for f in {rp_filter}; do echo 0 >$f; done")
        assert "secret" not in first.ask(source="169.254.0.6")
        # An address that the node does not know is that of no guest.
        first.run("ip", "addr", "add", "169.254.0.77/16", "dev", "g0")
        assert "secret" not in first.ask(source="169.254.0.77")
    finally:
        first.run("ip", "addr", "flush", "dev", "g0")
        first.run("ip", "addr", "add", "169.254.0.5/16", "dev", "g0")
    assert content(second.ask()) == {"password": ["secret-of-web1", "secret"]}


def test_what_a_request_says_of_itself_counts_for_nothing(world: World) -> None:
    first = world.guests[0]
    lies = (
        "Host: 169.254.0.6\\r\\nX-Forwarded-For: 169.254.0.6\\r\\nForwarded: for=169.254.0.6\\r\\n"
    )
    path = "/ganeti/latest/os/parameters.json"
    assert "token" in first.ask(raw=f"GET {path} HTTP/1.1\\r\\n{lies}\\r\\n")
    for path in (
        "/ganeti/latest/../../169.254.0.6",
        "/ganeti/latest/os/%2e%2e/169.254.0.6",
        "//169.254.0.6/ganeti/latest/meta_data.json",
        "http://169.254.0.6/ganeti/latest/meta_data.json",
        "/169.254.0.6",
    ):
        assert status(first.ask(path)) == 404


def test_the_network_of_the_node_is_not_served(world: World) -> None:
    # It reaches the address by its own way, with the address of a guest too.
    stranger = world.stranger
    assert status(stranger.ask()) == 403
    local = world.node.ask(source="127.0.0.1")
    assert status(local) == 403


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("nonsense\\r\\n\\r\\n", 400),
        ("GET  / HTTP/1.1\\r\\n\\r\\n", 400),
        ("GET / HTTP/2\\r\\n\\r\\n", 400),
        ("GET /" + "a" * 3000 + " HTTP/1.1\\r\\n\\r\\n", 400),
        ("GET / HTTP/1.1\\r\\nX: " + "a" * 20000 + "\\r\\n\\r\\n", 431),
        ("DELETE / HTTP/1.1\\r\\n\\r\\n", 405),
        ("POST / HTTP/1.1\r\nContent-Length: 999\r\n\r\n", 405),
    ],
)
def test_requests_that_are_none(world: World, raw: str, code: int) -> None:
    assert status(world.guests[0].ask(raw=raw)) == code


def test_a_guest_with_open_connections_keeps_no_other_one_waiting(world: World) -> None:
    first, second = world.guests
    script = (
        "import socket,time\n"
        "made=[socket.create_connection(('169.254.169.254',80)) for _ in range(100)]\n"
        "[sock.send(b'GET / HT') for sock in made[:4]]\n"
        "print('open',flush=True)\n"
        "print(made[0].recv(100).split()[1].decode(),flush=True)\n"
    )
    words = ["nsenter", "-t", str(first.pid), "--net", sys.executable, "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == "open\n"
        begin = time.monotonic()
        assert content(second.ask()) == {"password": ["secret-of-web1", "secret"]}
        assert time.monotonic() - begin < ARRIVAL / 2
        assert slow.stdout.readline() == "408\n"


def test_a_guest_that_is_gone_has_nothing(world: World) -> None:
    world.put(0, osparams_public={"size": "3"})
    assert content(world.guests[0].ask()) == {"size": ["3", "public"]}
    metadata.forget(world.paths, "uuid-0")
    assert status(world.guests[0].ask()) == 404
    world.put(0, osparams_public={"size": "2"}, osparams_private={"token": "t"})


def test_root_of_the_node_updates_over_the_socket(world: World) -> None:
    assert oct(world.paths.metad_socket.stat().st_mode & 0o777) == "0o600"
    from ganeti.luxi import calls

    def call(method: str, *args: object) -> object:
        with unix_socket.FramedClient(world.paths.metad_socket) as client:
            return calls.decode_response(client.call(calls.encode_request(method, args)))

    assert call("Echo", "hi") == "hi"
    with pytest.raises(Exception, match="UpdateConfig"):
        call("UpdateConfig", {"name": 5})
    with pytest.raises(Exception, match="Echo with a text"):
        call("Nothing")
    wrong = {"uuid": "u", "name": "n", "nics": [{"uuid": "u", "mac": "m", "ip": "10.0.0.1"}]}
    wrong["nics"][0]["name"] = f"{constants.COMMUNICATION_NIC}n"  # type: ignore[index]
    with pytest.raises(Exception, match=r"'10.0.0.1' is not an address of 169.254.0.0/16"):
        call("UpdateConfig", wrong)


def test_files_are_readable_by_root_alone(world: World) -> None:
    directory = world.paths.metadata
    assert oct(directory.stat().st_mode & 0o777) == "0o700"
    assert {oct(path.stat().st_mode & 0o777) for path in directory.iterdir()} == {"0o600"}


@pytest.mark.parametrize("port", ["99999", "-1", "http"])
def test_a_port_that_is_none(port: str) -> None:
    words = [sys.executable, "-m", "ganeti.metad.daemon", "-f", f"--port={port}"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert "--port" in ran.stderr
    assert "Traceback" not in ran.stderr

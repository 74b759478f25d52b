"""The address of the cluster moves, and a neighbour that has it in its cache follows at once.

The script runs in network namespaces on one switch, as the node daemon runs it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from net_cluster import REPOSITORY, Namespace, why_not

REASON = why_not()

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.skipif(shutil.which("arping") is None, reason="needs the program arping"),
]

#: addresses of the cluster, by IP version: address, length of the prefix, network of the hosts
CASES = {4: ("10.98.0.254", "32", "10.98.0.{}/24"), 6: ("fd98::254", "128", "fd98::{}/64")}
OLD, NEW, NEIGHBOUR = 1, 2, 3


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[int, Namespace]]:
    """Two masters and a neighbour, each with an address of both versions."""
    switch = Namespace()
    made = {number: Namespace() for number in (OLD, NEW, NEIGHBOUR)}
    try:
        switch.ip("link add br0 type bridge", "link set br0 up")
        for number, host in made.items():
            switch.ip(
                f"link add port{number} type veth peer name eth0 netns {host.pid}",
                f"link set port{number} master br0 up",
            )
            host.ip(
                f"link set eth0 address {mac(number)} up",
                *(f"addr add {case[2].format(number)} dev eth0 {flag}" for case, flag in flagged()),
            )
        yield made
    finally:
        for namespace in (switch, *made.values()):
            namespace.end()


def flagged() -> list[tuple[tuple[str, str, str], str]]:
    return [(CASES[4], ""), (CASES[6], "nodad")]


def mac(number: int) -> str:
    return f"02:00:00:01:00:{number:02x}"


def move(host: Namespace, version: int, word: str) -> None:
    address, prefix, _network = CASES[version]
    done = host.run(
        [
            "env",
            "MASTER_NETDEV=eth0",
            f"MASTER_IP={address}",
            f"MASTER_NETMASK={prefix}",
            f"CLUSTER_IP_VERSION={version}",
            str(REPOSITORY / "tools/master-ip-setup"),
            word,
        ]
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def find_owner(neighbour: Namespace, version: int) -> str:
    """The link address that the neighbour would send to; it asks nobody for it."""
    words = neighbour.run(["ip", "neigh", "show", CASES[version][0]]).stdout.split()
    return words[words.index("lladdr") + 1] if "lladdr" in words else ""


def reach(neighbour: Namespace, version: int) -> None:
    """Send something, so that the neighbour has to know where."""
    code = "import socket, sys; socket.create_connection((sys.argv[1], 9), 5)"
    said = neighbour.run(["python3", "-c", code, CASES[version][0]]).stderr
    assert "refused" in said, said


@pytest.mark.parametrize("version", CASES)
@pytest.mark.parametrize("stays", [False, True], ids=["let-go", "stands-still"])
def test_a_neighbour_follows_the_address(
    hosts: dict[int, Namespace], version: int, stays: bool
) -> None:
    """Also where the former master still has the address, as one whose daemons stand still."""
    neighbour = hosts[NEIGHBOUR]
    move(hosts[OLD], version, "start")
    reach(neighbour, version)
    assert find_owner(neighbour, version) == mac(OLD)
    if not stays:
        move(hosts[OLD], version, "stop")
    move(hosts[NEW], version, "start")
    assert find_owner(neighbour, version) == mac(NEW)
    for number in (OLD, NEW):
        move(hosts[number], version, "stop")

"""Real guests migrate between two nodes while they count, and things are killed on the way."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest
from local_cluster import Cluster, copy_cluster, tool
from needs import needs_programs
from test_cluster_moves import kill_noded, read_primary
from waiting import wait_for

from ganeti import constants
from ganeti.base import process

pytestmark = [
    pytest.mark.qemu,
    needs_programs("qemu-system-x86_64"),
]

NAME = "beat.example.com"


@pytest.fixture(scope="module")
def pair() -> Iterator[Cluster]:
    with copy_cluster(2, "kvm") as made:
        made.ok(
            "instance add -n node1 -o bootsector+beat -t sharedfile --disk 0:size=4M --no-nics",
            NAME,
        )
        yield made


def serial(cluster: Cluster, node: str) -> str:
    path = cluster.paths(node).kvm_log / f"{NAME}-serial.log"
    return path.read_text(errors="replace") if path.exists() else ""


def beats(cluster: Cluster, node: str) -> list[int]:
    return [int(word) for word in re.findall(r"\b(\d+)\r?\n", serial(cluster, node))]


def qemus(cluster: Cluster) -> dict[str, int]:
    """Node -> process of the guest, whether it runs there or waits."""
    found = {}
    for node in ("node1", "node2"):
        path = cluster.paths(node).kvm / "pid" / NAME
        # QEMU makes the file before it writes its number.
        with contextlib.suppress(FileNotFoundError, ValueError):
            pid = int(path.read_text())
            if process.is_alive(pid):
                found[node] = pid
    return found


def at(cluster: Cluster) -> str:
    """The one node that has the guest, in its hypervisor and on record."""
    [node] = qemus(cluster)
    assert read_primary(cluster, NAME) == node
    return node


def counts_on(cluster: Cluster, node: str) -> None:
    before = len(serial(cluster, node))
    wait_for(lambda: len(serial(cluster, node)) > before, f"the guest to go on at {node}", 60)


def name_other(node: str) -> str:
    return "node2" if node == "node1" else "node1"


def begin(cluster: Cluster) -> subprocess.Popen[str]:
    """A migration that gets on very slowly."""
    cluster.ok("cluster modify -H kvm:migration_bandwidth=1")
    return subprocess.Popen(
        cluster.argv("instance", "migrate", "-f", "-n", name_other(at(cluster)), NAME),
        env=cluster.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_count_goes_on(pair: Cluster) -> None:
    counts_on(pair, "node1")
    pair.ok("instance migrate -f -n node2", NAME, timeout=120)
    assert at(pair) == "node2"
    counts_on(pair, "node2")
    assert "Hello" not in serial(pair, "node2"), "it was started anew"
    pair.ok("instance migrate -f --non-live -n node1", NAME, timeout=120)
    assert at(pair) == "node1"
    counts_on(pair, "node1")
    assert serial(pair, "node1").count("Hello") == 1


@pytest.mark.parametrize("victim", ["master", "source daemon", "target daemon"])
def test_a_daemon_is_killed_in_the_middle(pair: Cluster, victim: str) -> None:
    source = at(pair)
    child = begin(pair)
    wait_for(lambda: len(qemus(pair)) == 2, "the target to wait", 60)
    if victim == "master":
        pair.kill_master()
    else:
        kill_noded(pair, source if victim == "source daemon" else name_other(source))
    if victim == "master":
        child.kill()
        assert pair.start_master().code == 0
    child.communicate(timeout=120)
    for node in ("node1", "node2"):
        if pair.pid(constants.NODED, node) is None:
            assert tool("start-node", pair.directory, node).code == 0
    pair.ok("instance migrate -f --cleanup", NAME, timeout=120)
    wait_for(lambda: len(qemus(pair)) == 1, "one guest", 60)
    counts_on(pair, at(pair))
    assert pair.ok("cluster verify").code == 0


@pytest.mark.parametrize("victim", ["source", "target"])
def test_qemu_is_killed_in_the_middle(pair: Cluster, victim: str) -> None:
    source = at(pair)
    child = begin(pair)
    wait_for(lambda: len(qemus(pair)) == 2, "the target to wait", 60)
    os.kill(qemus(pair)[source if victim == "source" else name_other(source)], signal.SIGKILL)
    out, _ = child.communicate(timeout=120)
    assert child.returncode != 0, out
    assert at(pair) == source, out
    counts_on(pair, source)
    assert pair.ok("cluster verify").code == 0

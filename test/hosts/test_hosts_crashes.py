"""The node daemon, or the whole node, dies in the middle of its work on a disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import sabotage
from lab.channel import Ran, wait_for
from lab.cluster import Cluster, Node
from lab.faults import Book

WEB = "web1"
FAULT = "node daemon killed in the middle"


@pytest.fixture
def node(cluster: Cluster) -> Iterator[Node]:
    """The node whose daemon dies; nothing of the scenario is left on it."""
    yield cluster.nodes[1]
    assert cluster.nodes[1].volumes() == {}
    cluster.ok("cluster verify")


def crash(cluster: Cluster, node: Node, program: str, line: str, *words: str, but: str = "") -> Ran:
    """Run a command; the node daemon dies when a program of it has done its work.

    Gives what the command said; the daemon runs again then.
    """
    sabotage.stop_at(node, program, but=but)
    ran = cluster.gnt(line, "--submit", *words)
    job = (ran.out + ran.err).split()[-1]
    sabotage.wait_until_stopped(node)
    sabotage.kill_daemon(node)
    watched = cluster.gnt("job watch", job)
    sabotage.let_go(node, program)
    node.start("ganeti-noded")
    return watched


def verify_says(cluster: Cluster, text: str) -> None:
    ran = cluster.gnt("cluster verify")
    assert ran.code == 1, ran.out
    assert text in ran.out, ran.out


def test_while_a_disk_is_made(cluster: Cluster, node: Node, book: Book) -> None:
    with book.case("gnt-instance add -t plain", FAULT) as case:
        line = f"instance add -t plain -H fake -o noop --no-nics -n {node.name}"
        ran = crash(cluster, node, "lvcreate", line, "--disk", "0:size=64M", WEB)
        assert ran.code == 1
        assert cluster.cells("instance list -o name") == []
        (volume,) = node.volumes()
        group, name = volume.split("/")[-2:]
        verify_says(cluster, f"volume {group}/{name} is unknown")
        case.outcome = "the job fails, no instance; verify names the volume that is left"
        case.recovery = "daemon started again, lvremove of that volume"
        node.sh(f"lvremove -q -y {group}/{name}")


def test_while_a_disk_grows_and_while_it_is_removed(
    cluster: Cluster, node: Node, book: Book
) -> None:
    cluster.add(WEB, "plain", node, "--disk", "0:size=64M")
    with book.case("gnt-instance grow-disk (plain)", FAULT) as case:
        ran = crash(cluster, node, "lvextend", "instance grow-disk", WEB, "0", "32M", but="--test")
        assert ran.code == 1
        assert cluster.cells("instance list -o status,disk.sizes", WEB) == [["running", "64"]]
        cluster.ok("cluster repair-disk-sizes", WEB)
        assert cluster.cells("instance list -o status,disk.sizes", WEB) == [["running", "96"]]
        case.outcome = "the job fails, the instance continues; the volume has grown, the record not"
        case.recovery = "daemon started again, cluster repair-disk-sizes"
    with book.case("gnt-instance remove (plain)", FAULT) as case:
        ran = crash(cluster, node, "lvremove", "instance remove -f", WEB)
        assert ran.code == 1
        verify_says(cluster, "is missing")
        case.outcome = "the job fails, the instance is still known; verify names the missing volume"
        case.recovery = "daemon started again, instance remove"
        cluster.ok("instance remove -f", WEB)


def test_the_node_dies_while_a_disk_is_made(cluster: Cluster, node: Node, book: Book) -> None:
    with book.case(
        "gnt-instance add -t plain", "power cut of the node while its disk is made"
    ) as case:
        # The daemon looks into this directory first; a boot brings the real program back.
        slow = "/usr/local/sbin/lvcreate"
        node.sh(f"printf '#!/bin/sh\\nexec sleep 300\\n' > {slow}; chmod +x {slow}")
        ran = cluster.try_add(WEB, "plain", node, "--submit", "--disk", "0:size=64M")
        job = (ran.out + ran.err).split()[-1]
        wait_for("the node at work", lambda: "sleep 300" in node.sh("ps ax"), 60.0)
        node.power_cut()
        assert cluster.gnt("job watch", job).code == 1
        node.power_on()
        wait_for("nothing left", lambda: not cluster.cells("instance list -o name"), 60.0)
        case.outcome = "the job fails when the node gives no sign of life for half a minute"
        case.recovery = "power on"

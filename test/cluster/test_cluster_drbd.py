"""Mirrored disks seen from the commands: their state, and what verification says of them."""

from __future__ import annotations

import re

import pytest
from local_cluster import Cluster
from storage_nodes import StorageNodes
from test_cluster_watcher import watch

from ganeti import constants

NAME = "web.example.com"


@pytest.fixture(scope="module")
def mirrored(storage_cluster: tuple[Cluster, StorageNodes]) -> tuple[Cluster, StorageNodes]:
    cluster, nodes = storage_cluster
    cluster.ok(
        "instance add -n node1:node2 -o noop -t drbd --disk 0:size=16M --no-nics", NAME, timeout=120
    )
    return cluster, nodes


def verify(cluster: Cluster) -> str:
    return cluster.gnt("cluster verify --error-codes").out


def test_info_has_both_ends_and_not_the_secret(
    mirrored: tuple[Cluster, StorageNodes],
) -> None:
    cluster, nodes = mirrored
    out = cluster.ok("instance info", NAME).out
    assert "nodeA: node1.example.com, minor=0" in out
    assert "nodeB: node2.example.com, minor=0" in out
    assert "on secondary: " in out
    [secret] = re.findall(r'shared-secret\s+"(\w+)"', nodes.run("node1", "drbdsetup", "show", "0"))
    assert len(secret) == 40
    assert secret not in out
    for job in (cluster.paths().data / "queue").glob("job-*"):
        assert secret not in job.read_text()
    for log in cluster.directory.glob("node*/var/log/ganeti/*.log"):
        assert secret not in log.read_text()


def test_minors_of_a_node_are_listed(mirrored: tuple[Cluster, StorageNodes]) -> None:
    cluster, _nodes = mirrored
    first = cluster.ok("node list-drbd --separator=|", "node1").lines
    assert first == [
        "Node|Minor|Instance|Disk|Role|PeerNode",
        f"node1.example.com|0|{NAME}|disk/0|primary|node2.example.com",
    ]
    assert cluster.cells("node list-drbd", "node2") == [
        ["node2.example.com", "0", NAME, "disk/0", "secondary", "node1.example.com"]
    ]
    assert cluster.cells("node list-drbd", "node3") == []
    assert "nosuch" in cluster.gnt("node list-drbd", "nosuch").err


def test_a_sound_cluster_has_no_findings(mirrored: tuple[Cluster, StorageNodes]) -> None:
    cluster, _nodes = mirrored
    assert "ERROR" not in verify(cluster)


def test_findings_have_their_codes(mirrored: tuple[Cluster, StorageNodes]) -> None:
    cluster, nodes = mirrored
    nodes.set_helper("node3", "/sbin/drbdadm")
    nodes.run("node3", "drbdsetup", "new-resource", "mine")
    nodes.run("node3", "drbdsetup", "new-minor", "mine", "7", "0")
    nodes.run("node2", "drbdsetup", "down", "resource0")
    out = verify(cluster)
    assert (
        "ERROR:ENODEDRBDHELPER:node:node3.example.com:wrong drbd usermode helper: /sbin/drbdadm"
        " instead of /bin/true" in out
    )
    assert "ERROR:ENODEDRBD:node:node3.example.com:unallocated drbd minor 7 is in use" in out
    assert "ERROR:ENODEDRBD:node:node2.example.com:drbd minor 0 of disk" in out
    assert (
        f"ERROR:EINSTANCEFAULTYDISK:instance:{NAME}:disk/0 on node node1.example.com is degraded;"
        " local disk state is 'ok'" in out
    )
    nodes.set_helper("node3", "/bin/true")
    nodes.run("node3", "drbdsetup", "down", "mine")
    cluster.ok("instance activate-disks", NAME)
    assert "ERROR" not in verify(cluster)


def test_helper_and_parameters_are_checked(mirrored: tuple[Cluster, StorageNodes]) -> None:
    cluster, _nodes = mirrored
    wrong = cluster.gnt("cluster modify --drbd-usermode-helper=/bin/false")
    assert wrong.code == 1
    assert "has the user-mode helper /bin/true, not /bin/false" in wrong.err + wrong.out
    odd = cluster.gnt("cluster modify -D drbd:net-custom=--shared-secret=x")
    assert odd.code == 1
    assert "'--shared-secret' cannot be set; choose from" in odd.err + odd.out
    cluster.ok("cluster modify -D drbd:resync-rate=1024,protocol=A")
    assert "resync-rate: 1024" in cluster.ok("cluster info").out


def test_an_offline_node_ends_what_runs_there_when_the_cluster_wants_it(
    storage_cluster: tuple[Cluster, StorageNodes],
) -> None:
    """``maintain_node_health``: guests and DRBD devices of a node that is marked offline."""
    cluster, nodes = storage_cluster
    words = "instance add -n node2:node3 -o noop -t drbd --disk 0:size=16M --no-nics"
    cluster.ok(words, "gone.example.com", timeout=120)
    guest = cluster.paths("node2").fake_hypervisor / "gone.example.com"
    assert cluster.start_daemon(constants.CONFD).code == 0
    cluster.ok("cluster modify --maintain-node-health=yes")
    assert watch(cluster, node="node2").code == 11
    assert guest.exists()  # the node is not offline
    cluster.ok("node modify -O yes", "node2")
    ran = cluster.gnt("instance failover -f --ignore-consistency", "gone.example.com")
    assert "is in use on its other node" in ran.err
    assert guest.exists()  # nobody calls an offline node
    assert watch(cluster, node="node2").code == 11
    assert not guest.exists(), (cluster.paths("node2").log / "watcher.log").read_text()
    assert nodes.run("node2", "drbdsetup", "show").strip() == ""
    log = (cluster.paths("node2").log / "watcher.log").read_text()
    assert "this node is offline; ending" in log
    assert "ended gone.example.com" in log
    cluster.ok("instance startup", "gone.example.com")
    assert cluster.cells("instance list -o pnode,status", "gone.example.com") == [
        ["node3.example.com", "running"]
    ]
    # its data stayed: the node takes its part again when it is back
    cluster.ok("node modify -O no", "node2")
    cluster.ok("instance activate-disks --wait-for-sync", "gone.example.com", timeout=120)
    cluster.ok("cluster modify --maintain-node-health=no")
    cluster.ok("instance remove -f", "gone.example.com")

"""Backups that read snapshots: on the secondary node, and of guests that nobody else can freeze."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_cluster import Cluster
from needs import needs_programs
from storage_nodes import StorageNodes

pytestmark = [
    pytest.mark.long,
    needs_programs("qemu-nbd"),
]

WEB = "web1.example.com"
DB = "db1.example.com"
Both = tuple[Cluster, StorageNodes]


@pytest.fixture(scope="module", autouse=True)
def instances(storage_cluster: Both) -> Iterator[None]:
    """A running instance with a file disk on node2, one with a mirrored disk on node1 and node2."""
    cluster, nodes = storage_cluster
    cluster.ok(
        "cluster modify --ipolicy-bounds-specs min:disk-size=1,nic-count=0/max:disk-size=1000000"
    )
    assert cluster.add(WEB).code == 0
    cluster.ok("instance add -n node1:node2 -o noop -t drbd --disk 0:size=16M --no-nics", DB)
    yield
    for name in (WEB, DB):
        cluster.gnt("instance shutdown --timeout=0", name)
        cluster.ok("instance remove -f", name)
    for node in ("node1", "node2"):
        assert nodes.volumes(node) == {}


def write(nodes: StorageNodes, text: bytes) -> None:
    with nodes.path("node1", "drbd0").open("r+b") as disk:
        disk.write(text)


def find_copies(cluster: Cluster, nodes: StorageNodes) -> list[str]:
    """Volumes and records of snapshots."""
    volumes = [name for node in ("node1", "node2") for name in nodes.volumes(node)]
    [[recorded]] = cluster.cells("instance list --no-headers -o snapshot.names", DB)
    return [*(name for name in volumes if ".snap" in name), recorded.strip("[]")]


def find_last(cluster: Cluster) -> list[str]:
    return cluster.cells("backup history --no-headers -o mode,consistency", DB)[-1]


def test_a_running_guest_is_read_on_its_secondary_node(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    write(nodes, b"first")
    ran = cluster.ok("backup run", DB)
    assert "The guest was paused for" in ran.out
    assert "on node node2" in ran.out
    assert find_last(cluster) == ["full", "crash"]
    write(nodes, b"other")
    cluster.ok("backup run", DB)
    assert find_last(cluster) == ["compare", "crash"]
    assert find_copies(cluster, nodes) == [""]
    assert cluster.cells("instance list --no-headers -o status", DB) == [["running"]]


def test_a_stopped_instance_is_read_on_its_secondary_node(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    write(nodes, b"final")
    cluster.ok("instance shutdown --timeout=0", DB)
    ran = cluster.ok("backup run", DB)
    assert "on node node2" in ran.out
    assert find_last(cluster) == ["compare", "clean"]
    assert find_copies(cluster, nodes) == [""]
    [name] = [each for each in nodes.volumes("node1") if each.endswith("_data")]
    with nodes.path("node1", name).open("r+b") as disk:
        disk.write(b"wrong")
    cluster.ok("backup restore -f", DB)
    for node in ("node1", "node2"):
        [name] = [each for each in nodes.volumes(node) if each.endswith("_data")]
        assert nodes.path(node, name).read_bytes()[:5] == b"final"


def test_without_room_there_the_primary_node_reads(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    nodes.fail("lvcreate", "no room left", node="node2", match="--snapshot")
    ran = cluster.ok("backup run", DB)
    nodes.clear_rules()
    assert "node node2.example.com is not read: " in ran.out
    assert "no room left" in ran.out
    assert "on node node1" in ran.out
    assert find_last(cluster) == ["compare", "clean"]
    assert find_copies(cluster, nodes) == [""]


def test_a_failure_leaves_nothing_and_the_guest_runs(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    cluster.ok("instance startup", DB)
    nodes.fail("lvcreate", "no room left", node="node2", match="--snapshot")
    ran = cluster.gnt("backup run", DB)
    nodes.clear_rules()
    assert ran.code == 1
    assert "no room left" in ran.err
    assert find_copies(cluster, nodes) == [""]
    assert cluster.cells("instance list --no-headers -o status", DB) == [["running"]]


def test_a_copy_that_stays_is_removed_by_the_next_backup(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    nodes.fail("lvremove", "device is busy", node="node2", match=".snap0")
    ran = cluster.ok("backup run", DB)
    assert "device is busy" in ran.out + ran.err
    nodes.clear_rules()
    assert "backup-" in find_copies(cluster, nodes)[-1]
    cluster.ok("backup run", DB)
    assert find_copies(cluster, nodes) == [""]


def test_a_guest_whose_disks_have_no_quick_copies_must_be_stopped(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    ran = cluster.gnt("backup run", WEB)
    assert ran.code == 1
    assert "stop the instance first" in ran.err
    cluster.ok("instance shutdown --timeout=0", WEB)
    assert "on node node2" in cluster.ok("backup run", WEB).out

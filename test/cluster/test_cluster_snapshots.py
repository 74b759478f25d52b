"""Snapshots: made of stopped and running instances, copied back, removed, and never forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from local_cluster import Cluster
from storage_nodes import StorageNodes

from ganeti.hypervisor.fake_guests import Guests

pytestmark = pytest.mark.long

WEB = "web1.example.com"
DB = "db1.example.com"
Both = tuple[Cluster, StorageNodes]


@pytest.fixture(scope="module", autouse=True)
def instances(storage_cluster: Both) -> Iterator[None]:
    """A stopped instance with a file disk on node2, one with a mirrored disk on node1 and node2."""
    cluster, nodes = storage_cluster
    cluster.ok(
        "cluster modify --ipolicy-bounds-specs min:disk-size=1,nic-count=0/max:disk-size=1000000"
    )
    assert cluster.add(WEB, "--no-start").code == 0
    cluster.ok(
        "instance add -n node1:node2 -o noop -t drbd --disk 0:size=16M --no-nics --no-start", DB
    )
    yield
    for name in (WEB, DB):
        cluster.gnt("instance shutdown", name)
        cluster.ok("instance remove -f", name)
    for node in ("node1", "node2"):
        assert nodes.volumes(node) == {}
    assert not list(cluster.root("node2").glob("**/*.snap0"))
    cluster.ok("cluster verify")


def names(cluster: Cluster, instance: str) -> list[str]:
    [[found]] = cluster.cells("instance list -o snapshot.names", instance)
    return found.strip("[]").replace("'", "").split(", ") if found.strip("[]") else []


def show(cluster: Cluster, instance: str) -> list[dict[str, object]]:
    return json.loads(cluster.ok("instance snapshot list --format=json", instance).out)


def volumes(nodes: StorageNodes, node: str, end: str) -> list[str]:
    return [name for name in nodes.volumes(node) if name.endswith(end)]


def data(nodes: StorageNodes, node: str) -> bytes:
    """The first bytes of the data volume of the mirrored disk."""
    [name] = volumes(nodes, node, "_data")
    return nodes.path(node, name).read_bytes()[:6]


def test_a_file_disk_returns_to_its_snapshot(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    [path] = cluster.root("node2").glob(f"**/{WEB}/*.disk0")
    with path.open("r+b") as disk:
        disk.write(b"before")
    made = cluster.ok("instance snapshot create --description", "for a test", WEB, "clean")
    assert "disk/0 is copied as a whole" in made.out
    with path.open("r+b") as disk:
        disk.write(b"after!")
        disk.seek(3 * 1024 * 1024)
        disk.write(b"x")
    reverted = cluster.ok("instance snapshot revert", WEB, "clean")
    assert "7 MiB had not changed" in reverted.out
    content = path.read_bytes()
    assert content[:6] == b"before"
    assert not any(content[6:])
    [found] = show(cluster, WEB)
    assert (found["name"], found["consistency"], found["description"], found["state"]) == (
        *("clean", "clean", "for a test", "ready"),
    )
    cluster.ok("instance snapshot remove", WEB, "clean")
    assert show(cluster, WEB) == []


def test_a_mirrored_disk_of_a_running_guest(storage_cluster: Both) -> None:
    """Both sides are frozen while the guest is paused; what is copied back is mirrored."""
    cluster, nodes = storage_cluster
    cluster.ok("instance startup", DB)
    device = nodes.path("node1", "drbd0")
    with device.open("r+b") as disk:
        disk.write(b"before")
    made = cluster.ok("instance snapshot create", DB, "hot")
    assert "The guest was paused for" in made.out
    assert [len(volumes(nodes, node, ".snap0")) for node in ("node1", "node2")] == [1, 1]
    [found] = show(cluster, DB)
    assert found["consistency"] == "crash"
    with device.open("r+b") as disk:
        disk.write(b"after!")
    refused = cluster.gnt("instance snapshot revert", DB, "hot")
    assert refused.code == 1
    assert "is running; stop it before it is reverted" in refused.err
    cluster.ok("instance shutdown --timeout=0", DB)
    assert data(nodes, "node2") == b"after!"
    cluster.ok("instance snapshot revert", DB, "hot")
    assert [data(nodes, node) for node in ("node1", "node2")] == [b"before", b"before"]
    cluster.ok("cluster verify")


def test_the_other_node_has_the_snapshot_too(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    assert names(cluster, DB) == ["hot"]
    cluster.ok("instance failover -f", DB)
    cluster.ok("instance snapshot revert", DB, "hot")
    cluster.ok("instance failover -f", DB)


@pytest.mark.parametrize(
    "words",
    [
        "instance modify -t plain",
        "instance replace-disks -p",
        "instance replace-disks -n node3",
        "instance recreate-disks",
        "instance modify --disk 0:remove",
        "instance modify --disk 0:detach",
    ],
)
def test_what_would_part_disks_from_their_snapshots_is_refused(
    storage_cluster: Both, words: str
) -> None:
    cluster, _nodes = storage_cluster
    refused = cluster.gnt(words, DB)
    assert refused.code == 1
    assert f"gnt-instance snapshot remove {DB} hot" in refused.err
    assert names(cluster, DB) == ["hot"]


def test_a_lost_copy_is_named_by_verify(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    [name] = volumes(nodes, "node2", ".snap0")
    nodes.run("node2", "lvremove", "--force", "--yes", name)
    found = cluster.gnt("cluster verify")
    assert found.code == 1
    assert name.partition("/")[2] in found.out
    cluster.ok("instance snapshot remove", DB, "hot")
    assert volumes(nodes, "node1", ".snap0") == []


def test_a_failure_leaves_nothing(storage_cluster: Both) -> None:
    """The second node has no room; what the first one made is removed, and the guest runs on."""
    cluster, nodes = storage_cluster
    cluster.ok("instance startup", DB)
    nodes.fail("lvcreate", "no room left", node="node2", match="--snapshot")
    refused = cluster.gnt("instance snapshot create", DB, "second")
    nodes.clear_rules()
    assert refused.code == 1
    assert "no room left" in refused.err
    assert show(cluster, DB) == []
    assert [volumes(nodes, node, ".snap0") for node in ("node1", "node2")] == [[], []]
    changes = Guests(cluster.paths("node1").fake_hypervisor).changes_file(DB)
    assert changes.read_text().splitlines()[-2:] == ["hold -", "release -"]
    cluster.ok("instance shutdown --timeout=0", DB)


def test_a_revert_that_was_cut_off_is_repeated_before_the_guest_starts(
    storage_cluster: Both,
) -> None:
    cluster, nodes = storage_cluster
    cluster.ok("instance snapshot create", DB, "clean")
    nodes.fail("lvchange", "no such device", node="node1", match=".snap0")
    failed = cluster.gnt("instance snapshot revert", DB, "clean")
    nodes.clear_rules()
    assert failed.code == 1
    refused = cluster.gnt("instance startup", DB)
    assert refused.code == 1
    assert f"gnt-instance snapshot revert {DB} clean" in refused.err
    assert "mixture" in cluster.gnt("instance snapshot remove", DB, "clean").err
    named = cluster.gnt("cluster verify").out
    assert f"mixture until this ends: gnt-instance snapshot revert {DB} clean" in named
    cluster.ok("instance snapshot revert", DB, "clean")
    cluster.ok("instance startup", DB)
    cluster.ok("instance shutdown --timeout=0", DB)
    cluster.ok("instance snapshot remove", DB, "clean")


def test_wrong_words(storage_cluster: Both) -> None:
    cluster, _nodes = storage_cluster
    for words, said in (
        ([WEB, "a/b"], "invalid name 'a/b' of a snapshot"),
        ([WEB, "-x"], "no such option"),
        (["nobody", "a"], "instance 'nobody' is not known"),
    ):
        refused = cluster.gnt("instance snapshot create", *words)
        assert refused.code != 0
        assert said in refused.err
    cluster.ok("instance snapshot create", WEB, "one")
    assert "has a snapshot 'one' already" in cluster.gnt("instance snapshot create", WEB, "one").err
    assert "did you mean one?" in cluster.gnt("instance snapshot revert", WEB, "onr").err
    assert "expects at least" in cluster.gnt("instance snapshot remove", WEB).err
    # the instance is removed with its snapshots when the module ends

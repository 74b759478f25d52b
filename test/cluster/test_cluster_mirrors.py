"""Instances on mirrored disks: made on two nodes, grown, replaced, converted, made again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from local_cluster import Cluster
from storage_nodes import StorageNodes

pytestmark = pytest.mark.long

NAME = "db1.example.com"
OTHER = "db2.example.com"
Both = tuple[Cluster, StorageNodes]


@pytest.fixture(scope="module", autouse=True)
def db1(storage_cluster: Both) -> Iterator[None]:
    """A stopped instance on node1 and node2 with a disk of 16 MiB."""
    cluster, nodes = storage_cluster
    cluster.ok(
        "cluster modify --ipolicy-bounds-specs min:disk-size=1,nic-count=0/max:disk-size=1000000"
    )
    added = add(cluster, NAME, "node1:node2", "--no-start")
    assert added.code == 0, added.err + added.out
    yield
    cluster.gnt("instance shutdown", NAME)
    cluster.ok("instance remove -f", NAME)
    for node in ("node1", "node2", "node3"):
        assert nodes.volumes(node) == {}
        assert nodes.mirrors(node) == {}
    cluster.ok("cluster verify")


def add(cluster: Cluster, name: str, where: str, *words: str) -> object:
    return cluster.gnt(
        f"instance add -n {where} -o noop -t drbd --disk 0:size=16M --no-nics", *words, name
    )


def kinds(nodes: StorageNodes, node: str) -> list[str]:
    """``data`` and ``meta`` for the volumes of a node."""
    return sorted(re.sub(r".*_(?=data|meta)", "", name) for name in nodes.volumes(node))


def volume(nodes: StorageNodes, node: str, kind: str = "data") -> tuple[str, str]:
    [found] = [name for name in nodes.volumes(node) if name.endswith(f"_{kind}")]
    group, _, name = found.partition("/")
    return group, name


def data(nodes: StorageNodes, node: str) -> str:
    return nodes.checksum(node, *volume(nodes, node))


def write(nodes: StorageNodes, node: str = "node1", minor: int = 0) -> None:
    """What a guest does."""
    with nodes.path(node, f"drbd{minor}").open("r+b") as disk:
        disk.write(os.urandom(2 << 20))


@pytest.fixture
def no_other(storage_cluster: Both) -> Iterator[None]:
    """Takes a second instance away, whatever became of it."""
    yield
    cluster, nodes = storage_cluster
    nodes.slow_sync(0)
    nodes.clear_rules()
    cluster.gnt("instance remove -f", OTHER)


@pytest.fixture(scope="class")
def running(storage_cluster: Both) -> Iterator[Both]:
    cluster, _nodes = storage_cluster
    cluster.ok("instance startup", NAME)
    yield storage_cluster
    cluster.ok("instance shutdown", NAME)


def test_made_on_both_nodes(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    fields = "instance list -o pnode,snodes,disk_template,status"
    assert cluster.cells(fields, NAME) == [
        ["node1.example.com", "node2.example.com", "drbd", "ADMIN_down"]
    ]
    for node in ("node1", "node2"):
        assert kinds(nodes, node) == ["data", "meta"]
        assert nodes.mirrors(node) == {}
    assert nodes.volumes("node3") == {}
    cluster.ok("cluster verify")


def test_reinstall(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    cluster.ok("instance reinstall -f", NAME)
    assert nodes.mirrors("node1") == nodes.mirrors("node2") == {}


@pytest.mark.usefixtures("no_other")
def test_progress_is_shown(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    nodes.slow_sync(6.0)
    added = add(cluster, OTHER, "node2:node3", "--no-start", "--no-wait-for-sync")
    assert added.code == 0
    assert "to sync disks" not in added.out
    assert "Primary" in {mirror.role for mirror in nodes.mirrors("node2").values()}
    waited = cluster.ok("instance activate-disks --wait-for-sync", OTHER)
    assert "Waiting for instance db2.example.com to sync disks" in waited.out
    assert "disks are in sync" in waited.out


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("node1", "needs a secondary node"),
        ("node1:node1", "cannot be the primary node"),
        ("node1:nosuch", "'nosuch' is not known"),
    ],
)
def test_places_that_cannot_be(storage_cluster: Both, where: str, text: str) -> None:
    cluster, _nodes = storage_cluster
    refused = add(cluster, OTHER, where)
    assert refused.code == 1
    assert text in refused.err


@pytest.mark.parametrize(
    ("tool", "node", "match"),
    [
        ("lvcreate", "node1", "_meta"),
        ("drbdsetup", "node1", "attach"),
    ],
)
@pytest.mark.usefixtures("no_other")
def test_a_creation_that_fails_leaves_nothing(
    storage_cluster: Both, tool: str, node: str, match: str
) -> None:
    cluster, nodes = storage_cluster
    before = [nodes.volumes(f"node{n}") for n in (1, 2, 3)]
    nodes.fail(tool, "  scripted failure", node=node, match=match, times=None)
    ran = add(cluster, OTHER, "node1:node3")
    nodes.clear_rules()
    assert ran.code == 1
    assert "scripted failure" in ran.err
    assert [nodes.volumes(f"node{n}") for n in (1, 2, 3)] == before
    assert nodes.mirrors("node3") == {}
    assert cluster.cells("instance list -o name") == [[NAME]]
    cluster.ok("cluster verify")


def test_growth_is_tried_on_all_nodes_first(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    before = nodes.volumes("node1"), nodes.volumes("node2")
    nodes.fail("lvextend", "  scripted failure", node="node2", match="--test", times=None)
    ran = cluster.gnt("instance grow-disk", NAME, "0", "16M")
    nodes.clear_rules()
    assert ran.code == 1
    assert (nodes.volumes("node1"), nodes.volumes("node2")) == before


def test_a_stopped_instance_stays_deactivated(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    before = data(nodes, "node1")
    cluster.ok("instance replace-disks -s", NAME)
    assert nodes.mirrors("node1") == nodes.mirrors("node2") == {}
    assert data(nodes, "node2") == before


class TestRunning:
    def test_what_the_guest_writes_is_on_both(self, running: Both) -> None:
        cluster, nodes = running
        assert nodes.mirrors("node1")[0].role == "Primary"
        assert nodes.mirrors("node2")[0].role == "Secondary"
        write(nodes)
        assert data(nodes, "node1") == data(nodes, "node2")
        cluster.ok("instance reboot -t full", NAME)
        assert nodes.mirrors("node1")[0].connection == "Connected"

    def test_grow(self, running: Both) -> None:
        cluster, nodes = running
        write(nodes)
        cluster.ok("instance grow-disk", NAME, "0", "16M")
        for node in ("node1", "node2"):
            assert nodes.volumes(node)["/".join(volume(nodes, node))] == 32
        assert cluster.cells("instance list -o disk.sizes", NAME) == [["32"]]
        assert data(nodes, "node1") == data(nodes, "node2")

    def test_add_and_remove_a_disk(self, running: Both) -> None:
        cluster, nodes = running
        cluster.ok("instance modify --disk add:size=8M", NAME)
        assert kinds(nodes, "node2") == ["data", "data", "meta", "meta"]
        assert nodes.mirrors("node1")[1].role == "Primary"
        cluster.ok("instance modify --disk 1:remove", NAME)
        assert kinds(nodes, "node1") == kinds(nodes, "node2") == ["data", "meta"]
        assert list(nodes.mirrors("node1")) == [0]


class TestReplace:
    @pytest.mark.parametrize(("option", "target"), [("-s", "node2"), ("-p", "node1")])
    def test_new_volumes_on_the_same_node(self, running: Both, option: str, target: str) -> None:
        cluster, nodes = running
        write(nodes)
        before = data(nodes, "node1")
        ran = cluster.ok(f"instance replace-disks {option}", NAME)
        assert "Adding new volumes on" in ran.out
        assert kinds(nodes, target) == ["data", "meta"]
        assert data(nodes, "node1") == data(nodes, "node2") == before
        assert nodes.mirrors(target)[0].disk == "UpToDate/UpToDate"
        cluster.ok("cluster verify")

    def test_what_is_broken_is_found(self, running: Both) -> None:
        cluster, nodes = running
        nothing = cluster.ok("instance replace-disks -a", NAME)
        assert "needs replacement" in nothing.out
        nodes.lose_disk("node1", 0)
        write(nodes)
        cluster.ok("instance replace-disks -a", NAME)
        assert nodes.mirrors("node1")[0].disk == "UpToDate/UpToDate"
        assert data(nodes, "node1") == data(nodes, "node2")

    def test_no_copy_is_made_of_bad_data(self, running: Both) -> None:
        cluster, nodes = running
        nodes.lose_disk("node1", 0)
        before = nodes.volumes("node2")
        refused = cluster.gnt("instance replace-disks -s", NAME)
        assert refused.code == 1
        assert "no good data on node node1" in refused.err
        assert nodes.volumes("node2") == before
        cluster.ok("instance replace-disks -p", NAME)

    def test_another_secondary(self, running: Both) -> None:
        cluster, nodes = running
        write(nodes)
        cluster.ok("instance replace-disks -n node3", NAME)
        assert cluster.cells("instance list -o snodes", NAME) == [["node3.example.com"]]
        assert nodes.volumes("node2") == {}
        assert nodes.mirrors("node2") == {}
        write(nodes)
        assert data(nodes, "node1") == data(nodes, "node3")
        cluster.ok("instance replace-disks --early-release -n node2", NAME)
        assert nodes.volumes("node3") == {}
        cluster.ok("cluster verify")

    @pytest.mark.parametrize(
        ("tool", "node", "match"),
        [
            ("lvcreate", "node3", "_meta"),
            ("drbdsetup", "node1", "disconnect"),
        ],
    )
    def test_failures_lead_back_to_the_old_secondary(
        self, running: Both, tool: str, node: str, match: str
    ) -> None:
        cluster, nodes = running
        nodes.fail(tool, "  scripted failure", node=node, match=match)
        ran = cluster.gnt("instance replace-disks -n node3", NAME)
        nodes.clear_rules()
        assert ran.code == 1
        self.check_old(cluster, nodes)

    @staticmethod
    def check_old(cluster: Cluster, nodes: StorageNodes) -> None:
        assert cluster.cells("instance list -o snodes", NAME) == [["node2.example.com"]]
        assert nodes.volumes("node3") == {}
        assert nodes.mirrors("node3") == {}
        assert nodes.mirrors("node1")[0].connection == "Connected"
        write(nodes)
        assert data(nodes, "node1") == data(nodes, "node2")
        cluster.ok("cluster verify")

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            ("-n node2", "is the secondary node"),
            ("-n node1", "is the primary node"),
            ("-s --disks 4", "has no disk 4"),
        ],
    )
    def test_refused(self, storage_cluster: Both, words: str, text: str) -> None:
        cluster, _nodes = storage_cluster
        refused = cluster.gnt(f"instance replace-disks {words}", NAME)
        assert refused.code == 1
        assert text in refused.err


def test_convert_to_plain_and_back(storage_cluster: Both) -> None:
    cluster, nodes = storage_cluster
    before = data(nodes, "node1")
    cluster.ok("instance modify -t plain", NAME)
    assert kinds(nodes, "node1") == ["data"]
    assert nodes.volumes("node2") == {}
    assert data(nodes, "node1") == before
    refused = cluster.gnt("instance modify -t drbd", NAME)
    assert "needs a secondary node" in refused.err
    nodes.fail("drbdsetup", "  scripted failure", node="node2", match="attach")
    failed = cluster.gnt("instance modify -t drbd -n node2", NAME)
    nodes.clear_rules()
    assert failed.code == 1
    assert (kinds(nodes, "node1"), nodes.volumes("node2")) == (["data"], {})
    cluster.ok("instance modify -t drbd -n node2", NAME)
    assert kinds(nodes, "node1") == kinds(nodes, "node2") == ["data", "meta"]
    assert data(nodes, "node1") == data(nodes, "node2") == before
    cluster.ok("cluster verify")


class TestLost:
    def test_verify_disks_activates_after_a_power_cut(self, running: Both) -> None:
        cluster, nodes = running
        nodes.power_cut("node2")
        nodes.boot("node2")
        ran = cluster.ok("cluster verify-disks")
        assert f"Activating disks for instance '{NAME}'" in ran.out
        assert nodes.mirrors("node2")[0].connection == "Connected"
        quiet = cluster.ok("cluster verify-disks")
        assert "Activating" not in quiet.out

    def test_a_missing_volume_is_named(self, running: Both) -> None:
        cluster, nodes = running
        meta = "/".join(volume(nodes, "node2", "meta"))
        nodes.lose_disk("node2", 0)
        nodes.run("node2", "lvremove", "--force", "--yes", meta)
        ran = cluster.gnt("cluster verify-disks")
        assert ran.code == 1
        assert f"node node2.example.com, volume {meta}" in ran.out
        cluster.ok("instance replace-disks -s", NAME)
        cluster.ok("cluster verify-disks")

    def test_made_again_on_other_nodes(self, storage_cluster: Both) -> None:
        cluster, nodes = storage_cluster
        cluster.ok("instance shutdown", NAME)
        refused = cluster.gnt("instance recreate-disks", NAME)
        assert "still has data on node node2" in refused.err
        for node in ("node1", "node2"):
            for name in nodes.volumes(node):
                nodes.run(node, "lvremove", "--force", "--yes", name)
        cluster.ok("instance recreate-disks -n node3:node2", NAME)
        assert kinds(nodes, "node3") == kinds(nodes, "node2") == ["data", "meta"]
        assert nodes.volumes("node1") == {}
        assert cluster.cells("instance list -o pnode,snodes", NAME) == [
            ["node3.example.com", "node2.example.com"]
        ]
        cluster.ok("instance startup", NAME)
        cluster.ok("instance shutdown", NAME)
        cluster.ok("cluster verify")


@pytest.mark.usefixtures("no_other")
def test_a_reserved_mirror_changes_both_nodes_for_free_and_is_made_at_the_end(
    storage_cluster: Both,
) -> None:
    cluster, nodes = storage_cluster
    before = {node: dict(nodes.volumes(node)) for node in ("node1", "node2", "node3")}
    reserved = add(cluster, OTHER, "node1:node2", "--forthcoming")
    assert reserved.code == 0, reserved.err
    where = "instance list --no-headers -o pnode,snodes"
    cluster.ok("instance failover -f", OTHER)
    assert cluster.ok(where, OTHER).out.split() == ["node2.example.com", "node1.example.com"]
    cluster.ok("instance replace-disks -n node3.example.com", OTHER)
    assert cluster.ok(where, OTHER).out.split() == ["node2.example.com", "node3.example.com"]
    cluster.ok("instance failover -f --target-node node3.example.com:node1.example.com", OTHER)
    assert cluster.ok(where, OTHER).out.split() == ["node3.example.com", "node1.example.com"]
    # data and metadata volumes of the group are held on both nodes
    held = cluster.cells("node list --units=m -o name,reserved.disk")
    assert [amount for _name, amount in held] == ["144", "0", "144"]
    assert {node: dict(nodes.volumes(node)) for node in before} == before
    cluster.ok("instance add --commit --no-start", OTHER)
    made = set(nodes.volumes("node3")) - set(before["node3"])
    assert sorted(name[-4:] for name in made) == ["data", "meta"]
    cluster.ok("cluster verify")

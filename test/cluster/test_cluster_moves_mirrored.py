"""Instances with mirrored disks go to their secondary node; data and mirrors stay whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_cluster import Cluster, tool
from storage_nodes import StorageNodes
from test_cluster_moves import kill_noded, read_primary, runs_on, script

from ganeti import constants

pytestmark = pytest.mark.long

WEB = "web1.example.com"


@pytest.fixture(scope="module")
def added(storage_cluster: tuple[Cluster, StorageNodes]) -> tuple[Cluster, StorageNodes]:
    cluster, _nodes = storage_cluster
    cluster.ok(
        "instance add -n node2:node3 -o noop -t drbd --disk 0:size=16M --no-nics", WEB, timeout=180
    )
    return storage_cluster


@pytest.fixture
def web(added: tuple[Cluster, StorageNodes]) -> Iterator[tuple[Cluster, StorageNodes]]:
    """The instance runs on node2; its mirror is whole."""
    cluster, nodes = added
    yield added
    nodes.clear_rules()
    for node in ("node2", "node3"):
        script(cluster, node)
        if cluster.pid(constants.NODED, node) is None:
            assert tool("start-node", cluster.directory, node).code == 0


def write(nodes: StorageNodes) -> None:
    """The guest on node2 writes something."""
    with nodes.path("node2", "drbd0").open("r+b") as device:
        device.write(b"precious" * 1000)


def roles(nodes: StorageNodes) -> dict[str, tuple[str, str]]:
    """Connection and role of the one mirror on each node."""
    return {
        node: next(((m.connection, m.role) for m in nodes.mirrors(node).values()), ("", ""))
        for node in ("node2", "node3")
    }


def test_there_and_back(web: tuple[Cluster, StorageNodes]) -> None:
    cluster, nodes = web
    write(nodes)
    out = cluster.ok("instance migrate -f", WEB).out
    assert "dual-master mode" in out
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")
    assert roles(nodes) == {"node2": ("Connected", "Secondary"), "node3": ("Connected", "Primary")}
    assert cluster.cells("instance list -o snodes", WEB) == [["node2.example.com"]]
    assert nodes.path("node3", "drbd0").read_bytes()[:8] == b"precious"
    cluster.ok("instance failover -f", WEB)
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    assert roles(nodes)["node2"] == ("Connected", "Primary")
    cluster.ok("cluster verify")
    wrong = cluster.gnt("instance migrate -f -n node1", WEB)
    assert "can only go to its secondary node node3.example.com" in wrong.err
    assert "gnt-instance replace-disks --new-secondary node1.example.com" in wrong.err


@pytest.mark.parametrize(
    ("node", "method"), [("node3", "accept"), ("node2", "migrate"), ("node2", "migration_status")]
)
def test_a_failed_migration_leaves_the_mirror_as_it_was(
    web: tuple[Cluster, StorageNodes], node: str, method: str
) -> None:
    cluster, nodes = web
    script(cluster, node, **{method: {"*": {"fail": "not today"}}})
    ran = cluster.gnt("instance migrate -f", WEB)
    assert "not today" in ran.err
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")
    assert roles(nodes) == {"node2": ("Connected", "Primary"), "node3": ("Connected", "Secondary")}
    assert "dual-master" in ran.out + ran.err


def test_failover_from_a_dead_node_keeps_the_data(web: tuple[Cluster, StorageNodes]) -> None:
    cluster, nodes = web
    write(nodes)
    nodes.power_cut("node2")
    kill_noded(cluster, "node2")
    (cluster.paths("node2").fake_hypervisor / WEB).unlink()
    cluster.ok("node modify --offline yes node2")
    cluster.ok("instance failover -f", WEB)
    assert (runs_on(cluster), read_primary(cluster)) == (["node3"], "node3")
    assert nodes.path("node3", "drbd0").read_bytes()[:8] == b"precious"
    nodes.boot("node2")
    assert tool("start-node", cluster.directory, "node2").code == 0
    cluster.ok("node modify --offline no node2")
    cluster.ok("instance activate-disks --wait-for-sync", WEB, timeout=120)
    cluster.ok("instance migrate -f", WEB, timeout=120)


@pytest.fixture
def restored_web(web: tuple[Cluster, StorageNodes]) -> Iterator[tuple[Cluster, StorageNodes]]:
    """Afterwards the instance runs on node2 again, with its copy on node3."""
    cluster, nodes = web
    yield web
    nodes.clear_rules()
    if cluster.cells("instance list -o pnode,snodes", WEB) != [[n + DOMAIN for n in HOME]]:
        cluster.ok("instance failover -f -n node2", WEB, timeout=120)
        cluster.ok("instance replace-disks -n node3", WEB, timeout=120)
    cluster.ok("cluster verify")


HOME, DOMAIN = ("node2", "node3"), ".example.com"


def places(cluster: Cluster) -> list[str]:
    """Primary and secondary node."""
    [cells] = cluster.cells("instance list -o pnode,snodes", WEB)
    return [name.removesuffix(DOMAIN) for name in cells]


def test_failover_to_a_third_node(restored_web: tuple[Cluster, StorageNodes]) -> None:
    cluster, nodes = restored_web
    write(nodes)
    out = cluster.ok("instance failover -f -n node1", WEB, timeout=120).out
    # the guest is stopped only when the new copy is complete
    assert out.index("disks are in sync") < out.index("shutting down the instance")
    assert (runs_on(cluster), places(cluster)) == (["node1"], ["node1", "node2"])
    assert nodes.path("node1", "drbd0").read_bytes()[:8] == b"precious"
    assert [m.role for m in nodes.mirrors("node2").values()] == ["Secondary"]
    assert nodes.volumes("node3") == {}
    wrong = cluster.gnt("instance failover -f -n node1", WEB)
    assert "is on node node1.example.com already" in wrong.err


@pytest.mark.parametrize(("tool_", "match"), [("lvcreate", "disk0_meta"), ("drbdsetup", "attach")])
def test_a_third_node_that_cannot_take_it(
    restored_web: tuple[Cluster, StorageNodes], tool_: str, match: str
) -> None:
    cluster, nodes = restored_web
    nodes.fail(tool_, "  scripted failure", node="node1", match=match, times=None)
    ran = cluster.gnt("instance failover -f -n node1", WEB, timeout=120)
    assert ran.code == 1
    assert "it stays on node2.example.com" in ran.err
    nodes.clear_rules()
    assert (runs_on(cluster), places(cluster)) == (["node2"], ["node2", "node3"])
    assert roles(nodes) == {"node2": ("Connected", "Primary"), "node3": ("Connected", "Secondary")}
    assert nodes.volumes("node1") == {}


def test_failover_of_a_dead_node_to_a_third_one(restored_web: tuple[Cluster, StorageNodes]) -> None:
    cluster, nodes = restored_web
    write(nodes)
    nodes.power_cut("node2")
    kill_noded(cluster, "node2")
    (cluster.paths("node2").fake_hypervisor / WEB).unlink()
    cluster.ok("node modify --offline yes node2")
    cluster.ok("instance failover -f -n node1", WEB, timeout=120)
    assert (runs_on(cluster), places(cluster)) == (["node1"], ["node1", "node3"])
    assert nodes.path("node1", "drbd0").read_bytes()[:8] == b"precious"
    nodes.boot("node2")
    assert tool("start-node", cluster.directory, "node2").code == 0
    cluster.ok("node modify --offline no node2")
    for name in nodes.volumes("node2"):
        nodes.run("node2", "lvremove", "-f", name)


def test_a_stopped_instance_goes_to_a_third_node(
    restored_web: tuple[Cluster, StorageNodes],
) -> None:
    cluster, nodes = restored_web
    cluster.ok("instance shutdown", WEB)
    cluster.ok("instance failover -f -n node1", WEB, timeout=120)
    assert (runs_on(cluster), places(cluster)) == ([], ["node1", "node2"])
    assert nodes.mirrors("node1") == {}
    cluster.ok("instance startup", WEB)
    assert runs_on(cluster) == ["node1"]


def test_a_copy_that_is_not_complete_is_not_taken(web: tuple[Cluster, StorageNodes]) -> None:
    cluster, nodes = web
    nodes.lose_disk("node3", 0)
    ran = cluster.gnt("instance failover -f", WEB)
    assert ran.code == 1
    assert "is not up to date on node node3.example.com" in ran.err
    assert "--ignore-consistency allows it" in ran.err
    assert (runs_on(cluster), read_primary(cluster)) == (["node2"], "node2")

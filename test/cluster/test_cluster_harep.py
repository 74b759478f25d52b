"""harep repairs instances of offline nodes as their tags allow, and leaves its decisions there."""

from __future__ import annotations

from collections.abc import Iterator

import htools_run as htools
import pytest
from local_cluster import Cluster, Ran, tool
from storage_nodes import StorageNodes

PREFIX = "ganeti:watcher:autorepair:"
WEB, DB = "web1.example.com", "db1.example.com"
Both = tuple[Cluster, StorageNodes]


@pytest.fixture(scope="module")
def cluster(storage_cluster: Both) -> Cluster:
    """web1 is mirrored on node2 and node3, db1 has a plain disk on node3."""
    made, _nodes = storage_cluster
    made.ok("instance add -n node2:node3 -o noop -t drbd --disk 0:size=16M --no-nics", WEB)
    made.ok("instance add -n node3 -o noop -t plain --disk 0:size=16M --no-nics", DB)
    return made


@pytest.fixture
def repaired_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """No repairs are on record afterwards, and all nodes are back."""
    yield cluster
    for node in cluster.names[1:]:
        cluster.gnt("node modify --offline no --readd", node)
        cluster.gnt("node modify --offline no", node)
    for name in (WEB, DB):
        for tag in tags(cluster, name):
            cluster.ok("instance remove-tags", name, tag)
    for tag in cluster.ok("cluster list-tags").out.split():
        cluster.ok("cluster remove-tags", tag)


def tags(cluster: Cluster, name: str) -> list[str]:
    found = cluster.ok("instance list-tags", name).out.split()
    return sorted(tag for tag in found if tag.startswith(PREFIX))


def harep(cluster: Cluster, *words: str, code: int = 0) -> Ran:
    ran = htools.run(cluster, "harep", "-L", "--job-delay", "0", *words)
    assert ran.code == code, ran.err + ran.out
    return ran


def finish(cluster: Cluster, name: str) -> list[str]:
    """Wait for the jobs of a repair, run harep again; the tags then."""
    [tag] = [tag for tag in tags(cluster, name) if ":pending:" in tag]
    watched = cluster.gnt("job watch", tag.rpartition(":")[2])
    assert watched.code == 0, watched.out + watched.err
    harep(cluster)
    return [tag for tag in tags(cluster, name) if ":result:" in tag]


def away_from_the_master(cluster: Cluster) -> str:
    """Put db1 on a node that can be lost, and return it."""
    [[node]] = cluster.cells("instance list -o pnode", DB)
    if node != "node1.example.com":
        return node
    cluster.ok("instance remove -f", DB)
    cluster.ok("instance add -n node3 -o noop -t plain --disk 0:size=16M --no-nics", DB)
    return "node3.example.com"


def test_nothing_happens_without_a_tag(repaired_cluster: Cluster) -> None:
    repaired_cluster.ok("node modify --offline yes", "node3.example.com")
    ran = harep(repaired_cluster)
    assert ran.lines == ["2 instances: 2 not under repair"]
    assert tags(repaired_cluster, WEB) == []


def test_a_repair_that_tags_do_not_allow_is_noted_once(repaired_cluster: Cluster) -> None:
    repaired_cluster.ok("cluster add-tags", f"{PREFIX}fix-storage")
    repaired_cluster.ok("node modify --offline yes", "node2.example.com")
    for _ in range(2):
        ran = harep(repaired_cluster)
        assert f"{WEB}: needs failover, its tags allow no more than fix-storage" in ran.out
        [tag] = tags(repaired_cluster, WEB)
        assert tag.startswith(f"{PREFIX}result:failover:")
        assert tag.endswith(":enoperm:")


def test_suspension_wins(repaired_cluster: Cluster) -> None:
    repaired_cluster.ok("instance add-tags", WEB, f"{PREFIX}failover")
    repaired_cluster.ok("cluster add-tags", f"{PREFIX}suspend")
    repaired_cluster.ok("node modify --offline yes", "node2.example.com")
    assert f"{WEB}: needs failover, repairs are suspended" in harep(repaired_cluster).out


def test_lost_disks_are_made_again_elsewhere(repaired_cluster: Cluster) -> None:
    node = away_from_the_master(repaired_cluster)
    repaired_cluster.ok("instance add-tags", DB, f"{PREFIX}reinstall")
    repaired_cluster.ok("node modify --offline yes", node)
    ran = harep(repaired_cluster)
    assert f"{DB}: begins reinstall: new disks on node" in ran.out
    [tag] = finish(repaired_cluster, DB)
    assert ":success:" in tag
    [[after]] = repaired_cluster.cells("instance list -o pnode", DB)
    assert after != node


def test_a_failed_repair_waits_for_people(repaired_cluster: Cluster) -> None:
    """A repair whose job is gone counts as failed; nothing more is tried until its tag is."""
    node = away_from_the_master(repaired_cluster)
    repaired_cluster.ok("instance add-tags", DB, f"{PREFIX}reinstall")
    repaired_cluster.ok(
        "instance add-tags", DB, f"{PREFIX}pending:reinstall:some-uuid:1700000000:999999"
    )
    ran = harep(repaired_cluster)
    assert f"{DB}: reinstall ended with failure (job 999999)" in ran.out
    [tag] = [tag for tag in tags(repaired_cluster, DB) if "some-uuid" in tag]
    assert tag.startswith(f"{PREFIX}result:reinstall:some-uuid:")
    assert ":failure:999999" in tag
    repaired_cluster.ok("node modify --offline yes", node)
    assert f"{DB}: an earlier repair failed; remove its tag" in harep(repaired_cluster).out
    assert tags(repaired_cluster, DB) == sorted([f"{PREFIX}reinstall", tag])


def test_a_repair_that_was_interrupted_is_one_job(repaired_cluster: Cluster) -> None:
    """Its tag was there, its job not yet: the same identifier makes at most one job."""
    node = away_from_the_master(repaired_cluster)
    repaired_cluster.ok("instance add-tags", DB, f"{PREFIX}reinstall")
    repaired_cluster.ok("instance add-tags", DB, f"{PREFIX}pending:reinstall:uuid-7:1700000000:")
    harep(repaired_cluster)
    assert tags(repaired_cluster, DB) == [f"{PREFIX}reinstall"], (
        "it is well: the repair is not needed"
    )
    repaired_cluster.ok("instance add-tags", DB, f"{PREFIX}pending:reinstall:uuid-8:1700000000:")
    repaired_cluster.ok("node modify --offline yes", node)
    harep(repaired_cluster)
    [tag] = [tag for tag in tags(repaired_cluster, DB) if ":pending:" in tag]
    assert tag.startswith(f"{PREFIX}pending:reinstall:uuid-8:1700000000:")
    assert tag.rpartition(":")[2].isdigit()
    [tag] = finish(repaired_cluster, DB)
    assert ":uuid-8:" in tag


def test_a_lost_primary_node(repaired_cluster: Cluster, storage_cluster: Both) -> None:
    """The last one: node2 is really gone."""
    storage_cluster[1].power_cut("node2")
    assert tool("kill-node", repaired_cluster.directory, "node2").code == 0
    repaired_cluster.ok("cluster add-tags", f"{PREFIX}failover")
    repaired_cluster.ok("node modify --offline yes", "node2.example.com")
    dry = harep(repaired_cluster, "--dry-run")
    assert f"{WEB}: would begin failover: starts on node3.example.com" in dry.out
    assert tags(repaired_cluster, WEB) == []
    harep(repaired_cluster, "--reason", "night shift")
    [tag] = tags(repaired_cluster, WEB)
    assert tag.startswith(f"{PREFIX}pending:failover:")
    info = repaired_cluster.ok("job info", tag.rpartition(":")[2]).out
    assert "'night shift'" in info
    [tag] = finish(repaired_cluster, WEB)
    assert f"{PREFIX}result:failover:" in tag
    assert ":success:" in tag
    assert repaired_cluster.cells("instance list -o pnode", WEB) == [["node3.example.com"]]
    # The next run finds the mirror on a lost node.
    repaired_cluster.ok("instance remove-tags", WEB, tag)
    harep(repaired_cluster)
    [tag] = finish(repaired_cluster, WEB)
    assert f"{PREFIX}result:fix-storage:" in tag
    assert ":success:" in tag
    assert repaired_cluster.cells("instance list -o pnode,snodes", WEB) == [
        ["node3.example.com", "node1.example.com"]
    ]
    assert "2 instances: 2 healthy" in harep(repaired_cluster).out

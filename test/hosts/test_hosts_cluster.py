"""Three hosts as a cluster: the plain life of an instance."""

from __future__ import annotations

from lab.cluster import Cluster


def test_all_nodes_answer(cluster: Cluster) -> None:
    names = [row[0] for row in cluster.cells("node list -o name,mtotal") if int_of(row[1])]
    assert names == [node.name for node in cluster.nodes]


def test_an_instance_with_a_file_disk(cluster: Cluster) -> None:
    words = "instance add -t file --disk 0:size=8M --no-nics -H fake -o noop"
    cluster.ok(words, "-n", cluster.nodes[1].name, "web1")
    assert cluster.cells("instance list -o name,status") == [["web1", "running"]]
    found = "find /srv/ganeti/file-storage -type f -size 8192k"
    assert len(cluster.nodes[1].sh(found).splitlines()) == 1
    cluster.ok("instance remove -f", "web1")
    assert cluster.nodes[1].sh(found) == ""
    cluster.ok("cluster verify")


def int_of(text: str) -> float:
    return float(text.rstrip("GMTi"))

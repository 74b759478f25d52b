"""Node daemons of a cluster in a directory use the storage tools of their own node."""

from __future__ import annotations

from local_cluster import Cluster
from storage_nodes import StorageNodes


def test_plain_instance_lives_in_its_nodes_group(
    storage_cluster: tuple[Cluster, StorageNodes],
) -> None:
    cluster, nodes = storage_cluster
    assert "drbd usermode helper: /bin/true" in cluster.ok("cluster info").out
    cluster.ok(
        "instance add -n node2 -o noop -t plain --disk 0:size=100M --no-nics", "web.example.com"
    )
    [(volume, size)] = nodes.volumes("node2").items()
    assert (volume.endswith(".disk0"), size) == (True, 100)
    assert nodes.volumes("node1") == {}
    assert nodes.path("node2", volume).stat().st_size == 100 * 1024 * 1024
    cluster.ok("instance remove -f web.example.com")
    assert nodes.volumes("node2") == {}

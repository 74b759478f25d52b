"""Node daemons of a cluster in a directory use the storage tools of their own node."""

from __future__ import annotations

from local_cluster import Cluster
from storage_nodes import StorageNodes


def test_cluster_starts_with_empty_storage(
    storage_cluster: tuple[Cluster, StorageNodes],
) -> None:
    cluster, nodes = storage_cluster
    assert "drbd usermode helper: /bin/true" in cluster.ok("cluster info").out
    assert {name: nodes.volumes(name) for name in ("node1", "node2", "node3")} == {
        "node1": {}, "node2": {}, "node3": {},
    }  # fmt: skip
    assert (cluster.root("node2") / "proc/drbd").read_text().startswith("version: 8.4.11")
